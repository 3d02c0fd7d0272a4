//! The target rates of connections: set, changed and removed.

use serde_json::Value;

use crate::cgroups::{Client, Group};
use crate::rig::{BEHIND, SERVER, Talk, Use, hosts};
use wakeai_tests::bss::Bss;
use wakeai_tests::{Machine, must, stderr, wait_for, wakeai};

/// The target of a connection in the kernel, in bytes per second.
fn target(cookie: u64) -> Option<u64> {
    let entries = must("bpftool", "-j map dump pinned /sys/fs/bpf/wakeai/socket_targets");
    let entries: Value = serde_json::from_str(&entries).unwrap();
    let number = |bytes: &Value| {
        let bytes = bytes.as_array().unwrap().iter().rev().map(|byte| byte.as_str().unwrap());
        bytes.fold(0, |sum, byte| sum << 8 | u64::from_str_radix(&byte[2..], 16).unwrap())
    };
    let mut entries = entries.as_array().unwrap().iter();
    let found = entries.find(|entry| number(&entry["key"]) == cookie)?;
    Some(number(&found["value"]))
}

fn target_of(bss: &Bss, talk: &Talk) -> Option<u64> {
    target(talk.cookie(bss))
}

#[test]
fn new_connections_get_the_target_and_its_later_changes() {
    let Some(_machine) = Machine::take() else { return };
    let bss = hosts();
    for scope in ["", " --route 192.0.2.0/24"] {
        let earlier = Talk::open(&bss, BEHIND);
        let mut running = Use::start(&bss, &format!("wakeai_av --rate 8Mbit/s{scope}"));
        let talk = Talk::open(&bss, BEHIND);
        let asks = Talk::asking(&bss, BEHIND, Some("wakeai_av"));
        assert_eq!(target_of(&bss, &talk), Some(1_000_000));
        assert_eq!(
            target_of(&bss, &asks),
            None,
            "a connection that chose the algorithm itself gets no target rate"
        );
        let set = wakeai(&["use", "--set", &running.id(), "--rate", "4Mbit/s"]);
        assert!(set.status.success(), "{}", stderr(&set));
        assert_eq!(target_of(&bss, &talk), Some(500_000));
        assert_eq!(target_of(&bss, &Talk::open(&bss, BEHIND)), Some(500_000));
        assert_eq!(target_of(&bss, &asks), None);
        assert_eq!(target_of(&bss, &earlier), None);
        running.ends_well();
    }
}

#[test]
fn existing_connections_and_those_of_a_cgroup_get_the_target() {
    let Some(_machine) = Machine::take() else { return };
    let (bss, group) = (hosts(), Group::new());
    let (there, elsewhere) = (Talk::open(&bss, BEHIND), Talk::open(&bss, SERVER));
    let moving = Use::start(&bss, "wakeai_av --rate 8Mbit/s --connections --to 192.0.2.0/24");
    assert_eq!(target_of(&bss, &there), Some(1_000_000));
    assert_eq!(target_of(&bss, &elsewhere), None);

    let service = Use::run(&format!("wakeai_av --rate 2Mbit/s --cgroup {}", group.path()), &[]);
    let client = Client::start(&bss, group.path());
    wait_for("the connection has the target rate", || {
        (target(client.cookie(&bss)) == Some(250_000)).then_some(())
    });
    for running in [&service, &moving] {
        let set = wakeai(&["use", "--set", &running.id(), "--rate", "16Mbit/s"]);
        assert!(set.status.success(), "{}", stderr(&set));
    }
    assert_eq!(target_of(&bss, &there), Some(2_000_000));
    assert_eq!(target(client.cookie(&bss)), Some(2_000_000));
    let next = Client::start(&bss, group.path());
    wait_for("a new connection has the new target rate", || {
        (target(next.cookie(&bss)) == Some(2_000_000)).then_some(())
    });
}

#[test]
fn only_an_algorithm_with_a_target_takes_a_rate() {
    let Some(_machine) = Machine::take() else { return };
    let bss = hosts();
    let running = Use::start(&bss, "wakeai_rtt");
    let set = wakeai(&["use", "--set", &running.id(), "--rate", "4Mbit/s"]);
    assert_eq!(set.status.code(), Some(2));
    assert!(stderr(&set).contains("wakeai_rtt has no target rate"), "{}", stderr(&set));
    let nobody = wakeai(&["use", "--set", "1", "--rate", "4Mbit/s"]);
    assert_eq!(nobody.status.code(), Some(2));
}
