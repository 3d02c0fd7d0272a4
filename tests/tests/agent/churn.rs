//! Agents and proxies are killed, and the names of namespaces with open connections are removed. The registration of
//! our algorithms nevertheless ends with its last user.

use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::process::{Child, Stdio};
use std::time::Duration;

use nix::sys::signal::Signal;
use socket2::{Domain, Protocol, Socket, Type};
use wakeai_host::Namespace;

use wakeai_tests::agent::{Fleet, in_namespace};
use wakeai_tests::bss::Bss;
use wakeai_tests::traffic::Upload;
use wakeai_tests::{Machine, leftovers, must, stderr, wakeai};

const STATIONS: [&str; 20] = [
    "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "s12", "s13", "s14", "s15",
    "s16", "s17", "s18", "s19", "s20",
];

/// A socket in the station's namespace that selects the algorithm and never connects.
fn idle_socket(bss: &Bss, station: &str) -> OwnedFd {
    let open = || {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP)).unwrap();
        socket.set_tcp_congestion(b"wakeai_cubic").unwrap();
        socket.into()
    };
    bss.namespace(station).run(open).unwrap()
}

fn proxy(bss: &Bss, station: &str) -> Child {
    let mut command = in_namespace(bss, station);
    command.args(["proxy", "--algorithm", "wakeai_cubic", "--listen", "127.0.0.1:0"]);
    command.stderr(Stdio::null()).spawn().unwrap()
}

#[test]
fn the_registration_ends_with_its_last_user_after_many_kills() {
    let Some(_machine) = Machine::take() else { return };
    let mut names = STATIONS.to_vec();
    names.push("server");
    let bss = Bss::new(&names);
    let server = bss.namespace("server");
    let to = Ipv4Addr::new(10, 77, 0, names.len() as u8);
    let fleet = Fleet::new();

    // Agents run in one half of the stations, proxies in the other half, and connections in all.
    let (left, right) = STATIONS.split_at(10);
    let stations = left.iter().zip(1..);
    let agents: Vec<_> =
        stations.map(|(name, number)| fleet.start(&bss, name, number, "")).collect();
    let proxies: Vec<_> = right.iter().map(|name| proxy(&bss, name)).collect();
    let mut uploads: Vec<_> = STATIONS
        .iter()
        .map(|name| {
            let pause = Duration::from_millis(100);
            Upload::with_pauses(bss.namespace(name), &server, to, "wakeai_cubic", pause)
        })
        .collect();
    let idle: Vec<_> = STATIONS.iter().map(|name| idle_socket(&bss, name)).collect();
    assert!(must("bpftool", "struct_ops list").contains("wakeai_cubic"));

    for mut agent in agents {
        agent.end(Signal::SIGKILL);
    }
    for mut proxy in proxies {
        proxy.kill().unwrap();
        proxy.wait().unwrap();
    }
    // Every other name and every third connection is removed.
    for name in STATIONS.iter().step_by(2) {
        Namespace::remove(&bss.name(name)).unwrap();
    }
    let mut number = 0;
    uploads.retain(|_| {
        number += 1;
        number % 3 != 0
    });

    // The sweep waits at most five seconds for the kernel, and reports algorithms that are still loaded then.
    let swept = wakeai(&["sweep"]);
    assert!(swept.status.success());
    assert!(!stderr(&swept).contains("keep the algorithms of Wakeai loaded"), "{}", stderr(&swept));
    assert_eq!(leftovers(), [""; 0], "{}", stderr(&swept));
    drop((uploads, idle));
}
