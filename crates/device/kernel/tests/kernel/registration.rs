//! Tests that all processes share one registration of the algorithms, and that the last process
//! leaves nothing of it.

use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use nix::sys::socket::{
    AddressFamily, SockFlag, SockProtocol, SockType, SockaddrIn, getsockopt, setsockopt, socket,
    sockopt,
};
use wakeai_host::Namespace;
use wakeai_kernel::{Bounded, Bounds, Control, move_connections, snapshot};

use crate::path::{PathConfig, open_tun};
use crate::rig::{Registration, Rig, ip, kernel, set, struct_ops};

/// The algorithms of the sender's connections.
fn algorithms(rig: &Rig) -> Vec<String> {
    let connections = rig.sender.run(|| snapshot(None)).unwrap().unwrap();
    connections.into_iter().map(|connection| connection.algorithm.to_string()).collect()
}

fn default_of(rig: &Rig) -> String {
    let read = || wakeai_host::read_sysctl("net.ipv4.tcp_congestion_control").unwrap();
    rig.sender.run(read).unwrap()
}

#[test]
fn established_connections_are_moved_there_and_back() {
    let Some(_kernel) = kernel() else { return };
    let _registration = Registration::open();
    for Bounded { name, plain } in Bounded::ALL {
        let rig = Rig::with_path(PathConfig::CALM);
        let flow = rig.flow(77, plain);
        let (_, wire) = rig.interface("wire");
        let (_, side) = rig.interface("side");
        let shift = |from: &str, to: &str, interface| {
            rig.sender
                .run(|| move_connections(&[from], to, Some(interface)))
                .unwrap()
                .unwrap()
                .moved
        };
        assert_eq!(shift(plain, name, side), 0);
        assert_eq!(algorithms(&rig), [plain]);
        assert_eq!(shift(plain, name, wire), 1);
        assert_eq!(algorithms(&rig), [name]);
        flow.goes_on();
        assert_eq!(shift(name, plain, wire), 1);
        assert_eq!(algorithms(&rig), [plain]);
        flow.goes_on();
    }
}

#[test]
fn the_algorithms_share_their_maps() {
    let Some(_kernel) = kernel() else { return };
    let registration = Registration::open();
    let rig = Rig::with_path(PathConfig::CALM);
    let (cookie, wire) = rig.interface("wire");
    let ceiling = Bounds::from_numbers(0, 9, 0, 0);
    registration.0.set_interface(cookie, wire, ceiling).unwrap();
    let flows = Bounded::ALL.map(|bounded| rig.flow(77, bounded.name));
    let (began, mut rounds) = (Instant::now(), 0);
    while rounds < 10 || flows.iter().any(|flow| flow.received() == 0) {
        assert!(began.elapsed() < Duration::from_secs(30), "nothing has arrived");
        registration.0.heartbeat(cookie, wire).unwrap();
        std::thread::sleep(Duration::from_millis(30));
        rounds += 1;
    }
    let connections = rig.sender.run(|| snapshot(Some(wire))).unwrap().unwrap();
    assert_eq!(connections.len(), Bounded::ALL.len());
    assert!(connections.iter().all(|connection| connection.figures.cwnd.get() <= 9));
}

#[test]
fn unloading_gives_every_connection_the_replaced_algorithm() {
    let Some(_kernel) = kernel() else { return };
    let registration = Registration::open();
    let rig = Rig::with_path(PathConfig::CALM);
    rig.default("wakeai_reno");
    let _flows = Bounded::ALL.map(|bounded| rig.flow(77, bounded.name));
    assert!(Control::unload().unwrap());
    let mut after = algorithms(&rig);
    after.sort_unstable();
    let mut expected = Bounded::ALL.map(|bounded| bounded.plain);
    expected.sort_unstable();
    assert_eq!(after, expected);
    assert_eq!(default_of(&rig), "reno");
    drop(registration);
}

#[test]
fn a_second_opener_finds_the_firsts_registration_and_bounds() {
    let Some(_kernel) = kernel() else { return };
    let first = Registration::open();
    let listed = struct_ops();
    let second = Control::open().unwrap();
    assert_eq!(struct_ops(), listed);
    // The first handle can remove a bound that the second has written, because both use the same
    // map.
    second.set_socket(u64::MAX, Bounds::NONE).unwrap();
    first.0.clear_socket(u64::MAX).unwrap();
    drop(second);
    assert_eq!(struct_ops(), listed);
}

#[test]
fn all_can_be_loaded_and_removed_again_with_a_second_user_beside() {
    let Some(_kernel) = kernel() else { return };
    for _ in 0..2 {
        let registration = Registration::open();
        let second = Control::open().unwrap();
        let listed = struct_ops();
        assert!(Bounded::ALL.iter().all(|one| listed.matches(one.name).count() == 1), "{listed}");
        let rig = Rig::with_path(PathConfig::CALM);
        let flows = Bounded::ALL.map(|bounded| rig.flow(77, bounded.name));
        // The second user's bounds apply to connections whose algorithm the first user has loaded.
        let (cookie, wire) = rig.interface("wire");
        let ceiling = Bounds::from_numbers(0, 5, 0, 0);
        second.set_interface(cookie, wire, ceiling).unwrap();
        for flow in &flows {
            second.heartbeat(cookie, wire).unwrap();
            flow.goes_on();
        }
        let connections = rig.sender.run(|| snapshot(Some(wire))).unwrap().unwrap();
        assert!(connections.iter().all(|connection| connection.figures.cwnd.get() <= 5));
        drop(second);
        assert_eq!(struct_ops(), listed);
        assert!(Control::unload().unwrap());
        assert!(!struct_ops().contains("wakeai_"));
        assert!(!algorithms(&rig).iter().any(|name| name.starts_with("wakeai_")));
        drop(registration);
    }
}

#[test]
fn unload_leaves_nothing_though_connections_and_a_default_use_it() {
    let Some(_kernel) = kernel() else { return };
    let had_pins = Path::new("/sys/fs/bpf").read_dir().unwrap().count();
    let registration = Registration::open();
    let rig = Rig::with_path(PathConfig::CALM);
    rig.default("wakeai_cubic");
    let flow = rig.flow(77, "wakeai_cubic");
    assert_eq!(default_of(&rig), "wakeai_cubic");
    assert!(struct_ops().contains("wakeai_cubic"));
    assert!(Control::unload().unwrap());
    assert!(!struct_ops().contains("wakeai_cubic"));
    assert_eq!(Path::new("/sys/fs/bpf").read_dir().unwrap().count(), had_pins);
    assert_ne!(default_of(&rig), "wakeai_cubic");
    assert_eq!(algorithms(&rig), ["cubic"]);
    flow.goes_on();
    assert!(!Control::unload().unwrap());
    drop(registration);
}

#[test]
fn an_orphan_that_a_connection_keeps_alive_is_replaced() {
    let Some(_kernel) = kernel() else { return };
    let registration = Registration::open();
    let rig = Rig::with_path(PathConfig::CALM);
    let _flow = rig.flow(77, "wakeai_cubic");
    // This is the state after a process died between registering and pinning.
    std::fs::remove_file("/sys/fs/bpf/wakeai/wakeai_cubic").unwrap();
    let again = Control::open().unwrap();
    assert_eq!(algorithms(&rig), ["cubic"]);
    for bounded in Bounded::ALL {
        assert_eq!(struct_ops().matches(bounded.name).count(), 1);
    }
    drop((again, registration));
}

#[test]
fn a_connection_without_a_namespace_changes_its_algorithm_itself() {
    let Some(_kernel) = kernel() else { return };
    let registration = Registration::open();
    let rig = Rig::with_path(PathConfig::CALM);
    let flow = rig.flow(77, "wakeai_cubic");
    flow.goes_on();
    rig.path.as_ref().unwrap().cut();
    // The connection is closed with data in flight. The kernel keeps sending, in a namespace that no process can
    // enter.
    flow.abandon();
    drop(rig);
    assert!(struct_ops().contains("wakeai_cubic"));
    assert!(Control::unload().unwrap());
    assert!(!struct_ops().contains("wakeai_cubic"));
    drop(registration);
}

/// A socket of this process that has chosen one of our algorithms itself.
fn asking_socket(rig: &Rig) -> OwnedFd {
    let open = || {
        let flags = SockFlag::SOCK_CLOEXEC;
        let socket =
            socket(AddressFamily::Inet, SockType::Stream, flags, SockProtocol::Tcp).unwrap();
        setsockopt(&socket, sockopt::TcpCongestion, &"wakeai_cubic".into()).unwrap();
        socket
    };
    rig.sender.run(open).unwrap()
}

#[test]
fn sockets_in_no_table_of_the_kernel_are_moved_too() {
    let Some(_kernel) = kernel() else { return };
    let registration = Registration::open();
    let rig = Rig::with_veth();
    // The socket is neither connected nor listening, so no list of connections has it.
    let fresh = asking_socket(&rig);
    // The peer has reset this socket, and its owner has not closed it.
    let listener = rig.receiver.run(|| TcpListener::bind("10.77.0.2:0").unwrap()).unwrap();
    let reset = asking_socket(&rig);
    let SocketAddr::V4(to) = listener.local_addr().unwrap() else { unreachable!("it is IPv4") };
    nix::sys::socket::connect(reset.as_raw_fd(), &SockaddrIn::from(to)).unwrap();
    let accepted = listener.accept().unwrap().0;
    let at_once = libc::linger { l_onoff: 1, l_linger: 0 };
    setsockopt(&accepted, sockopt::Linger, &at_once).unwrap();
    drop(accepted);
    let mut reset = TcpStream::from(reset);
    assert_eq!(reset.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert!(Control::unload().unwrap());
    assert!(!struct_ops().contains("wakeai_"));
    for socket in [&fresh, &OwnedFd::from(reset)] {
        let name = getsockopt(socket, sockopt::TcpCongestion).unwrap();
        assert_eq!(name.to_string_lossy().trim_end_matches('\0'), "cubic");
    }
    drop(registration);
}

#[test]
fn namespaces_that_only_an_open_file_keeps_are_restored() {
    let Some(_kernel) = kernel() else { return };
    // The open files are a handle on the namespace, a socket in it, and a TUN in it.
    let keepers: [fn() -> OwnedFd; 3] = [
        || File::open("/proc/thread-self/ns/net").unwrap().into(),
        || UdpSocket::bind("127.0.0.1:0").unwrap().into(),
        || open_tun("kept").unwrap().into(),
    ];
    for (number, keeper) in keepers.into_iter().enumerate() {
        let registration = Registration::open();
        let name = format!("wkt-{}-kept{number}", std::process::id());
        let namespace = Namespace::create(&name).unwrap();
        set(&namespace, "tcp_congestion_control", "wakeai_cubic");
        ip(&namespace, "link set lo up");
        let kept = namespace.run(keeper).unwrap();
        Namespace::remove(&name).unwrap();
        drop(namespace);
        assert!(Control::unload().unwrap());
        assert!(!struct_ops().contains("wakeai_"), "{number}: {}", struct_ops());
        drop((kept, registration));
    }
}
