//! Connections and peers that come and go.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use socket2::SockRef;
use wakeai_host::Namespace;

use wakeai_tests::agent::{Agent, Fleet};
use wakeai_tests::bss::Bss;
use wakeai_tests::wakeai;

/// The server's address among five stations.
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 5);
/// The number of open connections of a station. With 50 new connections per second each is open for two seconds, so
/// that agents see it in some of their ticks.
const OPEN: usize = 100;
/// Each time that a connection is opened, a tenth of the open ones send. So each open connection sends at every tenth
/// opening.
const SENDING: usize = 10;
/// The number of bytes that a connection sends at a time.
const BYTES: usize = 2_000;

/// Opens this many connections per second from a station to the server, and closes the oldest ones. Every tenth is
/// reset instead of closed.
pub(crate) struct Connections {
    opened: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Connections {
    pub(crate) fn start(station: Namespace, server: &Namespace, per_second: u32) -> Self {
        let listener = server.run(|| TcpListener::bind((SERVER, 0)).unwrap()).unwrap();
        let address = listener.local_addr().unwrap();
        let (opened, stop) = (Arc::default(), Arc::default());
        let (count, stopped) = (Arc::clone(&opened), Arc::clone(&stop));
        let open = move || {
            station.enter().unwrap();
            open_and_close(address, per_second, &count, &stopped);
            drop(TcpStream::connect(address)); // wakes the server, so that it ends
        };
        let stopped = Arc::clone(&stop);
        let serve = move || serve(&listener, &stopped);
        Self { opened, stop, threads: vec![std::thread::spawn(open), std::thread::spawn(serve)] }
    }

    pub(crate) fn opened(&self) -> u64 {
        self.opened.load(Ordering::Relaxed)
    }
}

impl Drop for Connections {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn open_and_close(to: SocketAddr, per_second: u32, opened: &AtomicU64, stop: &AtomicBool) {
    let began = Instant::now();
    let bytes = vec![0; BYTES];
    let mut open = std::collections::VecDeque::new();
    let mut number = 0;
    while !stop.load(Ordering::Relaxed) {
        let due = began + Duration::from_secs(1) * number / per_second;
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        number += 1;
        let Ok(stream) = TcpStream::connect(to) else { continue };
        opened.fetch_add(1, Ordering::Relaxed);
        if number.is_multiple_of(10) {
            let _ = SockRef::from(&stream).set_linger(Some(Duration::ZERO));
        }
        open.push_back(stream);
        if open.len() > OPEN {
            open.pop_front();
        }
        for stream in open.iter_mut().step_by(SENDING) {
            let _ = stream.write_all(&bytes); // the other end may have closed the connection
        }
    }
}

/// After each new connection, reads from all open ones, without waiting for more bytes.
fn serve(listener: &TcpListener, stop: &AtomicBool) {
    let mut open: Vec<TcpStream> = Vec::new();
    let mut buffer = vec![0; 1 << 16];
    while !stop.load(Ordering::Relaxed) {
        let Ok((stream, _)) = listener.accept() else { continue };
        if stream.set_nonblocking(true).is_ok() {
            open.push(stream);
        }
        open.retain_mut(|stream| {
            loop {
                match stream.read(&mut buffer) {
                    Ok(0) => return false,
                    Ok(_) => {}
                    Err(error) => return error.kind() == std::io::ErrorKind::WouldBlock,
                }
            }
        });
    }
}

/// A station whose agent starts and ends several times, by SIGTERM and by `kill -9` in turn.
pub(crate) struct Peer {
    name: &'static str,
    number: u64,
    agent: Option<Agent>,
    turns: u32,
}

impl Peer {
    pub(crate) fn new(name: &'static str, number: u64) -> Self {
        Self { name, number, agent: None, turns: 0 }
    }

    /// Starts the agent if it does not run, and ends it otherwise.
    pub(crate) fn turn(&mut self, fleet: &Fleet, bss: &Bss) {
        self.turns += 1;
        match self.agent.take() {
            None => self.agent = Some(fleet.start(bss, self.name, self.number, "")),
            Some(mut agent) if self.turns.is_multiple_of(4) => {
                agent.end(Signal::SIGKILL);
                assert!(wakeai(&["sweep"]).status.success());
            }
            Some(mut agent) => assert!(agent.end(Signal::SIGTERM).success(), "{}", agent.log()),
        }
    }

    pub(crate) fn turns(&self) -> u32 {
        self.turns
    }

    pub(crate) fn starts(&self) -> u32 {
        self.turns.div_ceil(2)
    }
}
