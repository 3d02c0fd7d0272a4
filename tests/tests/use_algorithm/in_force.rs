//! Lists and ends the assignments of the machine.

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::rig::{SERVER, Talk, Use, hosts, is_as_before, state};
use wakeai_tests::{Machine, stderr, stdout, wait_for, wakeai};

fn listed() -> Vec<Value> {
    let list = wakeai(&["use", "--list", "--json"]);
    assert!(list.status.success(), "{}", stderr(&list));
    stdout(&list).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn assignments_are_listed_with_their_connections() {
    let Some(_machine) = Machine::take() else { return };
    let bss = hosts();
    assert!(listed().is_empty());
    assert_eq!(stdout(&wakeai(&["use", "--list"])), "nothing is in force\n");
    let mut defaults = Use::start(&bss, "wakeai_rtt --for 10min");
    let talk = Talk::open(&bss, SERVER);
    let existing = Use::start(&bss, "bbr --connections --to 10.77.0.2");
    let all = listed();
    let one =
        |running: &Use| all.iter().find(|one| one["id"] == running.shown["id"]).unwrap().clone();
    let (first, second) = (one(&defaults), one(&existing));
    assert_eq!(first["algorithm"], "wakeai_rtt");
    assert_eq!(first["scope"], "namespace");
    assert_eq!(first["netns"], bss.namespace("a").id().0);
    assert_eq!(first["connections"], 0, "the second assignment has the connection now");
    assert!(first["left_s"].as_f64().unwrap() > 0.0);
    assert_eq!((&second["connections"], &second["to"]), (&1.into(), &"10.77.0.2/32".into()));
    assert_eq!(second["left_s"], Value::Null);
    let table = stdout(&wakeai(&["use", "--list"]));
    for word in ["wakeai_rtt", "connections all", "10.77.0.2/32", &defaults.id()] {
        assert!(table.contains(word), "{word}: {table}");
    }
    drop(talk);
    defaults.ends_well();
    assert_eq!(listed().len(), 1);
}

#[test]
fn one_or_all_assignments_are_ended_and_undone_on_return() {
    let Some(_machine) = Machine::take() else { return };
    let bss = hosts();
    let before = state(&bss);
    let talk = Talk::open(&bss, SERVER);
    let mut moving = Use::start(&bss, "wakeai_rtt --connections");
    let mut defaults = Use::start(&bss, "wakeai_cubic");
    let mut over = Use::start(&bss, "bbr --route 192.0.2.0/24");
    let undone = wakeai(&["use", "--undo", &moving.id()]);
    assert!(undone.status.success(), "{}", stderr(&undone));
    assert_eq!(talk.algorithm(), "reno");
    assert_eq!(bss.default("a"), "wakeai_cubic", "the other assignments stay");
    assert!(moving.wait().success());
    let again = wakeai(&["use", "--undo", &moving.id()]);
    assert_eq!(again.status.code(), Some(2), "there is no such ID any more");

    assert!(wakeai(&["use", "--undo", "all"]).status.success());
    assert_eq!(bss.default("a"), "reno");
    assert!(defaults.wait().success() && over.wait().success());
    drop(talk);
    is_as_before(&bss, &before);
    let nothing = wakeai(&["use", "--undo", "all"]);
    assert!(nothing.status.success() && stderr(&nothing).contains("nothing is in force"));
}

#[test]
fn what_another_program_undoes_is_put_back_and_listed_and_the_fourth_time_ends_it() {
    let Some(_machine) = Machine::take() else { return };
    let bss = hosts();
    let before = state(&bss);
    let mut over = Use::start(&bss, "bbr --route 192.0.2.0/24");
    let has = || bss.inside("a", "ip route").contains("congctl bbr").then_some(());
    let replace = || bss.ip("a", "route replace 192.0.2.0/24 via 10.77.0.2 mtu 1400 initcwnd 12");
    for round in 1..=3 {
        replace();
        wait_for("the route has the algorithm again", has);
        let shown = || (listed()[0]["drifts"].as_array().unwrap().len() == round).then_some(());
        wait_for("the list says so", shown);
    }
    let said = stderr(&wakeai(&["use", "--list"]));
    assert!(said.contains("was changed by another program"), "{said}");
    replace();
    assert_eq!(over.wait().code(), Some(3));
    is_as_before(&bss, &before);
}

#[test]
fn a_default_that_a_later_process_of_wakeai_sets_is_no_drift() {
    let Some(_machine) = Machine::take() else { return };
    let bss = hosts();
    let mut earlier = Use::start(&bss, "wakeai_cubic");
    // This process holds the default now, as a later agent in the namespace does.
    let lease = wakeai_host::Lease::take(wakeai_host::Role::Command).unwrap();
    let set = || wakeai_host::set_sysctl(&lease, "net.ipv4.tcp_congestion_control", "bbr");
    let guard = bss.namespace("a").run(set).unwrap().unwrap();
    assert_eq!(listed()[0]["drifts"], Value::Array(Vec::new()), "the list looks");
    assert_eq!(bss.default("a"), "bbr");
    bss.namespace("a").run(|| guard.restore(&lease)).unwrap().unwrap();
    assert!(lease.release(&[]).is_empty());
    earlier.ends_well();
}

#[test]
fn a_stopped_assignment_is_told_takes_no_late_rate_and_can_be_ended() {
    let Some(_machine) = Machine::take() else { return };
    let bss = hosts();
    let mut running = Use::start(&bss, "wakeai_av --rate 8Mbit/s");
    let id = running.id();
    running.signal(Signal::SIGSTOP);
    let set = wakeai(&["use", "--set", &id, "--rate", "2Mbit/s"]);
    assert_eq!(set.status.code(), Some(1));
    let told = |text: &str| text.contains("is stopped") && !text.contains("os error");
    assert!(told(&stderr(&set)), "{}", stderr(&set));
    let list = wakeai(&["use", "--list"]);
    assert!(told(&stderr(&list)), "{}", stderr(&list));
    running.signal(Signal::SIGCONT);
    wait_for("it answers again", || listed().first().map(|one| assert_eq!(one["rate_mbps"], 8.0)));

    running.signal(Signal::SIGSTOP);
    assert!(wakeai(&["use", "--undo", &id]).status.success());
    assert!(running.wait().success());
}
