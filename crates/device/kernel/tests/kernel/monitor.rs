//! Tests the records of the monitor and its filters.

use std::io::Read as _;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::time::{Duration, Instant};

use nix::sys::socket::{
    AddressFamily, SockFlag, SockProtocol, SockType, SockaddrStorage, bind, getsockname, socket,
};
use wakeai_kernel::{
    CongestionState, ErrorCode, EventKind, Filter, Monitor, MonitorConfig, Record, snapshot,
};

use crate::path::PathConfig;
use crate::rig::{Rig, ip, kernel};
use crate::watch::monitor;

/// A time that is long enough for a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Everything that the monitor reports until `span` has passed.
fn collect(monitor: &mut Monitor, span: Duration) -> (Vec<Record>, Vec<Record>) {
    let mut records = Vec::new();
    let until = Instant::now() + span;
    while Instant::now() < until {
        monitor.poll(Duration::from_millis(10), &mut |record| records.push(record)).unwrap();
    }
    records.into_iter().partition(|record: &Record| record.event.is_none())
}

/// Waits until the monitor reports an event of this kind.
fn wait_for_event(monitor: &mut Monitor, kind: EventKind) {
    let give_up = Instant::now() + PATIENCE;
    while !kinds(&collect(monitor, Duration::from_millis(50)).1).contains(&kind) {
        assert!(Instant::now() < give_up, "waited in vain for {kind:?}");
    }
}

fn kinds(events: &[Record]) -> Vec<EventKind> {
    events.iter().filter_map(|record| record.event).collect()
}

#[test]
fn samples_show_what_the_connection_does() {
    let Some(_kernel) = kernel() else { return };
    let rig = Rig::with_path(PathConfig::CALM);
    let mut monitor = monitor(&rig);
    let flow = rig.flow(77, "cubic");
    let (samples, events) = collect(&mut monitor, Duration::from_secs(1));
    let connection = rig.sender.run(|| snapshot(None)).unwrap().unwrap().remove(0);
    drop(flow);
    assert_eq!(events[0].event, Some(EventKind::Opened));
    let last = samples.last().unwrap();
    assert_eq!(last.socket, connection.socket);
    assert_eq!(last.socket.local.ip(), IpAddr::from([10, 77, 0, 1]));
    assert_eq!(last.socket.remote.ip(), IpAddr::from([10, 77, 0, 2]));
    let inode = rig.sender.id().0;
    assert_eq!(u64::from(last.socket.netns_inode), inode);
    assert_eq!(last.socket.netns_cookie, rig.interface("wire").0);
    assert_eq!(last.figures.interface, rig.interface("wire").1);
    // The RTT of the emulated path is at least 20 ms.
    assert!(last.figures.min_rtt.unwrap().as_micros() >= 20_000);
    assert!(last.figures.latest_rtt >= last.figures.min_rtt);
    assert_eq!(last.figures.mss.get(), 1448);
    assert!(last.figures.send_queue.get() > 0);
    assert!(last.figures.delivery_rate.unwrap().as_mbps_f64() > 1.0);
    let delivered = samples.windows(2).map(|pair| (pair[0].figures, pair[1].figures));
    assert!(delivered.clone().all(|(before, after)| before.delivered <= after.delivered));
    assert!(samples.windows(2).all(|pair| pair[0].at <= pair[1].at));
    let flight = |f: &Record| f.figures.packets_out.get();
    assert!(samples.iter().all(|sample| flight(sample) >= 1));
}

#[test]
fn a_loss_is_seen_as_recovery_code_3_and_a_retransmission() {
    let Some(_kernel) = kernel() else { return };
    let rig = Rig::with_path(PathConfig { loss_ppm: 3000, ..PathConfig::CALM });
    let mut monitor = monitor(&rig);
    let _flow = rig.flow(77, "cubic");
    let (_, events) = collect(&mut monitor, Duration::from_secs(2));
    let kinds = kinds(&events);
    let entered = kinds.iter().position(|kind| {
        matches!(kind, EventKind::StateChange { to: CongestionState::Recovery, .. })
    });
    assert_eq!(kinds[entered.unwrap() + 1], EventKind::Error(ErrorCode::DuplicateAck));
    assert!(kinds.contains(&EventKind::Retransmit));
}

#[test]
fn reordered_packets_are_seen_as_code_1() {
    let Some(_kernel) = kernel() else { return };
    let rig = Rig::with_path(PathConfig { swap_every: 50, ..PathConfig::CALM });
    let mut monitor = monitor(&rig);
    let _flow = rig.flow(77, "cubic");
    wait_for_event(&mut monitor, EventKind::Error(ErrorCode::Reordering));
}

#[test]
fn a_full_queue_on_this_host_is_seen_as_code_2() {
    let Some(_kernel) = kernel() else { return };
    let rig = Rig::with_veth();
    let full = "qdisc add dev wire root tbf rate 20mbit burst 5kb limit 20kb";
    let tc = || std::process::Command::new("tc").args(full.split(' ')).status().unwrap();
    assert!(rig.sender.run(tc).unwrap().success());
    let mut monitor = monitor(&rig);
    // TCP small queues limit what one flow may have in the queue, at times to less than the queue
    // holds. So there are four flows.
    let _flows: Vec<_> = (0..4).map(|_| rig.flow(77, "cubic")).collect();
    wait_for_event(&mut monitor, EventKind::Error(ErrorCode::LocalOverflow));
}

#[test]
fn a_cut_path_is_seen_as_code_4_and_a_close() {
    let Some(_kernel) = kernel() else { return };
    let rig = Rig::with_path(PathConfig::CALM);
    let mut monitor = monitor(&rig);
    let flow = rig.flow(77, "cubic");
    collect(&mut monitor, Duration::from_millis(500));
    rig.path.as_ref().unwrap().cut();
    let (_, events) = collect(&mut monitor, Duration::from_secs(2));
    let seen = kinds(&events);
    let timeouts = seen.iter().filter(|kind| **kind == EventKind::Timeout).count();
    let errors = EventKind::Error(ErrorCode::Timeout);
    assert!(timeouts >= 2, "{seen:?}");
    assert_eq!(seen.iter().filter(|kind| **kind == errors).count(), timeouts);
    drop(flow);
    wait_for_event(&mut monitor, EventKind::Closed);
}

#[test]
fn a_sample_interval_is_kept_per_socket() {
    let Some(_kernel) = kernel() else { return };
    let rig = Rig::with_path(PathConfig::CALM);
    let filter = Filter { netns_cookies: vec![rig.interface("wire").0], ..Filter::default() };
    let sample_interval = Duration::from_millis(20);
    let config = MonitorConfig { filter, sample_interval, ..MonitorConfig::default() };
    let mut monitor = Monitor::open(&config).unwrap();
    let _flows = [rig.flow(77, "cubic"), rig.flow(77, "cubic")];
    let (samples, _) = collect(&mut monitor, Duration::from_secs(1));
    let mut cookies: Vec<_> = samples.iter().map(|sample| sample.socket.cookie).collect();
    cookies.sort_unstable();
    cookies.dedup();
    assert_eq!(cookies.len(), 2);
    for cookie in cookies {
        let of_one: Vec<_> =
            samples.iter().filter(|sample| sample.socket.cookie == cookie).collect();
        assert!(of_one.len() > 5);
        for pair in of_one.windows(2) {
            // The time stamp is taken a moment after the decision to sample, and this moment
            // varies. So the interval may be slightly shorter than 20 ms.
            assert!(pair[1].at.saturating_since(pair[0].at).as_micros() > 19_000);
        }
    }
}

#[test]
fn a_filter_leaves_the_other_connections_out() {
    let Some(_kernel) = kernel() else { return };
    let rig = Rig::with_path(PathConfig::CALM);
    let _flows = [rig.flow(77, "cubic"), rig.flow(78, "cubic")];
    let connections = rig.sender.run(|| snapshot(None)).unwrap().unwrap();
    let wire = connections.iter().find(|c| c.figures.interface == rig.interface("wire").1);
    let wanted = wire.unwrap().socket;
    // Collects samples for at least 200 ms, until there are some of `count` connections.
    let seen_with = |filter: Filter, count: usize| {
        let config = MonitorConfig { every_ack: true, filter, ..MonitorConfig::default() };
        let mut monitor = Monitor::open(&config).unwrap();
        let (mut samples, _) = collect(&mut monitor, Duration::from_millis(200));
        let give_up = Instant::now() + PATIENCE;
        loop {
            let mut seen: Vec<_> = samples.iter().map(|sample| sample.socket.cookie).collect();
            seen.sort_unstable();
            seen.dedup();
            if seen.len() >= count || Instant::now() > give_up {
                return seen;
            }
            samples.extend(collect(&mut monitor, Duration::from_millis(50)).0);
        }
    };
    let inode = u32::try_from(rig.sender.id().0).unwrap();
    let both = seen_with(Filter { netns_inodes: vec![inode], ..Filter::default() }, 2);
    assert_eq!(both.len(), 2);
    let address = Some(wanted.remote.ip());
    assert_eq!(seen_with(Filter { address, ..Filter::default() }, 1), [wanted.cookie]);
    let port = Some(wanted.local.port());
    assert_eq!(seen_with(Filter { port, ..Filter::default() }, 1), [wanted.cookie]);
    let other = rig.receiver.run(wakeai_kernel::netns_cookie).unwrap().unwrap();
    assert!(seen_with(Filter { netns_cookies: vec![other], ..Filter::default() }, 0).is_empty());
}

#[test]
fn records_that_found_the_buffer_full_are_counted() {
    let Some(_kernel) = kernel() else { return };
    let rig = Rig::with_path(PathConfig::CALM);
    let filter = Filter { netns_cookies: vec![rig.interface("wire").0], ..Filter::default() };
    let config =
        MonitorConfig { every_ack: true, filter, buffer_bytes: 4096, ..MonitorConfig::default() };
    let mut monitor = Monitor::open(&config).unwrap();
    let _flow = rig.flow(77, "cubic");
    let began = Instant::now();
    while monitor.lost() == 0 {
        assert!(began.elapsed() < PATIENCE, "the buffer is never full");
        std::thread::sleep(Duration::from_millis(20));
    }
    let (samples, _) = collect(&mut monitor, Duration::from_millis(10));
    assert!(!samples.is_empty());
}

#[test]
fn a_connection_over_ipv6_is_seen_with_its_addresses() {
    let Some(_kernel) = kernel() else { return };
    let rig = Rig::with_veth();
    ip(&rig.sender, "-6 address add fd77::1/64 dev wire nodad");
    ip(&rig.receiver, "-6 address add fd77::2/64 dev wire nodad");
    let mut monitor = monitor(&rig);
    let listen = || TcpListener::bind("[fd77::2]:0").unwrap();
    let listener = rig.receiver.run(listen).unwrap();
    let address = listener.local_addr().unwrap();
    let connect = || TcpStream::connect(address).unwrap();
    let stream = rig.sender.run(connect).unwrap();
    drop(stream);
    let (_, events) = collect(&mut monitor, Duration::from_millis(50));
    assert_eq!(events[0].event, Some(EventKind::Opened));
    assert_eq!(events[0].socket.remote, address);
    assert_eq!(events[0].socket.local.ip(), "fd77::1".parse::<IpAddr>().unwrap());
}

/// Opens connections between two addresses of the rig, and closes each in another way. Returns the
/// way, and the connection's local address as its owner saw it.
fn closed_connections(rig: &Rig, ends: [IpAddr; 2]) -> Vec<(&'static str, SocketAddr)> {
    let [near, far] = ends;
    let mut closed = Vec::new();
    for first in ["active close", "passive close"] {
        let listen = || TcpListener::bind((far, 0)).unwrap();
        let listener = rig.receiver.run(listen).unwrap();
        let address = listener.local_addr().unwrap();
        let near_end = rig.sender.run(|| TcpStream::connect(address).unwrap()).unwrap();
        let (mut far_end, _) = listener.accept().unwrap();
        closed.push((first, near_end.local_addr().unwrap()));
        if first == "active close" {
            drop(near_end);
            assert_eq!(far_end.read(&mut [0]).unwrap(), 0);
        } else {
            drop(far_end);
            assert_eq!((&near_end).read(&mut [0]).unwrap(), 0);
        }
    }
    let (refused, local) = rig.sender.run(|| bound(near)).unwrap();
    closed.push(("refused", local));
    let nobody = SockaddrStorage::from(SocketAddr::new(far, 9));
    assert!(nix::sys::socket::connect(refused.as_raw_fd(), &nobody).is_err());
    closed
}

/// A socket that is bound to this address and to a free port.
fn bound(address: IpAddr) -> (OwnedFd, SocketAddr) {
    let family = if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    let flags = SockFlag::SOCK_CLOEXEC;
    let made = socket(family, SockType::Stream, flags, SockProtocol::Tcp).unwrap();
    bind(made.as_raw_fd(), &SockaddrStorage::from(SocketAddr::new(address, 0))).unwrap();
    let name: SockaddrStorage = getsockname(made.as_raw_fd()).unwrap();
    let port = match (name.as_sockaddr_in(), name.as_sockaddr_in6()) {
        (Some(name), _) => name.port(),
        (_, Some(name)) => name.port(),
        _ => panic!("neither IPv4 nor IPv6"),
    };
    (made, SocketAddr::new(address, port))
}

#[test]
fn a_close_shows_both_ports_and_is_seen_by_the_local_one() {
    let Some(_kernel) = kernel() else { return };
    let rig = Rig::with_veth();
    ip(&rig.sender, "-6 address add fd77::1/64 dev wire nodad");
    ip(&rig.receiver, "-6 address add fd77::2/64 dev wire nodad");
    let v4 = [IpAddr::from([10, 77, 0, 1]), IpAddr::from([10, 77, 0, 2])];
    let v6 = ["fd77::1", "fd77::2"].map(|text| text.parse().unwrap());
    for ends in [v4, v6] {
        let mut everything = monitor(&rig);
        let wanted = closed_connections(&rig, ends);
        let seen = wait_for_closes(&mut everything, ends[0], wanted.len());
        for (how, local) in wanted {
            let close = seen.iter().find(|event| event.socket.local == local);
            assert!(close.is_some_and(|event| event.socket.remote.port() != 0), "{how}: {seen:?}");
        }
    }
}

#[test]
fn a_filter_by_the_local_port_passes_the_close() {
    let Some(_kernel) = kernel() else { return };
    let rig = Rig::with_veth();
    let listener = rig.receiver.run(|| TcpListener::bind("10.77.0.2:0").unwrap()).unwrap();
    let address = listener.local_addr().unwrap();
    let near = rig.sender.run(|| TcpStream::connect(address).unwrap()).unwrap();
    let local = near.local_addr().unwrap();
    let port = Some(local.port());
    let filter = Filter { port, netns_cookies: vec![rig.interface("wire").0], ..Filter::default() };
    let config = MonitorConfig { filter, ..MonitorConfig::default() };
    let mut monitor = Monitor::open(&config).unwrap();
    let (far, _) = listener.accept().unwrap();
    drop(far);
    assert_eq!((&near).read(&mut [0]).unwrap(), 0);
    drop(near);
    assert_eq!(wait_for_closes(&mut monitor, local.ip(), 1)[0].socket.local, local);
}

/// Waits until the monitor has reported `count` closes of connections from the address `local`.
fn wait_for_closes(monitor: &mut Monitor, local: IpAddr, count: usize) -> Vec<Record> {
    let give_up = Instant::now() + Duration::from_secs(10);
    let mut closes = Vec::new();
    while closes.len() < count {
        assert!(Instant::now() < give_up, "waited in vain for closes: {closes:?}");
        let (_, events) = collect(monitor, Duration::from_millis(10));
        let closed = events.into_iter().filter(|event| event.event == Some(EventKind::Closed));
        closes.extend(closed.filter(|event| event.socket.local.ip() == local));
    }
    closes
}
