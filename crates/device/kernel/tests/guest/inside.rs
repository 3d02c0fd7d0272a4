//! The checks inside the guest. Its only network interface is the loopback.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::time::{Duration, Instant};

use nix::sys::socket::sockopt::GetStruct;
use nix::sys::socket::{
    AddressFamily, SockFlag, SockProtocol, SockType, SockaddrIn, connect, getsockopt, setsockopt,
    socket, sockopt,
};
use wakeai_host::Netlink;
use wakeai_kernel::features::{self, CongControl};
use wakeai_kernel::{
    Assigner, Assignment, Bounded, Bounds, Control, Covered, Egress, EgressHook, EventKind,
    Monitor, MonitorConfig, Record, TcpSnapshot, UdpFlow, move_connections, netns_cookie, snapshot,
};
use wakeai_units::{Rate, Segments};

/// The index of the loopback interface, which is the same in all namespaces.
const LOOPBACK: u32 = 1;

const AVAILABLE: &str = "net.ipv4.tcp_available_congestion_control";

/// A ceiling in segments, far below the window that a connection over the loopback reaches.
const CEILING: u32 = 4;

pub(crate) fn run() {
    let found = features::detect();
    println!("guest: Linux {} on {}", found.kernel_release, std::env::consts::ARCH);
    let release = version(&found.kernel_release);
    let expected = if release < (6, 10) { CongControl::Short } else { CongControl::Long };
    assert_eq!(found.cong_control, Some(expected));
    assert_eq!(found.struct_ops_link, release >= (6, 4));
    assert!(found.to_bound().is_ok() && found.to_monitor().is_ok(), "{found:?}");
    let control = if found.struct_ops_link {
        Control::open().unwrap()
    } else {
        registration_is_shared_and_found_again(Control::open().unwrap())
    };
    for bounded in Bounded::ALL {
        a_connection_is_moved_obeys_a_ceiling_and_ends(&control, bounded);
        println!("guest: {} carried a connection", bounded.name);
    }
    congestion_windows_of_other_algorithms_are_bounded_and_put_back(&control);
    receive_windows_are_bounded_and_put_back(&control, found.receive_windows);
    connections_are_moved_and_restored();
    datagrams_are_counted_and_slowed();
    datagrams_are_delayed_behind_fq();
    nothing_is_left();
    println!("guest: all checks made");
}

/// The first two numbers of a release.
fn version(release: &str) -> (u32, u32) {
    let mut numbers = release.split(|byte: char| !byte.is_ascii_digit()).map(str::parse);
    let mut next = || numbers.next().unwrap().unwrap();
    (next(), next())
}

/// Checks that a second process shares the registration. Then removes the pins, as if a process had
/// died between registering and pinning. Without links the registration remains, and the next
/// process finds it by its name.
fn registration_is_shared_and_found_again(first: Control) -> Control {
    drop(first);
    let second = Control::open().unwrap();
    drop(second);
    std::fs::remove_dir_all("/sys/fs/bpf/wakeai").unwrap();
    let names = wakeai_host::read_sysctl(AVAILABLE).unwrap();
    assert!(Bounded::ALL.iter().all(|one| names.split(' ').any(|name| name == one.name)));
    Control::open().unwrap()
}

fn a_connection_is_moved_obeys_a_ceiling_and_ends(control: &Control, bounded: Bounded) {
    let cookie = netns_cookie().unwrap();
    let ceiling = Bounds::from_numbers(0, CEILING, 0, 0);
    control.set_interface(cookie, LOOPBACK, ceiling).unwrap();
    control.heartbeat(cookie, LOOPBACK).unwrap();
    let mut monitor =
        Monitor::open(&MonitorConfig { every_ack: true, ..MonitorConfig::default() }).unwrap();
    let (mut sender, mut receiver) = connection();
    let moved = move_connections(&["cubic"], bounded.name, Some(LOOPBACK)).unwrap();
    assert!(moved.moved >= 2 && moved.failed == 0, "{moved:?}");
    let port = sender.local_addr().unwrap().port();
    // Only wakeai_av uses this target, which is in bytes per second.
    control.set_target(own(port).socket.cookie, 10_000_000).unwrap();
    let mut buffer = vec![0; 16384];
    for _ in 0..400 {
        control.heartbeat(cookie, LOOPBACK).unwrap();
        sender.write_all(&buffer).unwrap();
        receiver.read_exact(&mut buffer).unwrap();
    }
    assert_eq!(*own(port).algorithm, *bounded.name);
    sender.shutdown(Shutdown::Write).unwrap();
    assert_eq!(receiver.read(&mut buffer).unwrap(), 0, "the end comes after the last byte");
    obeyed(&mut monitor, port);
}

fn connection() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (sender, listener.accept().unwrap().0)
}

/// The connection whose local port is `port`.
fn own(port: u16) -> TcpSnapshot {
    let connections = snapshot(Some(LOOPBACK)).unwrap();
    connections.into_iter().find(|one| one.socket.local.port() == port).unwrap()
}

fn obeyed(monitor: &mut Monitor, port: u16) {
    let mut windows = Vec::new();
    let mut opened = 0;
    let mut keep = |record: Record| match record.event {
        None if record.socket.local.port() == port => windows.push(record.figures.cwnd.get()),
        Some(EventKind::Opened) => opened += 1,
        _ => {}
    };
    monitor.poll(Duration::from_millis(10), &mut keep).unwrap();
    assert_eq!(monitor.lost(), 0);
    assert_eq!(opened, 2);
    assert!(windows.len() > 10, "{} samples", windows.len());
    assert!(windows[1..].iter().all(|&cwnd| cwnd <= CEILING), "{windows:?}");
}

#[derive(Clone, Copy)]
struct Clamp;
nix::getsockopt_impl!(Clamp, libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, u32, GetStruct<u32>);

/// The beginning of `tcp_info`, as far as the window that the peer offers (`tcpi_snd_wnd`).
#[derive(Clone, Copy)]
struct Info;
const INFO_BYTES: usize = 232;
type InfoBytes = [u8; INFO_BYTES];
nix::getsockopt_impl!(Info, libc::IPPROTO_TCP, libc::TCP_INFO, InfoBytes, GetStruct<InfoBytes>);

/// Checks that a connection of the kernel's own algorithm has a ceiling while the interface has one. It leaves the
/// interface without bounds.
fn congestion_windows_of_other_algorithms_are_bounded_and_put_back(control: &Control) {
    let cookie = netns_cookie().unwrap();
    let (mut sender, mut receiver) = with_small_segments();
    let port = sender.local_addr().unwrap().port();
    assert_eq!(&*own(port).algorithm, "cubic");
    std::thread::spawn(
        move || while receiver.read(&mut [0; 1 << 14]).is_ok_and(|bytes| bytes > 0) {},
    );
    // A window that is not full stays as it is.
    let mut until = |bounds: Bounds, is_done: &dyn Fn(u32) -> bool| {
        control.set_interface(cookie, LOOPBACK, bounds).unwrap();
        control.heartbeat(cookie, LOOPBACK).unwrap();
        let report = control.bound_windows().unwrap();
        for _ in 0..4_000 {
            sender.write_all(&[0; 1 << 14]).unwrap();
            let cwnd = own(port).figures.cwnd.get();
            if is_done(cwnd) {
                return (report, cwnd);
            }
        }
        panic!("{bounds}: {} segments", own(port).figures.cwnd);
    };
    let ceiling = Bounds::window(Segments::ZERO, Segments::new(CEILING));
    let (report, _) = until(ceiling, &|cwnd| cwnd == CEILING);
    assert!(report.senders > 0, "{report:?}");
    let (report, cwnd) = until(Bounds::NONE, &|cwnd| cwnd > 5 * CEILING);
    assert!(report.freed_senders > 0 && report.senders == 0, "{report:?}");
    println!("guest: a window of cubic had {CEILING} segments under a ceiling, and then {cwnd}");
}

/// Checks that the sender sees smaller and larger windows, and a large one afterwards.
fn receive_windows_are_bounded_and_put_back(control: &Control, are_bounded: bool) {
    assert!(are_bounded, "every kernel of the list bounds the windows of running connections");
    let cookie = netns_cookie().unwrap();
    let (mut sender, mut receiver) = with_small_segments();
    let port = receiver.local_addr().unwrap().port();
    let window = |sender: &TcpStream| {
        let info = getsockopt(sender, Info).unwrap();
        u32::from_ne_bytes(*info.last_chunk().unwrap())
    };
    std::thread::spawn(
        move || while receiver.read(&mut [0; 1 << 14]).is_ok_and(|bytes| bytes > 0) {},
    );
    let mut until = |what: &str, is_done: &dyn Fn(u32, u32) -> bool| {
        for _ in 0..10_000 {
            control.heartbeat(cookie, LOOPBACK).unwrap();
            control.bound_windows().unwrap();
            sender.write_all(&[0; 1 << 14]).unwrap();
            let (mss, seen) = (own(port).receiving.mss.get() as u32, window(&sender));
            if is_done(mss, seen) {
                return println!(
                    "guest: {what}: the sender sees {seen} bytes with segments of {mss}"
                );
            }
        }
        panic!("{what}: the sender sees {} bytes", window(&sender));
    };
    until("unbounded", &|_, seen| seen > 100_000);
    let receive = |segments| Bounds { receive: Segments::new(segments), ..Bounds::NONE };
    for segments in [20, 4, 40] {
        control.set_interface(cookie, LOOPBACK, receive(segments)).unwrap();
        let bounded = |mss: u32, seen: u32| {
            (segments * mss..segments * mss + 4096).contains(&seen) && mss < 1500
        };
        until(&format!("bounded to {segments} segments"), &bounded);
    }
    control.clear_interface(cookie, LOOPBACK).unwrap();
    assert!(control.bound_windows().unwrap().freed > 0);
    control.set_interface(cookie, LOOPBACK, Bounds::NONE).unwrap();
    until("put back", &|_, seen| seen > 100_000);

    control.set_interface(cookie, LOOPBACK, receive(10)).unwrap();
    control.heartbeat(cookie, LOOPBACK).unwrap();
    set_default("wakeai_cubic");
    let (mut sender, mut receiver) = with_small_segments();
    let clamp = |receiver: &TcpStream| getsockopt(receiver, Clamp).unwrap();
    let mss = own(receiver.local_addr().unwrap().port()).receiving.mss.get() as u32;
    assert!((10 * mss..10 * mss + 4096).contains(&clamp(&receiver)), "{}", clamp(&receiver));
    sender.write_all(&[0; 8000]).unwrap();
    receiver.read_exact(&mut [0; 8000]).unwrap();
    println!("guest: after the first data the clamp is {}", clamp(&receiver));
    control.clear_interface(cookie, LOOPBACK).unwrap();
    set_default("cubic");
}

/// A connection whose second end has announced segments of 1460 bytes. The loopback's are of 64 KB.
fn with_small_segments() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let SocketAddr::V4(address) = listener.local_addr().unwrap() else { unreachable!() };
    let (family, flags) = (AddressFamily::Inet, SockFlag::SOCK_CLOEXEC);
    let receiver = socket(family, SockType::Stream, flags, SockProtocol::Tcp).unwrap();
    setsockopt(&receiver, sockopt::TcpMaxSeg, &1460).unwrap();
    connect(receiver.as_raw_fd(), &SockaddrIn::from(address)).unwrap();
    (listener.accept().unwrap().0, TcpStream::from(receiver))
}

/// Checks existing connections, new connections of a cgroup, and connections that have the
/// algorithm by default.
fn connections_are_moved_and_restored() {
    let before = wakeai_host::read_sysctl(DEFAULT).unwrap();
    let ruled_by = |name: &str| {
        let all = snapshot(Some(LOOPBACK)).unwrap();
        all.iter().filter(|connection| *connection.algorithm == *name).count()
    };
    let assignment = |algorithm, covered| {
        let (bytes_per_second, owner) = (1_000_000, std::process::id());
        Assignment { algorithm, covered, bytes_per_second, destination: None, owner }
    };

    let ends = connection();
    let mut existing = Assigner::open(&assignment("wakeai_reno", Covered::Existing)).unwrap();
    existing.take_existing(&[]).unwrap();
    assert_eq!(ruled_by("wakeai_reno"), 2);
    assert_eq!(existing.give_back().unwrap().failed, 0);
    assert_eq!(ruled_by(&before), 2);
    drop(ends);

    let group = own_cgroup();
    let covered = Covered::Cgroup(group.as_fd());
    let mut cgroup = Assigner::open(&assignment("wakeai_rtt", covered)).unwrap();
    let ends = connection();
    assert_eq!(ruled_by("wakeai_rtt"), 2);
    cgroup.stop();
    assert_eq!(cgroup.give_back().unwrap().failed, 0);
    assert_eq!(ruled_by(&before), 2);
    drop(ends);

    let covered = Covered::Defaults { before: None };
    let mut defaults = Assigner::open(&assignment("wakeai_av", covered)).unwrap();
    set_default("wakeai_av");
    let ends = connection();
    assert_eq!(defaults.count().unwrap(), 2);
    set_default(&before);
    assert_eq!(defaults.give_back().unwrap().failed, 0);
    assert_eq!(ruled_by(&before), 2);
    drop(ends);
}

/// Checks that a flow is counted, and that what exceeds its rate is dropped.
fn datagrams_are_counted_and_slowed() {
    let (egress, hook) = Egress::open(netns_cookie().unwrap()).unwrap();
    egress.watch(LOOPBACK, false).unwrap();
    egress.heartbeat().unwrap();
    assert!(hook.look().unwrap());
    let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    sender.connect(receiver.local_addr().unwrap()).unwrap();
    let of_quic = [0x40; 1000];
    let flow = || {
        let local = sender.local_addr().unwrap();
        let flows = egress.flows(wakeai_units::Duration::from_secs(10)).unwrap();
        flows.into_iter().find(|flow| flow.flow.local == local).unwrap()
    };
    for _ in 0..5 {
        sender.send(&of_quic).unwrap();
    }
    let counted = flow();
    assert_eq!((counted.datagrams, counted.sent.get(), counted.is_tunnel), (5, 5000, false));
    egress.set_rate(counted.id, Some(Rate::from_bps(80_000)), SINGLY).unwrap();
    egress.heartbeat().unwrap();
    for _ in 0..100 {
        sender.send(&of_quic).unwrap();
    }
    let bounded = flow();
    assert_eq!(bounded.datagrams + bounded.dropped, 105);
    assert!(bounded.dropped >= 80, "{bounded:?}");
    println!("guest: of 100 datagrams {} exceeded the rate", bounded.dropped);
    egress.set_rate(counted.id, None, SINGLY).unwrap();
    sender.send(&of_quic).unwrap();
    assert_eq!(flow().datagrams, bounded.datagrams + 1);
}

/// No bursts: each datagram that has to wait has its own departure time.
const SINGLY: wakeai_units::Duration = wakeai_units::Duration::ZERO;

/// A flow over the loopback, behind `fq`, with a rate.
struct Paced {
    egress: Egress,
    _hook: EgressHook,
    sender: UdpSocket,
    receiver: UdpSocket,
}

impl Paced {
    fn start(rate: Rate, burst: wakeai_units::Duration) -> Self {
        let (egress, hook) = Egress::open(netns_cookie().unwrap()).unwrap();
        egress.watch(LOOPBACK, true).unwrap();
        egress.heartbeat().unwrap();
        assert!(hook.look().unwrap());
        let [receiver, sender] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        sender.connect(receiver.local_addr().unwrap()).unwrap();
        let paced = Self { egress, _hook: hook, sender, receiver };
        paced.send(0);
        assert_eq!(paced.receive(), 0);
        paced.egress.set_rate(paced.flow().id, Some(rate), burst).unwrap();
        paced.egress.heartbeat().unwrap();
        paced
    }

    fn flow(&self) -> UdpFlow {
        self.egress.flows(wakeai_units::Duration::from_secs(10)).unwrap()[0]
    }

    /// Sends a datagram of 1000 bytes with this number.
    fn send(&self, number: u8) {
        let mut datagram = [0x40; 1000];
        datagram[1] = number;
        self.sender.send(&datagram).unwrap();
    }

    fn receive(&self) -> u8 {
        let mut datagram = [0; 2000];
        self.receiver.recv(&mut datagram).unwrap();
        datagram[1]
    }
}

/// Sends nine datagrams at once. Returns when they arrived after the first, and the flow's figures.
fn nine(rate: Rate, burst: wakeai_units::Duration) -> (Vec<Duration>, UdpFlow) {
    let paced = Paced::start(rate, burst);
    (0..9).for_each(|number| paced.send(number));
    let mut first = None;
    let arrivals = (0..9).map(|number| {
        assert_eq!(paced.receive(), number);
        first.get_or_insert_with(Instant::now).elapsed()
    });
    (arrivals.collect(), paced.flow())
}

/// Checks that datagrams leave at the rate of their flow where the queueing discipline is fq.
fn datagrams_are_delayed_behind_fq() {
    let netlink = Netlink::open().unwrap();
    assert!(!netlink.obeys_departure_times(LOOPBACK).unwrap());
    netlink.set_queueing_discipline(LOOPBACK, "fq").unwrap();
    assert!(netlink.obeys_departure_times(LOOPBACK).unwrap());
    let (arrivals, flow) = nine(Rate::from_bps(800_000), SINGLY); // a datagram in 10 ms
    let spread = arrivals[8];
    println!("guest: behind fq nine datagrams of 10 ms each arrived within {spread:?}");
    assert_eq!((flow.datagrams, flow.dropped), (10, 0), "{flow:?}");
    assert!(flow.delayed >= 7, "{flow:?}");
    assert!(spread > Duration::from_millis(60), "they leave at once");
    datagrams_that_wait_leave_in_bursts();
    no_datagram_waits_for_more_than_50_ms();
    a_datagram_never_overtakes_one_that_waits_for_its_burst();
    netlink.set_queueing_discipline(LOOPBACK, "noqueue").unwrap();
}

/// Checks that datagrams of 2 ms each leave in bursts of 10 ms, and of 30 ms where more is asked for.
fn datagrams_that_wait_leave_in_bursts() {
    let gap = Duration::from_millis(5); // more than a datagram takes, and less than a burst
    let groups = |arrivals: &[Duration]| {
        1 + arrivals.windows(2).filter(|pair| pair[1] > pair[0] + gap).count()
    };
    for (asked, most) in [(10, 3), (60_000, 2)] {
        let burst = wakeai_units::Duration::from_millis(asked);
        let (arrivals, flow) = nine(Rate::from_mbps(4), burst);
        println!(
            "guest: with bursts of {asked} ms nine datagrams of 2 ms each arrived at {arrivals:?}"
        );
        assert_eq!((flow.datagrams, flow.dropped), (10, 0), "{flow:?}");
        // The first leaves at once, and the others at one or two ends of bursts.
        assert!((2..=most + 1).contains(&groups(&arrivals)), "{arrivals:?}");
        assert!(arrivals[8] < Duration::from_millis(50), "a burst has at most 30 ms: {arrivals:?}");
    }
}

/// Checks that of 100 datagrams of 1 ms each that are sent at once those beyond 50 ms are dropped, and not those beyond 100 ms.
fn no_datagram_waits_for_more_than_50_ms() {
    let paced = Paced::start(Rate::from_mbps(8), SINGLY);
    (0..100).for_each(|number| paced.send(number));
    let flow = paced.flow();
    println!("guest: behind fq {} of 100 datagrams of 1 ms each were dropped", flow.dropped);
    assert!((20..=50).contains(&flow.dropped), "{flow:?}");
}

/// Checks the order where the virtual queue is empty again before the burst ends, at seven places in a burst of 20 ms.
fn a_datagram_never_overtakes_one_that_waits_for_its_burst() {
    let paced = Paced::start(Rate::from_mbps(4), wakeai_units::Duration::from_millis(20));
    for round in 0..7 {
        paced.egress.heartbeat().unwrap();
        for number in [0, 1] {
            paced.send(number);
        }
        std::thread::sleep(Duration::from_millis(5)); // both together take 4
        paced.send(2);
        let order = [(); 3].map(|()| paced.receive());
        assert_eq!(order, [0, 1, 2], "in round {round}");
        std::thread::sleep(Duration::from_millis(8));
    }
    // Nor where the rate ends while it waits.
    paced.egress.heartbeat().unwrap();
    (0..8).for_each(|number| paced.send(number));
    paced.egress.set_rate(paced.flow().id, None, SINGLY).unwrap();
    paced.send(8);
    let order: Vec<u8> = (0..9).map(|_| paced.receive()).collect();
    assert_eq!(order, (0..9).collect::<Vec<_>>(), "after the rate has ended");
}

const DEFAULT: &str = "net.ipv4.tcp_congestion_control";

fn set_default(algorithm: &str) {
    std::fs::write("/proc/sys/net/ipv4/tcp_congestion_control", algorithm).unwrap();
}

/// A control group that this process joins.
fn own_cgroup() -> File {
    let group = "/sys/fs/cgroup/ruled"; // the guest's init has mounted it
    std::fs::create_dir(group).unwrap();
    std::fs::write(format!("{group}/cgroup.procs"), std::process::id().to_string()).unwrap();
    File::open(group).unwrap()
}

fn nothing_is_left() {
    assert!(Control::unload().unwrap());
    assert!(!Control::unload().unwrap());
    assert!(!wakeai_host::read_sysctl(AVAILABLE).unwrap().contains("wakeai_"));
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap();
    assert!(!mounts.contains("/sys/fs/bpf"), "{mounts}");
}
