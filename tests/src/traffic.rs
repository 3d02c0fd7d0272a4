//! A TCP connection that sends as much as it can, or 64 kB at a time with pauses.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};
use wakeai_host::Namespace;
use wakeai_kernel::{Snapshotter, TcpSnapshot};

use crate::wait_for;

/// A running upload from one namespace to another.
pub struct Upload {
    namespace: Namespace,
    local: SocketAddr,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Upload {
    /// Starts an upload to `to`, an address of `receiver`, with this algorithm.
    pub fn start(sender: Namespace, receiver: &Namespace, to: Ipv4Addr, algorithm: &str) -> Self {
        Self::with_pauses(sender, receiver, to, algorithm, Duration::ZERO)
    }

    /// Sends 64 kB at a time with pauses, which leave the processors to other programs.
    pub fn with_pauses(
        sender: Namespace,
        receiver: &Namespace,
        to: Ipv4Addr,
        algorithm: &str,
        pause: Duration,
    ) -> Self {
        let listener = receiver.run(|| TcpListener::bind((to, 0)).unwrap()).unwrap();
        let address = listener.local_addr().unwrap();
        let connect = || {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP)).unwrap();
            socket.set_tcp_congestion(algorithm.as_bytes()).unwrap();
            socket.connect(&address.into()).unwrap();
            TcpStream::from(socket)
        };
        let stream = sender.run(connect).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        let local = stream.local_addr().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let threads = vec![
            std::thread::spawn({
                let stop = Arc::clone(&stop);
                move || write_until(stream, pause, &stop)
            }),
            std::thread::spawn(move || read_until_end(accepted)),
        ];
        Self { namespace: sender, local, stop, threads }
    }

    /// The connection in the kernel's snapshot.
    pub fn look(&self) -> TcpSnapshot {
        wait_for("the connection is seen", || {
            let all = self.namespace.run(|| Snapshotter::open().unwrap().snapshot(None).unwrap());
            all.unwrap().into_iter().find(|found| found.socket.local == self.local)
        })
    }

    pub fn algorithm(&self) -> String {
        self.look().algorithm
    }

    pub fn cwnd(&self) -> u32 {
        self.look().figures.cwnd.get()
    }

    /// The largest of 20 windows, read at intervals of 20 ms.
    pub fn largest_cwnd(&self) -> u32 {
        let cwnds = (0..20).map(|_| {
            std::thread::sleep(Duration::from_millis(20));
            self.cwnd()
        });
        cwnds.max().unwrap_or(0)
    }
}

fn write_until(mut stream: TcpStream, pause: Duration, stop: &AtomicBool) {
    let chunk = vec![0; 1 << 16];
    while !stop.load(Ordering::Relaxed) && stream.write_all(&chunk).is_ok() {
        std::thread::sleep(pause);
    }
}

fn read_until_end(mut stream: TcpStream) {
    let mut chunk = vec![0; 1 << 18];
    while stream.read(&mut chunk).is_ok_and(|length| length > 0) {}
}

impl Drop for Upload {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
