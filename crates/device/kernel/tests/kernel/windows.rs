//! Tests which connections have their receive windows bounded, and that the windows are put back.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, poll};
use nix::sys::socket::sockopt::{GetStruct, SetStruct};
use nix::sys::socket::{MsgFlags, getsockopt, recv, setsockopt, sockopt};
use wakeai_kernel::{Bounds, Control, WindowReport};
use wakeai_units::Segments;

use crate::path::PathConfig;
use crate::rig::{Registration, Rig, connect, ip, set};

/// The clamp of a socket's receive window, bytes.
#[derive(Clone, Copy)]
struct Clamp;
nix::getsockopt_impl!(Clamp, libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, u32, GetStruct<u32>);
nix::setsockopt_impl!(Clamp, libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, u32, SetStruct<'_, u32>);

/// The bytes that a socket has to have received before it becomes readable.
#[derive(Clone, Copy)]
struct LowWater;
nix::setsockopt_impl!(LowWater, libc::SOL_SOCKET, libc::SO_RCVLOWAT, i32, SetStruct<'_, i32>);

/// The beginning of `tcp_info`, as far as the window that the peer offers (`tcpi_snd_wnd`).
#[derive(Clone, Copy)]
struct Info;
const INFO_BYTES: usize = 232;
type InfoBytes = [u8; INFO_BYTES];
nix::getsockopt_impl!(Info, libc::IPPROTO_TCP, libc::TCP_INFO, InfoBytes, GetStruct<InfoBytes>);

/// The receiver's maximum segment size over the rig's links: 1500 less 20, 20 and 12 bytes.
const MSS: u32 = 1448;

/// A connection that the station, the rig's receiver, has opened.
struct Download {
    sender: TcpStream,
    receiver: TcpStream,
    stop: Arc<AtomicBool>,
    received: Arc<AtomicU64>,
}

impl Download {
    /// A connection without data. The station uses this algorithm.
    fn open(rig: &Rig, algorithm: &str) -> Self {
        let listen = || TcpListener::bind((Ipv4Addr::new(10, 77, 0, 1), 0)).unwrap();
        let listener = rig.sender.run(listen).unwrap();
        let address = listener.local_addr().unwrap();
        let receiver = rig.receiver.run(|| connect(address, algorithm)).unwrap();
        let (sender, _) = listener.accept().unwrap();
        Self::between(sender, receiver)
    }

    fn between(sender: TcpStream, receiver: TcpStream) -> Self {
        Self { sender, receiver, stop: Arc::default(), received: Arc::default() }
    }

    /// A connection whose peer sends as fast as TCP allows.
    fn start(rig: &Rig, algorithm: &str) -> Self {
        let this = Self::open(rig, algorithm);
        this.send();
        this.read();
        this
    }

    fn send(&self) {
        let (mut output, stop) = (self.sender.try_clone().unwrap(), Arc::clone(&self.stop));
        std::thread::spawn(move || {
            let data = vec![0; 1 << 16];
            while !stop.load(Ordering::Relaxed) && output.write_all(&data).is_ok() {}
        });
    }

    fn read(&self) {
        let (mut input, received) =
            (self.receiver.try_clone().unwrap(), Arc::clone(&self.received));
        std::thread::spawn(move || {
            let mut buffer = vec![0; 1 << 16];
            while let Ok(length @ 1..) = input.read(&mut buffer) {
                received.fetch_add(length as u64, Ordering::Relaxed);
            }
        });
    }

    /// Bytes per second that arrive during a second.
    fn goodput(&self) -> f64 {
        let (before, from) = (self.received.load(Ordering::Relaxed), Instant::now());
        std::thread::sleep(Duration::from_secs(1));
        (self.received.load(Ordering::Relaxed) - before) as f64 / from.elapsed().as_secs_f64()
    }

    /// Waits until more data has arrived.
    fn goes_on(&self) {
        let before = self.received.load(Ordering::Relaxed);
        wait("data arrives", || self.received.load(Ordering::Relaxed) > before);
    }

    fn clamp(&self) -> u32 {
        getsockopt(&self.receiver, Clamp).unwrap()
    }

    /// The window that the sender sees, bytes.
    fn window(&self) -> u32 {
        let info = getsockopt(&self.sender, Info).unwrap();
        u32::from_ne_bytes(*info.last_chunk().unwrap())
    }
}

impl Drop for Download {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.receiver.shutdown(Shutdown::Both);
        let _ = self.sender.shutdown(Shutdown::Both);
    }
}

fn wait(what: &str, mut is_done: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_done() {
        assert!(began.elapsed() < Duration::from_secs(30), "not within 30 s: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

const NOTHING: WindowReport = WindowReport {
    bound: 0,
    moved: 0,
    freed: 0,
    closed: 0,
    multipath: 0,
    refused: 0,
    senders: 0,
    freed_senders: 0,
};

/// The agent of the station.
struct Agent<'a> {
    rig: &'a Rig,
    control: &'a Control,
    netns: u64,
    index: u32,
}

impl<'a> Agent<'a> {
    fn new(rig: &'a Rig, control: &'a Control) -> Self {
        let index = || nix::net::if_::if_nametoindex("wire").unwrap();
        let read = || (wakeai_kernel::netns_cookie().unwrap(), index());
        let (netns, index) = rig.receiver.run(read).unwrap();
        Self { rig, control, netns, index }
    }

    fn bounds(&self, segments: u32) {
        let receive = Segments::new(segments);
        let bounds = Bounds { receive, ..Bounds::NONE };
        self.control.set_interface(self.netns, self.index, bounds).unwrap();
        self.control.heartbeat(self.netns, self.index).unwrap();
    }

    /// Bounds windows. Whether they had moved depends on the kernel's own changes, and is not reported.
    fn run(&self) -> WindowReport {
        WindowReport { moved: 0, ..self.look() }
    }

    fn look(&self) -> WindowReport {
        self.rig.receiver.run(|| self.control.bound_windows().unwrap()).unwrap()
    }

    /// Bounds windows until `is_done`.
    fn until(&self, what: &str, is_done: impl Fn() -> bool) {
        wait(what, || {
            self.control.heartbeat(self.netns, self.index).unwrap();
            self.run();
            is_done()
        });
    }

    /// Bounds windows while `work` runs.
    fn during<T>(&self, work: impl FnOnce() -> T) -> T {
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| self.until("the work ends", || is_over.load(Ordering::Relaxed)));
            let done = work();
            is_over.store(true, Ordering::Relaxed);
            done
        })
    }

    /// Ends, so that no bounds are in force any more.
    fn end(&self) -> WindowReport {
        self.control.clear_interface(self.netns, self.index).unwrap();
        self.run()
    }
}

/// The window of so many segments, in units of its scale: with a buffer of 64 MB (see [`Rig`]) that is 2048 bytes.
fn scaled(segments: u32) -> u32 {
    (segments * MSS).next_multiple_of(2048)
}

#[test]
fn the_sender_sees_smaller_and_larger_windows_and_afterwards_that_of_the_buffer() {
    let Some(registration) = Registration::share() else { return };
    // The window belongs to the receiver, so the congestion control does not matter.
    for algorithm in ["cubic", "wakeai_reno"] {
        let rig = Rig::with_path(PathConfig::CALM);
        let agent = Agent::new(&rig, &registration.0);
        let download = Download::start(&rig, algorithm);
        for (asked, even) in [(20, 20), (5, 6), (60, 60), (1, 2), (30, 30)] {
            agent.bounds(asked);
            let what = format!("the sender sees a window of {even} segments");
            agent.until(&what, || download.window() == scaled(even));
            assert_eq!(download.clamp(), scaled(even));
        }
        assert_eq!(agent.end(), WindowReport { freed: 1, ..NOTHING });
        assert!(download.clamp() > 200_000, "{algorithm}: {}", download.clamp());
        agent.until("the window grows", || download.window() > 200_000);
        assert_eq!(agent.run(), NOTHING);
    }
}

/// The congestion window of a connection, segments.
fn cwnd(stream: &TcpStream) -> u32 {
    const SND_CWND: usize = 80; // `tcpi_snd_cwnd`
    let info = getsockopt(stream, Info).unwrap();
    u32::from_ne_bytes(info[SND_CWND..SND_CWND + 4].try_into().unwrap())
}

#[test]
fn a_congestion_window_is_bounded_where_the_algorithm_applies_no_bounds() {
    let Some(registration) = Registration::share() else { return };
    let rig = Rig::with_path(PathConfig::CALM);
    let agent = Agent::new(&rig, &registration.0);
    // The station sends: the roles of the rig's ends are exchanged.
    let ours = Download::open(&rig, "wakeai_reno");
    let Download { sender, receiver, .. } = &Download::open(&rig, "reno");
    let upload = Download::between(receiver.try_clone().unwrap(), sender.try_clone().unwrap());
    upload.send();
    upload.read();
    wait("the window grows", || cwnd(&upload.sender) > 60);
    for segments in [20, 4, 40] {
        let bounds = Bounds::window(Segments::new(2), Segments::new(segments));
        agent.control.set_interface(agent.netns, agent.index, bounds).unwrap();
        agent.until("the window is bounded", || cwnd(&upload.sender) == segments);
    }
    let report = agent.run();
    assert_eq!(report, WindowReport { senders: 1, ..NOTHING }, "and not that of ours");
    upload.goes_on();
    assert_eq!(agent.end(), WindowReport { freed_senders: 1, ..NOTHING });
    wait("the window grows", || cwnd(&upload.sender) > 60);
    assert_eq!(agent.run(), NOTHING);
    drop(ours);
}

#[test]
fn a_connection_that_changes_to_our_algorithm_has_its_congestion_window_back() {
    let Some(registration) = Registration::share() else { return };
    let rig = Rig::with_path(PathConfig::CALM);
    let agent = Agent::new(&rig, &registration.0);
    let Download { sender, receiver, .. } = &Download::open(&rig, "reno");
    let upload = Download::between(receiver.try_clone().unwrap(), sender.try_clone().unwrap());
    upload.send();
    upload.read();
    let bounds = Bounds::window(Segments::ZERO, Segments::new(20));
    agent.control.set_interface(agent.netns, agent.index, bounds).unwrap();
    agent.control.heartbeat(agent.netns, agent.index).unwrap();
    assert_eq!(agent.run(), WindowReport { senders: 1, ..NOTHING });
    setsockopt(&upload.sender, sockopt::TcpCongestion, &"wakeai_reno".into()).unwrap();
    agent.control.heartbeat(agent.netns, agent.index).unwrap();
    assert_eq!(agent.run(), WindowReport { freed_senders: 1, ..NOTHING });
    // Without bounds nothing of the clamp is left.
    assert_eq!(agent.end(), NOTHING);
    wait("the window grows", || cwnd(&upload.sender) > 60);
}

#[test]
fn a_window_is_bounded_before_data_arrives() {
    let Some(registration) = Registration::share() else { return };
    let rig = Rig::with_veth();
    let agent = Agent::new(&rig, &registration.0);
    let before = Download::open(&rig, "wakeai_cubic");
    agent.bounds(10);
    let opened = Download::open(&rig, "wakeai_cubic");
    assert_eq!(opened.clamp(), scaled(10));
    assert!(before.clamp() > 60_000, "the first tick comes later");
    assert_eq!(agent.run(), WindowReport { bound: 2, ..NOTHING });
    assert_eq!(before.clamp(), scaled(10));
    agent.end();
    let after = Download::open(&rig, "wakeai_cubic");
    for one in [&opened, &before, &after] {
        assert!(one.clamp() > 60_000, "{}", one.clamp());
    }
}

#[test]
fn windows_are_put_back_when_the_algorithms_are_unloaded() {
    let Some(_kernel) = crate::rig::kernel() else { return };
    let control = Control::open().unwrap();
    let rig = Rig::with_veth();
    let agent = Agent::new(&rig, &control);
    agent.bounds(4);
    let download = Download::open(&rig, "wakeai_cubic");
    assert_eq!(download.clamp(), scaled(4));
    assert!(Control::unload().unwrap());
    assert!(download.clamp() > 60_000, "{}", download.clamp());
}

#[test]
fn a_window_is_bounded_again_before_the_request_that_follows_a_handshake() {
    let Some(registration) = Registration::share() else { return };
    let rig = Rig::with_veth();
    let agent = Agent::new(&rig, &registration.0);
    agent.bounds(10);
    let mut download = Download::open(&rig, "wakeai_cubic");
    for _ in 0..3 {
        // Data in both directions, as in a handshake of TLS. After the first segment of full size the kernel may set
        // the clamp anew.
        download.receiver.write_all(&[0; 300]).unwrap();
        download.sender.write_all(&[0; 4000]).unwrap();
        download.receiver.read_exact(&mut [0; 4000]).unwrap();
    }
    download.receiver.write_all(&[0; 100]).unwrap();
    assert_eq!(download.clamp(), scaled(10));
    agent.end();
}

#[test]
fn a_listener_is_left_alone_and_what_it_accepts_is_bounded() {
    let Some(registration) = Registration::share() else { return };
    let rig = Rig::with_path(PathConfig::CALM);
    let agent = Agent::new(&rig, &registration.0);
    set(&rig.receiver, "tcp_congestion_control", "wakeai_cubic");
    let listen = || TcpListener::bind((Ipv4Addr::new(10, 77, 0, 2), 0)).unwrap();
    let listener = rig.receiver.run(listen).unwrap();
    agent.bounds(10);
    let untouched = getsockopt(&listener, Clamp).unwrap();
    assert_eq!(agent.run(), NOTHING);
    assert_eq!(getsockopt(&listener, Clamp).unwrap(), untouched);
    let address = listener.local_addr().unwrap();
    let sender = rig.sender.run(|| TcpStream::connect(address).unwrap()).unwrap();
    let download = Download::between(sender, listener.accept().unwrap().0);
    assert_eq!(download.clamp(), scaled(10));
    download.send();
    download.read();
    agent.until("the sender sees the window", || download.window() == scaled(10));
    assert_eq!(agent.end(), WindowReport { freed: 1, ..NOTHING });
    // The clamp has not chosen the scale: the window grows beyond 64 KB.
    wait("the window grows", || download.window() > 200_000);
}

#[test]
fn a_peer_without_window_scaling_and_timestamps_sees_the_windows_too() {
    let Some(registration) = Registration::share() else { return };
    let rig = Rig::with_path(PathConfig::CALM);
    for option in ["tcp_window_scaling", "tcp_timestamps"] {
        set(&rig.sender, option, "0");
    }
    let agent = Agent::new(&rig, &registration.0);
    agent.bounds(20);
    let download = Download::start(&rig, "wakeai_cubic");
    for segments in [20, 6, 30] {
        agent.bounds(segments);
        agent.until("the sender sees the window", || download.window() == segments * 1460);
    }
    assert_eq!(agent.end(), WindowReport { freed: 1, ..NOTHING });
    wait("the window is as large as one without scale", || download.window() > 60_000);
}

#[test]
fn a_connection_over_ipv6_is_bounded_by_its_own_segments() {
    let Some(registration) = Registration::share() else { return };
    let rig = Rig::with_path(PathConfig::CALM);
    for (namespace, host) in [(&rig.sender, 1), (&rig.receiver, 2)] {
        ip(namespace, &format!("address add fd00:77::{host}/64 dev wire nodad"));
    }
    let agent = Agent::new(&rig, &registration.0);
    let listen = || TcpListener::bind((Ipv6Addr::new(0xfd00, 0x77, 0, 0, 0, 0, 0, 1), 0)).unwrap();
    let listener = rig.sender.run(listen).unwrap();
    let address: SocketAddr = listener.local_addr().unwrap();
    let receiver = rig.receiver.run(|| TcpStream::connect(address).unwrap()).unwrap();
    let download = Download::between(listener.accept().unwrap().0, receiver);
    download.send();
    download.read();
    let expected = (40_u32 * 1428).next_multiple_of(2048);
    assert_ne!(expected, scaled(40));
    agent.bounds(40);
    agent.until("the sender sees the window", || download.window() == expected);
    assert_eq!(agent.end(), WindowReport { freed: 1, ..NOTHING });
}

/// Checks that a connection whose buffer does not grow has the same window afterwards as a twin that was never bounded.
fn as_its_twin(rig: &Rig, agent: &Agent<'_>, prepare: impl Fn(&TcpStream)) {
    let both = [Download::open(rig, "cubic"), Download::open(rig, "cubic")];
    for one in &both {
        prepare(&one.receiver);
    }
    let [bounded, twin] = &both;
    // The twin has its data before bounds are in force.
    for one in [twin, bounded] {
        one.send();
        one.read();
        one.goes_on();
    }
    twin.receiver.shutdown(Shutdown::Both).unwrap();
    let of_twin = f64::from(twin.clamp());
    agent.bounds(6);
    agent.until("the sender sees the window", || bounded.window() == scaled(6));
    assert_eq!(agent.end().freed, 1);
    let ratio = f64::from(bounded.clamp()) / of_twin;
    assert!((0.95..1.05).contains(&ratio), "{} and {of_twin}", bounded.clamp());
    bounded.goes_on();
}

#[test]
fn a_buffer_that_does_not_grow_gives_the_same_window_afterwards() {
    let Some(registration) = Registration::share() else { return };
    let rig = Rig::with_path(PathConfig::CALM);
    let agent = Agent::new(&rig, &registration.0);
    as_its_twin(&rig, &agent, |socket| setsockopt(socket, sockopt::RcvBuf, &50_000).unwrap());
    set(&rig.receiver, "tcp_moderate_rcvbuf", "0");
    as_its_twin(&rig, &agent, |_| {});
}

#[test]
fn an_application_that_waits_for_more_than_the_window_gets_it() {
    let Some(registration) = Registration::share() else { return };
    let rig = Rig::with_path(PathConfig::CALM);
    let agent = Agent::new(&rig, &registration.0);
    agent.bounds(4);
    let mut buffer = vec![0; 100_000];
    let waiting = Download::open(&rig, "wakeai_cubic");
    setsockopt(&waiting.receiver, LowWater, &50_000).unwrap();
    waiting.send();
    agent.during(|| {
        for _ in 0..5 {
            let mut one = [PollFd::new(waiting.receiver.as_fd(), PollFlags::POLLIN)];
            assert_eq!(poll(&mut one, 20_000_u16).unwrap(), 1, "SO_RCVLOWAT stalls");
            let flags = MsgFlags::MSG_DONTWAIT;
            let length = recv(waiting.receiver.as_raw_fd(), &mut buffer, flags).unwrap();
            assert!(length >= 50_000, "{length} bytes woke the application");
        }
    });
    assert_eq!(waiting.clamp(), scaled(4));
    let peeking = Download::open(&rig, "wakeai_cubic");
    peeking.receiver.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    peeking.send();
    agent.during(|| {
        let flags = MsgFlags::MSG_PEEK | MsgFlags::MSG_WAITALL;
        let length = recv(peeking.receiver.as_raw_fd(), &mut buffer, flags).unwrap();
        assert_eq!(length, buffer.len(), "MSG_PEEK stalls");
    });
    assert_eq!(peeking.clamp(), scaled(4));
    agent.end();
}

#[test]
fn an_applications_own_clamp_is_never_exceeded_and_is_put_back() {
    let Some(registration) = Registration::share() else { return };
    let rig = Rig::with_veth();
    let agent = Agent::new(&rig, &registration.0);
    let connection = Download::open(&rig, "cubic");
    let own = |bytes: u32| setsockopt(&connection.receiver, Clamp, &bytes).unwrap();
    let bounded = |segments| {
        agent.bounds(segments);
        assert_eq!(agent.run().bound, 1);
        connection.clamp()
    };
    let moved = || agent.look().moved;
    own(10_000);
    assert_eq!(bounded(20), 10_000);
    assert_eq!(moved(), 0);
    assert_eq!(bounded(4), scaled(4));
    assert_eq!(bounded(30), 10_000);
    assert_eq!(bounded(2), scaled(2));
    assert_eq!((agent.end().freed, connection.clamp()), (1, 10_000));
    // It sets another one while the window is bounded.
    assert_eq!(bounded(4), scaled(4));
    own(20_000);
    assert_eq!((moved(), connection.clamp()), (1, scaled(4)));
    assert_eq!(moved(), 0);
    assert_eq!((agent.end().freed, connection.clamp()), (1, 20_000));
    // It sets one after the last tick.
    assert_eq!(bounded(4), scaled(4));
    own(5_000);
    assert_eq!((agent.end().freed, connection.clamp()), (1, 5_000));
}

#[test]
fn a_window_that_is_closed_is_not_written_and_opens_again() {
    let Some(registration) = Registration::share() else { return };
    let rig = Rig::with_veth();
    let agent = Agent::new(&rig, &registration.0);
    let closed = Download::open(&rig, "cubic");
    closed.send();
    wait("the window closes", || closed.window() == 0);
    let before = closed.clamp();
    agent.bounds(6);
    assert_eq!(agent.run(), WindowReport { closed: 1, ..NOTHING });
    assert_eq!(closed.clamp(), before);
    closed.read();
    agent.until("the window is bounded", || closed.window() == scaled(6));
    agent.end();
    drop(closed);

    // A bound that ends while the window is closed.
    let closed = Download::open(&rig, "wakeai_cubic");
    agent.bounds(6);
    closed.send();
    agent.until("the window closes", || closed.clamp() == scaled(6) && closed.window() == 0);
    assert_eq!(agent.end().freed, 1);
    closed.read();
    wait("the window grows", || closed.window() > 60_000);
}

#[test]
fn a_connection_that_leaves_the_interface_has_its_window_back() {
    let Some(registration) = Registration::share() else { return };
    let rig = Rig::with_veth();
    let agent = Agent::new(&rig, &registration.0);
    let mut connection = Download::open(&rig, "cubic");
    agent.bounds(6);
    assert_eq!(agent.run().bound, 1);
    ip(&rig.receiver, "route add 10.77.0.1/32 via 10.78.0.1 dev side");
    connection.receiver.write_all(b"over the other link").unwrap();
    assert_eq!(agent.run(), WindowReport { freed: 1, ..NOTHING });
    assert!(connection.clamp() > 60_000, "{}", connection.clamp());
}

#[test]
fn a_subflow_of_mptcp_is_counted_and_left_alone() {
    use rustix::net::{AddressFamily, SocketType, ipproto, socket};
    let Some(registration) = Registration::share() else { return };
    let rig = Rig::with_veth();
    let agent = Agent::new(&rig, &registration.0);
    let make = || socket(AddressFamily::INET, SocketType::STREAM, Some(ipproto::MPTCP)).unwrap();
    let listener = TcpListener::from(rig.sender.run(make).unwrap());
    let any = std::net::SocketAddrV4::new(Ipv4Addr::new(10, 77, 0, 1), 0);
    rustix::net::bind(&listener, &any).unwrap();
    rustix::net::listen(&listener, 1).unwrap();
    let address = listener.local_addr().unwrap();
    let receiver = rig.receiver.run(make).unwrap();
    rustix::net::connect(&receiver, &address).unwrap();
    let mut peer = listener.accept().unwrap().0;
    peer.write_all(b"over both").unwrap();
    TcpStream::from(receiver).read_exact(&mut [0; 9]).unwrap();
    let other = Download::open(&rig, "cubic");
    agent.bounds(6);
    assert_eq!(agent.run(), WindowReport { multipath: 1, bound: 1, ..NOTHING });
    assert_eq!(other.clamp(), scaled(6));
    agent.end();
}

#[test]
fn afterwards_a_connection_is_as_fast_as_one_that_was_never_bounded() {
    let Some(registration) = Registration::share() else { return };
    // A bandwidth-delay product of 500 kB, so that the window has to grow again.
    let long = PathConfig {
        one_way_delay: Duration::from_millis(50),
        queue_packets: 600,
        ..PathConfig::CALM
    };
    let rigs = [Rig::with_path(long), Rig::with_path(long)];
    let [bounded, twin] = rigs.each_ref().map(|rig| Download::start(rig, "cubic"));
    let agent = Agent::new(&rigs[0], &registration.0);
    agent.bounds(10);
    agent.until("the sender sees the window", || bounded.window() == scaled(10));
    let ratio = || {
        let other = std::thread::scope(|scope| {
            let of_twin = scope.spawn(|| twin.goodput());
            (bounded.goodput(), of_twin.join().unwrap())
        });
        other.0 / other.1
    };
    let held = agent.during(ratio);
    assert!(held < 0.5, "the window does not hold: {held}");
    assert_eq!(agent.end(), WindowReport { freed: 1, ..NOTHING });
    let after: Vec<_> = std::iter::repeat_with(ratio).take(10).collect();
    println!("held {held:.3}, then {after:.3?}");
    assert!(after.iter().any(|ratio| *ratio > 0.95), "{after:.3?}");
}

#[test]
fn a_run_bounds_every_connection() {
    const CONNECTIONS: u32 = 1000;
    let Some(registration) = Registration::share() else { return };
    let rig = Rig::with_veth();
    let agent = Agent::new(&rig, &registration.0);
    let listen = || TcpListener::bind((Ipv4Addr::new(10, 77, 0, 1), 0)).unwrap();
    let listener = rig.sender.run(listen).unwrap();
    let address = listener.local_addr().unwrap();
    let open = |_| {
        let receiver = connect(address, "cubic");
        Download::between(listener.accept().unwrap().0, receiver)
    };
    let run = |expected| {
        let timed = || {
            let began = cpu_time();
            (agent.control.bound_windows().unwrap(), cpu_time().saturating_sub(began))
        };
        let (done, took) = rig.receiver.run(timed).unwrap();
        assert_eq!(done, expected);
        println!("{took:?} for {expected:?}");
    };
    run(NOTHING);
    let all: Vec<_> = rig.receiver.run(|| (0..CONNECTIONS).map(open).collect()).unwrap();
    // The windows that the agent has changed itself have not moved.
    for (segments, moved) in [(10, CONNECTIONS), (20, 0)] {
        agent.bounds(segments);
        run(WindowReport { bound: CONNECTIONS, moved, ..NOTHING });
        assert!(all.iter().all(|one| one.clamp() == scaled(segments)));
    }
    agent.control.clear_interface(agent.netns, agent.index).unwrap();
    run(WindowReport { freed: CONNECTIONS, ..NOTHING });
}

/// The processor time of the calling thread.
fn cpu_time() -> Duration {
    nix::time::clock_gettime(nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap().into()
}
