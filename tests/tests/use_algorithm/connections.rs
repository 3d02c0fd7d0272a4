//! Assignments of an algorithm to existing connections.

use crate::rig::{BEHIND, SERVER, Talk, Use, hosts, is_as_before, state};
use wakeai_tests::{Machine, stderr, wakeai};

#[test]
fn connections_to_a_network_or_a_port_are_moved_and_restored() {
    let Some(_machine) = Machine::take() else { return };
    let bss = hosts();
    let before = state(&bss);
    let there = [Talk::open(&bss, BEHIND), Talk::asking(&bss, BEHIND, Some("cubic"))];
    let elsewhere = Talk::open(&bss, SERVER);
    let of = |talks: &[Talk]| talks.iter().map(Talk::algorithm).collect::<Vec<_>>();

    let mut running = Use::start(&bss, "wakeai_compound --connections --to 192.0.2.0/24");
    assert_eq!(running.shown["connections"], 2);
    assert_eq!(of(&there), ["wakeai_compound", "wakeai_compound"]);
    assert_eq!(elsewhere.algorithm(), "reno");
    let new = Talk::open(&bss, BEHIND);
    assert_eq!(new.algorithm(), "reno", "new connections are not covered");
    running.ends_well();
    assert_eq!(of(&there), ["reno", "cubic"], "each has its own algorithm again");

    let one = there[1].to();
    let mut running = Use::start(&bss, &format!("bbr --connections --to {one}"));
    assert_eq!(of(&there), ["reno", "bbr"]);
    running.ends_well();
    assert_eq!(of(&there), ["reno", "cubic"]);
    drop((there, new, elsewhere));
    is_as_before(&bss, &before);
}

#[test]
fn a_connection_is_moved_by_its_cookie() {
    let Some(_machine) = Machine::take() else { return };
    let bss = hosts();
    let (meant, other) = (Talk::open(&bss, SERVER), Talk::open(&bss, SERVER));
    let cookie = meant.cookie(&bss);
    let mut running = Use::start(&bss, &format!("wakeai_reno --connection {cookie}"));
    assert_eq!((meant.algorithm().as_str(), other.algorithm().as_str()), ("wakeai_reno", "reno"));
    running.ends_well();
    assert_eq!(meant.algorithm(), "reno");
    let nobody = u64::MAX.to_string();
    let a = bss.name("a");
    let none = wakeai(&["use", "bbr", "--namespace", &a, "--connection", &nobody]);
    assert_eq!(none.status.code(), Some(1));
    assert!(stderr(&none).contains("no such connection"), "{}", stderr(&none));
}

#[test]
fn a_connection_of_two_assignments_gets_its_first_algorithm_back() {
    let Some(_machine) = Machine::take() else { return };
    let bss = hosts();
    let talk = Talk::asking(&bss, SERVER, Some("cubic"));
    let mut first = Use::start(&bss, "wakeai_rtt --connections");
    let mut second = Use::start(&bss, "bbr --connections");
    assert_eq!(talk.algorithm(), "bbr");
    first.ends_well();
    assert_eq!(talk.algorithm(), "bbr", "the connection belongs to the second assignment");
    second.ends_well();
    assert_eq!(talk.algorithm(), "cubic");
}

#[test]
fn a_connection_that_selects_another_algorithm_keeps_it() {
    let Some(_machine) = Machine::take() else { return };
    let bss = hosts();
    let talk = Talk::open(&bss, SERVER);
    let mut running = Use::start(&bss, "bbr --connections");
    socket2::SockRef::from(&talk.near).set_tcp_congestion(b"cubic").unwrap();
    running.ends_well();
    assert_eq!(talk.algorithm(), "cubic");
}
