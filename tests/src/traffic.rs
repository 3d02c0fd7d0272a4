//! TCP connections: uploads that send as much as they can, or 64 kB at a time with pauses, and downloads.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::libc;
use nix::sys::socket::{getsockopt, sockopt::GetStruct};
use socket2::{Domain, Protocol, Socket, Type};
use wakeai_host::Namespace;
use wakeai_kernel::{Snapshotter, TcpSnapshot};

use crate::bss::Bss;
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
        self.look().algorithm.to_string()
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

/// The clamp of a socket's receive window, bytes.
#[derive(Clone, Copy)]
struct Clamp;
nix::getsockopt_impl!(Clamp, libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, u32, GetStruct<u32>);

/// A connection over which the server sends to a station, 16 kB per millisecond.
pub struct Download {
    end: TcpStream,
    was_bounded: Arc<AtomicBool>,
}

impl Download {
    /// Starts a download from the server, which has this address, to a station.
    pub fn start(bss: &Bss, station: &str, address: [u8; 4]) -> Self {
        let listen = || TcpListener::bind((Ipv4Addr::from(address), 0)).unwrap();
        let listener = bss.namespace("server").run(listen).unwrap();
        let to = listener.local_addr().unwrap();
        let mut end = bss.namespace(station).run(|| TcpStream::connect(to).unwrap()).unwrap();
        let mut output = listener.accept().unwrap().0;
        let was_bounded = Arc::new(AtomicBool::new(false));
        let download =
            Self { end: end.try_clone().unwrap(), was_bounded: Arc::clone(&was_bounded) };
        std::thread::spawn(move || {
            while output.write_all(&[0; 1 << 14]).is_ok() {
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        std::thread::spawn(move || {
            while end.read(&mut [0; 1 << 14]).is_ok_and(|read| read > 0) {
                was_bounded.fetch_or(is_bounded(&end), Ordering::Relaxed);
            }
        });
        download
    }

    /// Whether its receive window is bounded to a few segments.
    pub fn is_bounded(&self) -> bool {
        is_bounded(&self.end)
    }

    /// Whether its receive window has ever been bounded.
    pub fn was_bounded(&self) -> bool {
        self.was_bounded.load(Ordering::Relaxed)
    }

    /// Waits until its window is bounded to 4 segments, and stays bounded. What was in flight before may enlarge the
    /// buffer, and then the kernel writes the window anew.
    pub fn bounded(&self) {
        let stays = || {
            let is_bounded = |_| {
                std::thread::sleep(Duration::from_millis(20));
                self.is_bounded()
            };
            (0..20).all(is_bounded).then_some(())
        };
        wait_for("the window is bounded", stays);
    }

    /// Waits until its window is bounded no longer.
    pub fn put_back(&self) {
        wait_for("the window is put back", || (!self.is_bounded()).then_some(()));
    }
}

fn is_bounded(end: &TcpStream) -> bool {
    getsockopt(end, Clamp).unwrap() < 10_000
}

impl Drop for Download {
    fn drop(&mut self) {
        let _ = self.end.shutdown(std::net::Shutdown::Both);
    }
}
