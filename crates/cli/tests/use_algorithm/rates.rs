//! Target rates.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::Value;

use crate::cgroups::{Client, Group};
use crate::rig::{BEHIND, SERVER, Talk, Use, hosts};
use crate::support::bss::Bss;
use crate::support::{Machine, must, stderr, wait_for, wakeai};

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
fn new_connections_get_the_target_and_a_new_one_while_they_run() {
    let Some(_machine) = Machine::take() else { return };
    let bss = hosts();
    for scope in ["", " --route 192.0.2.0/24"] {
        let earlier = Talk::open(&bss, BEHIND);
        let mut ruling = Use::start(&bss, &format!("wakeai_av --rate 8Mbit/s{scope}"));
        let talk = Talk::open(&bss, BEHIND);
        let asks = Talk::asking(&bss, BEHIND, Some("wakeai_av"));
        assert_eq!(target_of(&bss, &talk), Some(1_000_000));
        assert_eq!(target_of(&bss, &asks), None, "its target is its own affair");
        let set = wakeai(&["use", "--set", &ruling.id(), "--rate", "4Mbit/s"]);
        assert!(set.status.success(), "{}", stderr(&set));
        assert_eq!(target_of(&bss, &talk), Some(500_000));
        assert_eq!(target_of(&bss, &Talk::open(&bss, BEHIND)), Some(500_000));
        assert_eq!(target_of(&bss, &asks), None);
        assert_eq!(target_of(&bss, &earlier), None);
        ruling.ends_well();
    }
}

#[test]
fn existing_connections_and_those_of_a_cgroup_get_it_too() {
    let Some(_machine) = Machine::take() else { return };
    let (bss, group) = (hosts(), Group::new());
    let (there, elsewhere) = (Talk::open(&bss, BEHIND), Talk::open(&bss, SERVER));
    let moving = Use::start(&bss, "wakeai_av --rate 8Mbit/s --connections --to 192.0.2.0/24");
    assert_eq!(target_of(&bss, &there), Some(1_000_000));
    assert_eq!(target_of(&bss, &elsewhere), None);

    let service = Use::run(&format!("wakeai_av --cgroup {}", group.path()), &[]);
    let client = Client::start(&bss, group.path());
    wait_for("it is ruled", || (client.algorithm(&bss) == "wakeai_av").then_some(()));
    assert_eq!(target(client.cookie(&bss)), None);
    for ruling in [&service, &moving] {
        let set = wakeai(&["use", "--set", &ruling.id(), "--rate", "16Mbit/s"]);
        assert!(set.status.success(), "{}", stderr(&set));
    }
    assert_eq!(target_of(&bss, &there), Some(2_000_000));
    assert_eq!(target(client.cookie(&bss)), Some(2_000_000));
    let next = Client::start(&bss, group.path());
    wait_for("a new one has it", || (target(next.cookie(&bss)) == Some(2_000_000)).then_some(()));
}

#[test]
fn only_what_has_a_target_takes_one() {
    let Some(_machine) = Machine::take() else { return };
    let bss = hosts();
    let ruling = Use::start(&bss, "wakeai_rtt");
    let set = wakeai(&["use", "--set", &ruling.id(), "--rate", "4Mbit/s"]);
    assert_eq!(set.status.code(), Some(2));
    assert!(stderr(&set).contains("wakeai_rtt has no target rate"), "{}", stderr(&set));
    let nobody = wakeai(&["use", "--set", "1", "--rate", "4Mbit/s"]);
    assert_eq!(nobody.status.code(), Some(2));
}

/// Four that compete for 50 Mbit/s, of which one has a target of twice its fair share. The
/// bottleneck is a router's: on the sender's own interface the kernel lets no queue grow (TSQ).
#[test]
fn one_with_a_target_gets_more_than_those_that_it_competes_with() {
    let Some(_machine) = Machine::take() else { return };
    let bss = Bss::new(&["a", "server", "far"]);
    bss.wire("server", "far");
    bss.ip("a", "route add 10.88.0.0/24 via 10.77.0.2");
    bss.ip("far", "addr flush dev wlan0"); // reached over the router only
    bss.ip("far", "route add 10.77.0.0/24 via 10.88.0.1");
    let forward = || std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").unwrap();
    bss.namespace("server").run(forward).unwrap();
    let router = bss.name("server");
    must(
        "tc",
        &format!("-n {router} qdisc add dev eth0 root tbf rate 50mbit burst 64k limit 600k"),
    );
    let open = || Talk::with(&bss, "far", [10, 88, 0, 2].into(), None);
    let plain: Vec<_> = (0..3).map(|_| open()).collect();
    let _ruling = Use::start(&bss, "wakeai_av --rate 25Mbit/s");
    let aimed = open();
    let received: Vec<AtomicU64> = (0..4).map(|_| AtomicU64::new(0)).collect();
    let all = plain.iter().chain([&aimed]);
    std::thread::scope(|scope| {
        for (talk, count) in all.zip(&received) {
            scope.spawn(|| send_for(&talk.near, Duration::from_secs(8)));
            scope.spawn(|| receive(&talk.far, count));
        }
    });
    let received: Vec<_> = received.iter().map(|count| count.load(Ordering::Relaxed)).collect();
    println!("bytes in 8 s: {received:?}");
    let others = received[..3].iter().sum::<u64>() / 3;
    assert!(received[3] > others + others / 4, "{received:?}");
}

fn send_for(mut stream: &TcpStream, time: Duration) {
    let end = std::time::Instant::now() + time;
    let chunk = vec![0; 1 << 15];
    while std::time::Instant::now() < end && stream.write_all(&chunk).is_ok() {}
    let _ = stream.shutdown(std::net::Shutdown::Write);
}

fn receive(mut stream: &TcpStream, count: &AtomicU64) {
    let mut chunk = vec![0; 1 << 16];
    while let Ok(length) = stream.read(&mut chunk)
        && length > 0
    {
        count.fetch_add(length as u64, Ordering::Relaxed);
    }
}
