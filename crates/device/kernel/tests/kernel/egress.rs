//! Datagrams of UDP: they are counted per flow, and a flow that has a rate is held to it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::sys::socket::{setsockopt, sockopt};
use wakeai_host::Namespace;
use wakeai_kernel::{Egress, EgressHook, Flow, UdpFlow};
use wakeai_units::Rate;

use crate::path::PathConfig;
use crate::rig::{Rig, ip, kernel};

const LATELY: wakeai_units::Duration = wakeai_units::Duration::from_secs(10);
/// No bursts: each datagram that has to wait has its own departure time.
const SINGLY: wakeai_units::Duration = wakeai_units::Duration::ZERO;
/// The first byte of a QUIC packet with a short header (RFC 9000 section 17.3).
const QUIC: u8 = 0x40;

/// A program that counts what leaves over `wire` of the rig's sender.
struct Governed {
    egress: Egress,
    hook: EgressHook,
}

impl Governed {
    fn start(rig: &Rig, interface: &str) -> Self {
        let (cookie, index) = rig.interface(interface);
        let (egress, hook) = Egress::open(cookie).unwrap();
        egress.watch(index, false).unwrap();
        egress.heartbeat().unwrap();
        assert!(hook.look().unwrap());
        Self { egress, hook }
    }

    /// The flow that this socket sends.
    fn flow(&self, socket: &UdpSocket) -> UdpFlow {
        let local = socket.local_addr().unwrap();
        let flows = self.egress.flows(LATELY).unwrap();
        *flows.iter().find(|of| of.flow.local == local).expect("the flow is counted")
    }
}

/// A pair of sockets, the first of which is connected to the second.
fn pair(from: &Namespace, to: &Namespace, address: IpAddr) -> (UdpSocket, UdpSocket) {
    let any = if address.is_ipv4() {
        IpAddr::from(Ipv4Addr::UNSPECIFIED)
    } else {
        Ipv6Addr::UNSPECIFIED.into()
    };
    let receiver = to.run(|| UdpSocket::bind((address, 0)).unwrap()).unwrap();
    let sender = from.run(|| UdpSocket::bind((any, 0)).unwrap()).unwrap();
    sender.connect(receiver.local_addr().unwrap()).unwrap();
    receiver.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    (sender, receiver)
}

fn v4(rig: &Rig) -> (UdpSocket, UdpSocket) {
    pair(&rig.sender, &rig.receiver, Ipv4Addr::new(10, 77, 0, 2).into())
}

/// A datagram of so many bytes, whose first one is this.
fn datagram(first: u8, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    bytes[0] = first;
    bytes
}

/// Sends as fast as the socket takes it for this long. Returns the datagrams that were handed over.
fn send_for(socket: &UdpSocket, bytes: &[u8], span: Duration) -> u64 {
    let began = Instant::now();
    let mut sent = 0;
    while began.elapsed() < span {
        socket.send(bytes).unwrap();
        sent += 1;
        std::thread::sleep(Duration::from_micros(200));
    }
    sent
}

#[test]
fn datagrams_are_counted_by_flow_over_the_watched_interface_alone() {
    let Some(_kernel) = kernel() else { return };
    let rig = Rig::with_veth();
    ip(&rig.sender, "address add fd77::1/64 dev wire nodad");
    ip(&rig.receiver, "address add fd77::2/64 dev wire nodad");
    let governed = Governed::start(&rig, "wire");
    let (first, to_first) = v4(&rig);
    let (second, to_second) =
        pair(&rig.sender, &rig.receiver, "fd77::2".parse::<IpAddr>().unwrap());
    let (elsewhere, to_elsewhere) =
        pair(&rig.sender, &rig.receiver, Ipv4Addr::new(10, 78, 0, 2).into());
    let (back, to_back) = pair(&rig.receiver, &rig.sender, Ipv4Addr::new(10, 77, 0, 1).into());
    for socket in [&first, &first, &second, &elsewhere, &back] {
        socket.send(&datagram(QUIC, 1200)).unwrap();
    }
    for socket in [&to_first, &to_first, &to_second, &to_elsewhere, &to_back] {
        assert_eq!(socket.recv(&mut [0; 2000]).unwrap(), 1200);
    }
    let counted = |socket| {
        let flow = governed.flow(socket);
        (flow.datagrams, flow.sent.get(), flow.flow.remote)
    };
    assert_eq!(counted(&first), (2, 2400, to_first.local_addr().unwrap()));
    assert_eq!(counted(&second), (1, 1200, to_second.local_addr().unwrap()));
    // The interface `wire` of the other namespace may have the same index.
    let ours = [&first, &second].map(|socket| socket.local_addr().unwrap());
    for flow in governed.egress.flows(LATELY).unwrap() {
        let is_neighbour = flow.flow.remote.ip().is_multicast(); // what IPv6 sends by itself
        assert!(is_neighbour || ours.contains(&flow.flow.local), "{flow:?}");
    }
    // Ethernet, IP and UDP have 14 + 20 + 8 and 14 + 40 + 8 bytes.
    assert!(governed.egress.sent().unwrap().get() >= 2 * 1242 + 1262);
}

#[test]
fn segments_of_one_call_are_counted_each() {
    let Some(_kernel) = kernel() else { return };
    let rig = Rig::with_veth();
    let governed = Governed::start(&rig, "wire");
    let (socket, receiver) = v4(&rig);
    setsockopt(&socket, sockopt::UdpGsoSegment, &1000).unwrap();
    socket.send(&datagram(QUIC, 10_500)).unwrap();
    for _ in 0..11 {
        receiver.recv(&mut [0; 2000]).unwrap();
    }
    let flow = governed.flow(&socket);
    assert_eq!((flow.datagrams, flow.sent.get()), (11, 10_500));
    assert_eq!(governed.egress.sent().unwrap().get(), 10_500 + 11 * 42);
}

#[test]
fn a_bulk_flow_is_held_to_its_rate_and_one_below_its_rate_loses_nothing() {
    let Some(_kernel) = kernel() else { return };
    let rig = Rig::with_veth();
    let governed = Governed::start(&rig, "wire");
    let (bulk, _to_bulk) = v4(&rig);
    let (sparse, _to_sparse) = v4(&rig);
    for socket in [&bulk, &sparse] {
        socket.send(&datagram(QUIC, 1000)).unwrap();
        let rate = Some(Rate::from_mbps(4));
        governed.egress.set_rate(governed.flow(socket).id, rate, SINGLY).unwrap();
    }
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(2) {
        for _ in 0..20 {
            bulk.send(&datagram(QUIC, 1000)).unwrap();
        }
        sparse.send(&datagram(QUIC, 100)).unwrap();
        governed.egress.heartbeat().unwrap();
        std::thread::sleep(Duration::from_millis(10));
    }
    let elapsed = began.elapsed().as_secs_f64();
    let (bulk, sparse) = (governed.flow(&bulk), governed.flow(&sparse));
    // The virtual queue may hold 100 ms of the rate besides.
    let allowed = 500_000.0 * (elapsed + 0.1) + 2000.0;
    assert!(bulk.sent.get() as f64 <= allowed, "{bulk:?} in {elapsed} s");
    assert!(bulk.sent.get() as f64 >= 0.5 * 500_000.0 * elapsed, "{bulk:?} in {elapsed} s");
    assert!(bulk.dropped > 0 && bulk.marked == 0, "{bulk:?}");
    assert_eq!((sparse.dropped, sparse.marked, sparse.delayed), (0, 0, 0), "{sparse:?}");
    println!("bulk {bulk:?}\nsparse {sparse:?}");
}

#[test]
fn a_flow_with_ecn_is_marked_before_anything_is_dropped() {
    let Some(_kernel) = kernel() else { return };
    let rig = Rig::with_veth();
    let governed = Governed::start(&rig, "wire");
    let (socket, _receiver) = v4(&rig);
    let ect: libc::c_int = 2; // ECT(0), RFC 3168
    setsockopt(&socket, sockopt::Ipv4Tos, &ect).unwrap();
    socket.send(&datagram(QUIC, 1000)).unwrap();
    governed.egress.set_rate(governed.flow(&socket).id, Some(Rate::from_mbps(8)), SINGLY).unwrap();
    // 95 datagrams are 95 ms, of the 100 ms of the queue; from 50 ms on they are marked. What the queue has served meanwhile is not.
    let began = Instant::now();
    for _ in 0..95 {
        socket.send(&datagram(QUIC, 1000)).unwrap();
    }
    let served = began.elapsed().as_millis() as u64 + 1;
    let flow = governed.flow(&socket);
    assert_eq!(flow.dropped, 0, "{flow:?}");
    assert!(flow.marked <= 44 && flow.marked + served >= 44, "{flow:?} in {served} ms");
    // At 12 Mbit/s the 95 ms are 63, and without what was marked 34: so nothing is marked.
    let rate = Some(Rate::from_mbps(12));
    governed.egress.set_rate(flow.id, rate, SINGLY).unwrap();
    socket.send(&datagram(QUIC, 1000)).unwrap();
    assert_eq!(governed.flow(&socket).marked, flow.marked);
}

#[test]
fn a_tunnel_is_never_dropped() {
    let Some(_kernel) = kernel() else { return };
    let rig = Rig::with_veth();
    let governed = Governed::start(&rig, "wire");
    // Data of WireGuard, DTLS, and a datagram that is too short to tell.
    for bytes in [datagram(4, 1000), datagram(23, 1000), datagram(QUIC, 3)] {
        let (socket, _receiver) = v4(&rig);
        socket.send(&bytes).unwrap();
        governed
            .egress
            .set_rate(governed.flow(&socket).id, Some(Rate::from_bps(8000)), SINGLY)
            .unwrap();
        let sent = send_for(&socket, &bytes, Duration::from_millis(200));
        let flow = governed.flow(&socket);
        assert!(flow.is_tunnel && flow.dropped == 0, "{flow:?}");
        assert_eq!(flow.datagrams, sent + 1);
    }
}

#[test]
fn without_heartbeat_rates_do_not_hold_and_the_program_goes() {
    let Some(_kernel) = kernel() else { return };
    let rig = Rig::with_veth();
    let governed = Governed::start(&rig, "wire");
    let (socket, _receiver) = v4(&rig);
    socket.send(&datagram(QUIC, 1000)).unwrap();
    let flow = governed.flow(&socket).id;
    governed.egress.set_rate(flow, Some(Rate::from_bps(80_000)), SINGLY).unwrap();
    send_for(&socket, &datagram(QUIC, 1000), Duration::from_millis(300));
    let bound = governed.flow(&socket);
    assert!(bound.dropped > 0, "{bound:?}");

    std::thread::sleep(Duration::from_millis(1600)); // it is stale after 1500 ms
    let sent = send_for(&socket, &datagram(QUIC, 1000), Duration::from_millis(100));
    let free = governed.flow(&socket);
    assert_eq!(free.dropped, bound.dropped, "{free:?}");
    assert_eq!(free.datagrams, bound.datagrams + sent);

    assert!(!governed.hook.look().unwrap());
    socket.send(&datagram(QUIC, 1000)).unwrap();
    assert_eq!(governed.flow(&socket).datagrams, free.datagrams, "it is not counted any more");

    governed.egress.heartbeat().unwrap();
    assert!(governed.hook.look().unwrap());
    socket.send(&datagram(QUIC, 1000)).unwrap();
    assert_eq!(governed.flow(&socket).datagrams, free.datagrams + 1);

    governed.egress.set_rate(flow, None, SINGLY).unwrap();
    send_for(&socket, &datagram(QUIC, 1000), Duration::from_millis(100));
    assert_eq!(governed.flow(&socket).dropped, bound.dropped, "it has no rate any more");
}

#[test]
fn a_rate_that_rises_serves_what_waits_at_once() {
    let Some(_kernel) = kernel() else { return };
    let rig = Rig::with_veth();
    let governed = Governed::start(&rig, "wire");
    let (socket, _receiver) = v4(&rig);
    socket.send(&datagram(QUIC, 1000)).unwrap();
    let flow = governed.flow(&socket).id;
    governed.egress.set_rate(flow, Some(Rate::from_bps(80_000)), SINGLY).unwrap(); // ten datagrams per second
    send_for(&socket, &datagram(QUIC, 1000), Duration::from_millis(100));
    let full = governed.flow(&socket);
    assert!(full.dropped > 0 && full.backlog.as_millis() > 1000, "{full:?}");
    governed.egress.set_rate(flow, Some(Rate::from_mbps(80)), SINGLY).unwrap();
    socket.send(&datagram(QUIC, 1000)).unwrap();
    let fast = governed.flow(&socket);
    assert_eq!(fast.dropped, full.dropped, "{fast:?}");
    assert!(fast.backlog.as_millis() < 5, "{fast:?}");
}

#[test]
fn one_program_per_agent_leaves_the_other_s_interface_alone() {
    let Some(_kernel) = kernel() else { return };
    let rigs = [Rig::with_veth(), Rig::with_veth()];
    assert_eq!(rigs[0].interface("wire").1, rigs[1].interface("wire").1, "one index in both");
    let governed = rigs.each_ref().map(|rig| Governed::start(rig, "wire"));
    let pairs = rigs.each_ref().map(v4);
    let sockets = pairs.each_ref().map(|(sender, _)| sender);
    for _ in 0..3 {
        sockets[0].send(&datagram(QUIC, 500)).unwrap();
    }
    sockets[1].send(&datagram(QUIC, 500)).unwrap();
    assert_eq!(governed[0].flow(sockets[0]).datagrams, 3);
    assert_eq!(governed[1].flow(sockets[1]).datagrams, 1);
    assert_eq!(governed[0].egress.flows(LATELY).unwrap().len(), 1);
    let of = |socket: &UdpSocket| Flow {
        local: socket.local_addr().unwrap(),
        remote: socket.peer_addr().unwrap(),
    };
    assert_eq!(governed[1].egress.flows(LATELY).unwrap()[0].flow, of(sockets[1]));
}

#[test]
fn a_new_flow_takes_the_slot_of_one_that_is_silent_and_never_its_rate() {
    let Some(_kernel) = kernel() else { return };
    let rig = Rig::with_veth();
    let governed = Governed::start(&rig, "wire");
    let (bulk, receiver) = v4(&rig);
    let (silent, _receiver) = v4(&rig);
    for socket in [&bulk, &silent] {
        socket.send(&datagram(QUIC, 100)).unwrap();
    }
    let before = governed.flow(&bulk);
    for flow in governed.egress.flows(LATELY).unwrap() {
        governed.egress.set_rate(flow.id, Some(Rate::from_bps(8)), SINGLY).unwrap();
    }
    // More flows than the table has slots, as a resolver of names makes them.
    for _ in 0..4096 {
        let any = || UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
        let socket = rig.sender.run(any).unwrap();
        let to = receiver.local_addr().unwrap();
        // At a rate of a byte per second the second one would be dropped.
        for _ in 0..2 {
            socket.send_to(&datagram(QUIC, 20_000), to).unwrap();
        }
        bulk.send(&datagram(QUIC, 1)).unwrap();
    }
    let flows = governed.egress.flows(LATELY).unwrap();
    assert!(flows.len() > 1024 && flows.len() <= 2048, "{}", flows.len());
    let ids: std::collections::BTreeSet<_> = flows.iter().map(|flow| flow.id).collect();
    assert_eq!(ids.len(), flows.len());
    assert_eq!(governed.flow(&bulk).id, before.id, "it was never silent");
    let others = flows.iter().filter(|flow| flow.id != before.id);
    assert!(others.into_iter().all(|flow| flow.dropped == 0));
}

/// The one-way delays of 200 datagrams, fifty per second, sorted.
fn delays_of_sparse(
    sender: &UdpSocket,
    receiver: &UdpSocket,
    keep_alive: &dyn Fn(),
) -> Vec<Duration> {
    const COUNT: u32 = 200;
    let began = Instant::now();
    std::thread::scope(|scope| {
        let arrivals = scope.spawn(|| {
            let mut delays = Vec::new();
            let mut bytes = [0; 2000];
            while began.elapsed() < Duration::from_millis(20) * COUNT + Duration::from_secs(1) {
                if let Ok(200) = receiver.recv(&mut bytes) {
                    let sent = Duration::from_nanos(u64::from_be_bytes(
                        *bytes[8..].first_chunk().unwrap(),
                    ));
                    delays.push(began.elapsed().saturating_sub(sent));
                }
            }
            delays.sort_unstable();
            delays
        });
        let mut bytes = datagram(QUIC, 200);
        for number in 0..COUNT {
            std::thread::sleep(
                (Duration::from_millis(20) * number).saturating_sub(began.elapsed()),
            );
            let now = u64::try_from(began.elapsed().as_nanos()).unwrap();
            bytes[8..16].copy_from_slice(&now.to_be_bytes());
            sender.send(&bytes).unwrap();
            keep_alive();
        }
        arrivals.join().unwrap()
    })
}

#[test]
fn a_sparse_flow_does_not_wait_behind_a_bulk_flow_that_has_a_rate() {
    let Some(_kernel) = kernel() else { return };
    // A path of 20 Mbit/s with 10 ms each way and room for 400 packets, which is 160 ms.
    let config = PathConfig { bits_per_second: 20_000_000, queue_packets: 400, ..PathConfig::CALM };
    let rig = Rig::with_path(config);
    let governed = Governed::start(&rig, "wire");
    let (bulk, _to_bulk) = v4(&rig);
    let (sparse, to_sparse) = v4(&rig);
    let heartbeat = || governed.egress.heartbeat().unwrap();
    let alone = delays_of_sparse(&sparse, &to_sparse, &heartbeat);
    let stop = AtomicBool::new(false);
    let [free, bounded] = std::thread::scope(|scope| {
        scope.spawn(|| {
            // 30 Mbit/s, also where a sleep lasts longer.
            let (began, mut sent) = (Instant::now(), 0);
            while !stop.load(Ordering::Relaxed) {
                let due = began.elapsed().as_micros() / 270;
                for _ in sent..due.min(sent + 50) {
                    bulk.send(&datagram(QUIC, 1000)).unwrap();
                }
                sent = due;
                std::thread::sleep(Duration::from_micros(200));
            }
        });
        std::thread::sleep(Duration::from_millis(500));
        let free = delays_of_sparse(&sparse, &to_sparse, &heartbeat);
        let rate = Some(Rate::from_mbps(15));
        for socket in [&bulk, &sparse] {
            governed.egress.set_rate(governed.flow(socket).id, rate, SINGLY).unwrap();
        }
        // The path's queue of 160 ms becomes empty at 5 Mbit/s.
        for _ in 0..15 {
            heartbeat();
            std::thread::sleep(Duration::from_millis(100));
        }
        let bounded = delays_of_sparse(&sparse, &to_sparse, &heartbeat);
        stop.store(true, Ordering::Relaxed);
        [free, bounded]
    });
    let p99 = |delays: &[Duration]| delays[delays.len() * 99 / 100];
    println!(
        "p99 of the sparse flow: alone {:?}, beside bulk without a rate {:?}, with one {:?}",
        p99(&alone),
        p99(&free),
        p99(&bounded)
    );
    let flow = governed.flow(&sparse);
    assert_eq!((flow.dropped, flow.marked, flow.delayed), (0, 0, 0), "{flow:?}");
    assert!(governed.flow(&bulk).dropped > 0);
    assert!(p99(&bounded) < p99(&free) / 2);
}
