//! The algorithm of new connections of a namespace, and of those over a route.

use std::net::Ipv6Addr;

use nix::sys::signal::Signal;

use crate::rig::{BEHIND, SERVER, Talk, Use, hosts, is_as_before, state};
use wakeai_tests::{Machine, must, stderr, wakeai};

#[test]
fn new_connections_of_a_namespace_and_no_others_get_the_algorithm() {
    let Some(_machine) = Machine::take() else { return };
    let bss = hosts();
    let before = state(&bss);
    let earlier = Talk::open(&bss, SERVER);
    for algorithm in ["wakeai_rtt", "bbr"] {
        let mut running = Use::start(&bss, algorithm);
        assert_eq!(running.shown["scope"], "namespace");
        let (new, asks) = (Talk::open(&bss, SERVER), Talk::asking(&bss, SERVER, Some("cubic")));
        assert_eq!(new.algorithm(), algorithm);
        assert_eq!(asks.algorithm(), "cubic", "a program's own choice is kept");
        assert_eq!(earlier.algorithm(), "reno");
        assert_eq!(bss.default("server"), "reno");

        running.ends_well();
        assert_eq!(new.algorithm(), "reno", "back on the previous default");
        assert_eq!(asks.algorithm(), "cubic");
        assert_eq!(Talk::open(&bss, SERVER).algorithm(), "reno");
        drop((new, asks));
        is_as_before(&bss, &before);
    }
}

#[test]
fn a_connection_that_selected_the_algorithm_itself_keeps_it() {
    let Some(_machine) = Machine::take() else { return };
    let bss = hosts();
    let mut running = Use::start(&bss, "bbr");
    let asks = Talk::asking(&bss, SERVER, Some("bbr"));
    running.ends_well();
    assert_eq!(asks.algorithm(), "bbr");
}

#[test]
fn a_listener_follows_the_restored_default() {
    let Some(_machine) = Machine::take() else { return };
    let bss = hosts();
    for algorithm in ["wakeai_cubic", "wakeai_bbr", "bbr"] {
        let mut running = Use::run(algorithm, &["--namespace", &bss.name("server")]);
        let listener = std::net::TcpListener::bind;
        let listener = bss.namespace("server").run(|| listener("10.77.0.2:0").unwrap()).unwrap();
        let address = listener.local_addr().unwrap();
        let accepted = || {
            let connect = || std::net::TcpStream::connect(address).unwrap();
            let near = bss.namespace("a").run(connect).unwrap();
            Talk { near: listener.accept().unwrap().0, far: near }
        };
        assert_eq!(accepted().algorithm(), algorithm);
        running.ends_well();
        assert_eq!(accepted().algorithm(), "reno");
    }
}

#[test]
fn new_connections_over_a_route_and_no_others_get_the_algorithm() {
    let Some(_machine) = Machine::take() else { return };
    let bss = hosts();
    let before = state(&bss);
    let mut running = Use::start(&bss, "wakeai_rtt --route 192.0.2.0/24");
    let (over, beside) = (Talk::open(&bss, BEHIND), Talk::open(&bss, SERVER));
    assert_eq!(over.algorithm(), "wakeai_rtt");
    assert_eq!(beside.algorithm(), "reno");
    let route = must("ip", &format!("-n {} route show 192.0.2.0/24", bss.name("a")));
    for kept in ["via 10.77.0.2", "mtu 1400", "initcwnd 12", "congctl wakeai_rtt"] {
        assert!(route.contains(kept), "{kept}: {route}");
    }
    running.ends_well();
    assert_eq!(over.algorithm(), "reno");
    assert_eq!(Talk::open(&bss, BEHIND).algorithm(), "reno");
    drop((over, beside));
    is_as_before(&bss, &before);
}

#[test]
fn the_previous_algorithm_of_a_route_is_restored() {
    let Some(_machine) = Machine::take() else { return };
    let bss = hosts();
    for (station, end) in [("a", 1), ("server", 2)] {
        bss.ip(station, &format!("addr add fd77::{end}/64 dev wlan0 nodad"));
    }
    bss.ip("server", "addr add 2001:db8::1/128 dev lo");
    bss.ip("a", "route add 2001:db8::/32 via fd77::2 congctl cubic");
    let behind: Ipv6Addr = "2001:db8::1".parse().unwrap();
    let before = state(&bss);

    let mut v6 = Use::start(&bss, "bbr --route 2001:db8::/32");
    let mut v4 = Use::start(&bss, "bbr --route 10.77.0.0/24 --dev wlan0");
    assert_eq!(Talk::open(&bss, behind).algorithm(), "bbr");
    assert_eq!(Talk::open(&bss, SERVER).algorithm(), "bbr");
    assert_eq!(Talk::open(&bss, BEHIND).algorithm(), "reno");
    v6.ends_well();
    v4.ends_well();
    assert_eq!(Talk::open(&bss, behind).algorithm(), "cubic");
    is_as_before(&bss, &before);
}

#[test]
fn a_later_change_of_a_route_is_kept() {
    let Some(_machine) = Machine::take() else { return };
    let bss = hosts();
    let mut running = Use::start(&bss, "bbr --route 192.0.2.0/24");
    bss.ip("a", "route replace 192.0.2.0/24 via 10.77.0.2 congctl cubic");
    running.ends_well();
    let route = must("ip", &format!("-n {} route show 192.0.2.0/24", bss.name("a")));
    assert!(route.contains("congctl cubic"), "{route}");

    // Another attribute of the route was changed. The change is kept, and the previous algorithm is
    // restored.
    let mut running = Use::start(&bss, "bbr --route 192.0.2.0/24");
    bss.ip("a", "route replace 192.0.2.0/24 via 10.77.0.2 mtu 1300 congctl bbr");
    running.ends_well();
    let route = must("ip", &format!("-n {} route show 192.0.2.0/24", bss.name("a")));
    assert!(route.contains("mtu 1300") && route.contains("congctl cubic"), "{route}");
}

#[test]
fn an_assignment_ends_after_its_time() {
    let Some(_machine) = Machine::take() else { return };
    let bss = hosts();
    let before = state(&bss);
    let mut running = Use::start(&bss, "wakeai_cubic --for 1s");
    assert!(running.shown["left_s"].as_f64().unwrap() <= 1.0);
    assert!(running.wait().success());
    is_as_before(&bss, &before);
}

#[test]
fn two_assignments_cannot_cover_the_same_namespace() {
    let Some(_machine) = Machine::take() else { return };
    let bss = hosts();
    let a = bss.name("a");
    let mut running = Use::start(&bss, "bbr");
    let second = wakeai(&["use", "cubic", "--namespace", &a, "--for", "1s"]);
    assert_eq!(second.status.code(), Some(2));
    assert!(stderr(&second).contains(&format!("--undo {}", running.id())), "{}", stderr(&second));
    let elsewhere = wakeai(&["use", "bbr", "--namespace", &bss.name("server"), "--for", "10ms"]);
    assert!(elsewhere.status.success(), "{}", stderr(&elsewhere));
    assert!(running.end(Signal::SIGINT).success());
    let second = wakeai(&["use", "bbr", "--namespace", &a, "--for", "10ms"]);
    assert!(second.status.success(), "{}", stderr(&second));
}

#[test]
fn missing_objects_are_named_and_nothing_is_changed() {
    let Some(_machine) = Machine::take() else { return };
    let bss = hosts();
    let before = state(&bss);
    let a = bss.name("a");
    let cases: [(&[&str], &str); 6] = [
        (&["fastest"], "this kernel has wakeai_cubic"),
        (&["bbr", "--route", "198.51.100.0/24"], "no route to 198.51.100.0/24"),
        (&["bbr", "--route", "192.0.2.0/25"], "no route to 192.0.2.0/25"),
        (&["bbr", "--route", "192.0.2.0/24", "--dev", "wlan7"], "\"wlan7\""),
        (&["bbr", "--rate", "5Mbit/s"], "bbr has no target rate"),
        (&["bbr", "--namespace", "wkt-nowhere"], "expected a name"),
    ];
    for (arguments, expected) in cases {
        let mut all = vec!["use"];
        all.extend(arguments);
        if !arguments.contains(&"--namespace") {
            all.extend(["--namespace", &a]);
        }
        let found = wakeai(&all);
        assert_eq!(found.status.code(), Some(2), "{arguments:?}: {}", stderr(&found));
        assert!(stderr(&found).contains(expected), "{arguments:?}: {}", stderr(&found));
    }
    bss.ip("a", "route add 192.0.2.0/24 dev wlan0 metric 7");
    let found = wakeai(&["use", "bbr", "--route", "192.0.2.0/24", "--namespace", &a]);
    assert_eq!(found.status.code(), Some(2));
    assert!(stderr(&found).contains("has 2 routes"), "{}", stderr(&found));
    bss.ip("a", "route del 192.0.2.0/24 dev wlan0 metric 7");
    assert_eq!(state(&bss), before);
}
