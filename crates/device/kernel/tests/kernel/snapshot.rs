//! Tests which connections the iterator reads.

use std::io::Write as _;
use std::net::{Ipv4Addr, TcpListener, TcpStream};

use wakeai_kernel::Snapshotter;
use wakeai_units::Duration;

use crate::rig::{Registration, Rig, connect};

/// Both ends of five connections without data that use `algorithm`.
fn idle(rig: &Rig, algorithm: &str) -> Vec<TcpStream> {
    let listen = || TcpListener::bind((Ipv4Addr::new(10, 77, 0, 2), 0)).unwrap();
    let listener = rig.receiver.run(listen).unwrap();
    let address = listener.local_addr().unwrap();
    let pair = |_| {
        let here = rig.sender.run(|| connect(address, algorithm)).unwrap();
        [here, listener.accept().unwrap().0]
    };
    (0..5).flat_map(pair).collect()
}

/// The call that finds connections which are there from the third call on: the sixth, which visits all connections again, or
/// the third where every call visits all.
fn found_in_call(snapshotter: &Snapshotter) -> u32 {
    if snapshotter.always_visits_all() { 3 } else { 6 }
}

#[test]
fn idle_connections_beyond_the_limit_are_counted_and_not_read() {
    let Some(_registration) = Registration::share() else { return };
    let rig = Rig::with_veth();
    let (_, wire) = rig.interface("wire");
    let (_, side) = rig.interface("side");
    let _sending = rig.flow(77, "wakeai_cubic");
    let _idle = idle(&rig, "wakeai_reno");
    let mut other = idle(&rig, "reno");
    std::thread::sleep(std::time::Duration::from_millis(200));

    let mut snapshotter = Snapshotter::open().unwrap();
    let found = found_in_call(&snapshotter);
    let mut read = |interface, after, most| {
        let after = Duration::from_millis(after);
        let read = || snapshotter.snapshot_without_idle(interface, after, most);
        let (connections, left_out) = rig.sender.run(read).unwrap().unwrap();
        let of = |name: &str| connections.iter().filter(|one| *one.algorithm == *name).count();
        ([of("wakeai_cubic"), of("wakeai_reno"), of("reno")], left_out)
    };
    assert_eq!(read(wire, 100, 2), ([1, 2, 5], 3), "Reno has to be moved");
    assert_eq!(read(wire, 100, 0), ([1, 0, 5], 5));
    assert_eq!(read(wire, 100, 9), ([1, 5, 5], 0));
    assert_eq!(read(wire, 60_000, 0), ([1, 5, 5], 0), "they have not been idle for a minute");
    assert_eq!(read(side, 100, 9), ([0, 0, 0], 0));
    // The second call marks the connections that it reads. The next three calls read only those.
    // The sixth call visits all connections again.
    for call in 1..=8 {
        if call == 3 {
            other.extend(idle(&rig, "reno"));
        }
        let reno = if call < found { 5 } else { 10 };
        assert_eq!(read(wire, 100, 0), ([1, 0, reno], 5), "call {call}");
    }
    let all = rig.sender.run(|| snapshotter.snapshot(None)).unwrap().unwrap();
    assert_eq!(all.len(), 16);
}

#[test]
fn among_many_that_are_not_idle_another_one_is_found_three_calls_late() {
    let Some(_registration) = Registration::share() else { return };
    let rig = Rig::with_veth();
    let (_, wire) = rig.interface("wire");
    // A connection under Reno never counts as idle.
    let mut busy = idle(&rig, "reno");
    let mut snapshotter = Snapshotter::open().unwrap();
    let found = found_in_call(&snapshotter);
    let mut read = |most| {
        let read = || snapshotter.snapshot_without_idle(wire, Duration::from_secs(10), most);
        rig.sender.run(read).unwrap().unwrap().0.len()
    };
    for call in 1..=8 {
        if call == 3 {
            busy.extend(idle(&rig, "reno"));
        }
        assert_eq!(read(4), if call < found { 5 } else { 10 }, "call {call}");
    }
    busy.extend(idle(&rig, "reno"));
    assert_eq!(read(15), 15, "as many as may be idle are no reason");
    busy.extend(idle(&rig, "reno"));
    assert_eq!(read(20), 20);
}

#[test]
fn a_connection_that_only_receives_is_not_idle_also_after_this_end_has_closed() {
    let Some(_registration) = Registration::share() else { return };
    let rig = Rig::with_veth();
    let [receiver, mut sender, ..] =
        <[TcpStream; 10]>::try_from(idle(&rig, "wakeai_reno")).unwrap();
    let mut snapshotter = Snapshotter::open().unwrap();
    let (_, wire) = rig.interface("wire");
    let port = receiver.local_addr().unwrap().port();
    let mut read = || {
        let after = Duration::from_millis(200);
        let read = || snapshotter.snapshot_without_idle(wire, after, 0).unwrap().0;
        let connections = rig.sender.run(read).unwrap();
        let mut of_port = connections.iter().filter(|one| one.socket.local.port() == port);
        of_port.next().map(|one| one.receiving.received)
    };
    std::thread::sleep(std::time::Duration::from_millis(400));
    assert_eq!(read(), None, "all are idle");
    sender.write_all(&[0; 5000]).unwrap();
    assert_eq!(read(), Some(5000));
    receiver.shutdown(std::net::Shutdown::Write).unwrap();
    sender.write_all(&[0; 100]).unwrap();
    assert_eq!(read(), Some(5100), "FIN_WAIT2");
}
