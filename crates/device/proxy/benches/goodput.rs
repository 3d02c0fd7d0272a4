//! Compares the goodput through the proxy with that of a direct connection on the same path, in one
//! run. It does so for one and for 100 connections, with and without a bottleneck on the path.
//! Needs root: `cargo bench -p wakeai-proxy --bench goodput -- [seconds]`.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a bench panics or prints")]

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use wakeai_host::Namespace;
use wakeai_proxy::{Access, Config, Event, Leg};

const REPEATS: usize = 3;
const SLOW_START: Duration = Duration::from_millis(500);

fn main() {
    if !nix::unistd::geteuid().is_root() {
        println!("SKIPPED: needs root");
        return;
    }
    let seconds = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(3);
    let span = Duration::from_secs(seconds);
    println!("bottleneck  connections  direct Mbit/s  proxy Mbit/s  ratio");
    for bottleneck in [Some("100mbit"), Some("1gbit"), Some("5gbit"), Some("10gbit"), None] {
        let path = BenchPath::new(bottleneck);
        let proxy = Proxy::start(&path.near);
        for connections in [1, 100] {
            let (mut direct, mut through) = (0.0, 0.0);
            for _ in 0..REPEATS {
                direct += goodput(&path, None, connections, span);
                through += goodput(&path, Some(proxy.address), connections, span);
            }
            let (direct, through) = (direct / REPEATS as f64, through / REPEATS as f64);
            let name = bottleneck.unwrap_or("none");
            let ratio = through / direct;
            println!("{name:>10} {connections:>12} {direct:>14.1} {through:>13.1} {ratio:>6.3}");
        }
        proxy.stop();
    }
}

fn must(program: &str, arguments: &str) {
    let status = Command::new(program).args(arguments.split(' ')).status().unwrap();
    assert!(status.success(), "{program} {arguments}");
}

/// Two namespaces that a veth link connects: `near` with the sender and the proxy at 10.73.0.1, and
/// `far` with the receiver at 10.73.0.2.
struct BenchPath {
    near: Namespace,
    far: Namespace,
}

impl BenchPath {
    fn new(bottleneck: Option<&str>) -> Self {
        let [near, far] = ["near", "far"].map(|end| {
            let name = format!("wkb-{}-{end}", std::process::id());
            must("ip", &format!("netns add {name}"));
            must("ip", &format!("-n {name} link set lo up"));
            Namespace::open(&name).unwrap()
        });
        let (here, there) = (near.name(), far.name());
        must("ip", &format!("-n {here} link add eth0 type veth peer name eth0 netns {there}"));
        for (name, host) in [(here, 1), (there, 2)] {
            must("ip", &format!("-n {name} addr add 10.73.0.{host}/24 dev eth0"));
            must("ip", &format!("-n {name} link set eth0 up"));
        }
        if let Some(rate) = bottleneck {
            let queue = format!("tbf rate {rate} burst 128kb latency 20ms");
            must("tc", &format!("-n {here} qdisc add dev eth0 root {queue}"));
        }
        Self { near, far }
    }
}

impl Drop for BenchPath {
    fn drop(&mut self) {
        for namespace in [&self.near, &self.far] {
            let _ = Namespace::remove(namespace.name());
        }
    }
}

struct Proxy {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl Proxy {
    fn start(near: &Namespace) -> Self {
        let (stop, stopped) = oneshot::channel();
        let (ready, listening) = mpsc::channel();
        let near = Namespace::open(near.name()).unwrap();
        let config = Config {
            listen: vec!["127.0.0.1:0".parse().unwrap()],
            transparent: Vec::new(),
            in_interfaces: Vec::new(),
            algorithm: None,
            rates: Vec::new(),
            leg: Leg::Destination,
            access: Access::default(),
            connections: 1000,
            memory: "64MB".parse().unwrap(),
            connect_timeout: "10s".parse().unwrap(),
            idle_timeout: "60s".parse().unwrap(),
            metrics: None,
            confined: false,
            user: None,
        };
        let thread = std::thread::spawn(move || {
            near.enter().unwrap();
            let tell = |event| {
                if let Event::Listening(addresses) = event {
                    ready.send(addresses[0]).unwrap();
                }
            };
            wakeai_proxy::run(config, async { drop(stopped.await) }, tell).unwrap();
        });
        Self { address: listening.recv().unwrap(), stop, thread }
    }

    fn stop(self) {
        drop(self.stop);
        self.thread.join().unwrap();
    }
}

/// The rate, in Mbit/s, at which bytes arrive at the far end.
fn goodput(path: &BenchPath, proxy: Option<SocketAddr>, connections: usize, span: Duration) -> f64 {
    let listener = path.far.run(|| TcpListener::bind("10.73.0.2:0").unwrap()).unwrap();
    let to = listener.local_addr().unwrap();
    let (stop, arrived) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let (mut threads, mut ends) = (Vec::new(), Vec::new());
    // All connections are opened before the first sends data: on a full path a SYN may be lost, and
    // its repetition takes a second.
    let opened: Vec<_> = (0..connections)
        .map(|_| {
            let stream = path.near.run(|| open(to, proxy)).unwrap();
            (stream, listener.accept().unwrap().0)
        })
        .collect();
    for (stream, accepted) in opened {
        ends.push(stream.try_clone().unwrap());
        let stopped = Arc::clone(&stop);
        threads.push(std::thread::spawn(move || write_until(stream, &stopped)));
        let (stopped, arrived) = (Arc::clone(&stop), Arc::clone(&arrived));
        threads.push(std::thread::spawn(move || count(accepted, &stopped, &arrived)));
    }
    std::thread::sleep(SLOW_START);
    let (start, before) = (Instant::now(), arrived.load(Ordering::Relaxed));
    std::thread::sleep(span);
    let bytes = arrived.load(Ordering::Relaxed) - before;
    let goodput = bytes as f64 * 8e-6 / start.elapsed().as_secs_f64();
    stop.store(true, Ordering::Relaxed);
    for end in ends {
        // A reset discards what is under way, so that it does not disturb the next measurement.
        socket2::SockRef::from(&end).set_linger(Some(Duration::ZERO)).unwrap();
        let _ = end.shutdown(Shutdown::Both);
    }
    for thread in threads {
        thread.join().unwrap();
    }
    goodput
}

fn open(to: SocketAddr, proxy: Option<SocketAddr>) -> TcpStream {
    let Some(proxy) = proxy else { return TcpStream::connect(to).unwrap() };
    let mut stream = TcpStream::connect(proxy).unwrap();
    write!(stream, "CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n\r\n").unwrap();
    let mut answer = [0; 39];
    stream.read_exact(&mut answer).unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 200 ") && answer.ends_with(b"\r\n\r\n"));
    stream
}

fn write_until(mut stream: TcpStream, stop: &AtomicBool) {
    let chunk = vec![0; 1 << 17];
    while !stop.load(Ordering::Relaxed) && stream.write_all(&chunk).is_ok() {}
}

/// Counts the received bytes until it is stopped. It does not wait for the sender's reset, which
/// may be lost on a full path.
fn count(mut stream: TcpStream, stop: &AtomicBool, arrived: &AtomicU64) {
    stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let mut chunk = vec![0; 1 << 18];
    while !stop.load(Ordering::Relaxed) {
        if let Ok(length) = stream.read(&mut chunk) {
            arrived.fetch_add(length as u64, Ordering::Relaxed);
        }
    }
}
