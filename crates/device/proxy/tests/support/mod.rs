//! A proxy that runs on a thread of its own, and connections of clients to it.

#![allow(clippy::unwrap_used, reason = "a helper that fails, fails the test")]

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::sync::oneshot;
use wakeai_proxy::{Access, Config, Event, Leg, Report, run};

/// The time after which a test counts as hanging. It is long, because the machine may be busy.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

pub(crate) fn config() -> Config {
    Config {
        listen: vec!["127.0.0.1:0".parse().unwrap()],
        transparent: Vec::new(),
        in_interfaces: Vec::new(),
        algorithm: None,
        rates: Vec::new(),
        leg: Leg::Destination,
        access: Access::default(),
        connections: 100,
        memory: "1MB".parse().unwrap(),
        connect_timeout: "20s".parse().unwrap(),
        idle_timeout: "60s".parse().unwrap(),
        metrics: None,
        confined: false,
        user: None,
    }
}

pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<Report>,
    reported: Arc<Mutex<Report>>,
}

impl Proxy {
    pub(crate) fn start(config: Config) -> Self {
        let (stop, stopped) = oneshot::channel();
        let (ready, listening) = mpsc::channel();
        let reported = Arc::new(Mutex::new(Report::default()));
        let last = Arc::clone(&reported);
        let thread = std::thread::spawn(move || {
            let shutdown = async { drop(stopped.await) };
            run(config, shutdown, |event| match event {
                Event::Listening(addresses) => ready.send(addresses[0]).unwrap(),
                Event::Report(report) => *last.lock().unwrap() = report,
            })
            .unwrap();
            last.lock().unwrap().clone()
        });
        Self { address: listening.recv_timeout(PATIENCE).unwrap(), stop, thread, reported }
    }

    /// Ends the proxy once its counts are as they should be; returns its counts.
    pub(crate) fn stop_when(self, is_so: impl Fn(&Report) -> bool) -> Report {
        let begun = std::time::Instant::now();
        loop {
            // All proxies of this process report; each has its handler before it listens.
            kill(Pid::this(), Signal::SIGUSR1).unwrap();
            std::thread::sleep(Duration::from_millis(20));
            let report = self.reported.lock().unwrap().clone();
            if report.accepted > 0 && is_so(&report) {
                return self.stop();
            }
            assert!(begun.elapsed() < PATIENCE, "{report:?}");
        }
    }

    /// Ends the proxy; returns its counts.
    pub(crate) fn stop(self) -> Report {
        drop(self.stop);
        self.thread.join().unwrap()
    }

    pub(crate) fn dial(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Sends a SOCKS5 request; returns the connection and the code of the reply.
    pub(crate) fn ask(&self, to: SocketAddr) -> (TcpStream, u8) {
        let mut stream = self.dial();
        let mut request = b"\x05\x01\x00\x05\x01\x00".to_vec();
        match to {
            SocketAddr::V4(to) => {
                request.push(1);
                request.extend(to.ip().octets());
            }
            SocketAddr::V6(to) => {
                request.push(4);
                request.extend(to.ip().octets());
            }
        }
        request.extend(to.port().to_be_bytes());
        stream.write_all(&request).unwrap();
        let mut reply = [0; 6];
        stream.read_exact(&mut reply).unwrap();
        assert_eq!((reply[..3]).as_ref(), b"\x05\x00\x05");
        let address = if reply[5] == 4 { 16 } else { 4 };
        stream.read_exact(&mut vec![0; address + 2]).unwrap();
        (stream, reply[3])
    }

    /// Both ends of a connection through the proxy.
    pub(crate) fn pair(&self) -> (TcpStream, TcpStream) {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let (client, code) = self.ask(server.local_addr().unwrap());
        assert_eq!(code, 0);
        let (accepted, _) = server.accept().unwrap();
        accepted.set_read_timeout(Some(PATIENCE)).unwrap();
        accepted.set_write_timeout(Some(PATIENCE)).unwrap();
        (client, accepted)
    }
}

/// Bytes whose values show their positions.
pub(crate) fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at ^ (at >> 8) ^ (at >> 16)) as u8).collect()
}
