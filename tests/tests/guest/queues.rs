//! `wakeai probe buffer` behind queueing disciplines of a Debian kernel.
//!
//! A router stands for the access point. A bridge cannot, because packets that wait in a bridge still count against the
//! sender's socket buffer. The sender would stop before the queue drops.

use std::time::Instant;

use serde_json::Value;

use crate::passed;
use wakeai_tests::bss::Bss;
use wakeai_tests::must;
use wakeai_tests::probe::{Listener, buffer, inside, near};

/// The rate of the link to the station. The software emulation is too slow for a faster link.
const LINK: &str = "4mbit";
const OFFERED: &str = "16Mbit/s";

pub(crate) fn are_told_apart() {
    let began = Instant::now();
    let found = behind("pfifo limit 50");
    near(&found["packets"], 50.0, 5.0);
    assert_eq!((&found["drops"], &found["flows"]), (&"tail".into(), &"shared".into()), "{found}");
    passed("a queue with tail drop was measured", began);

    let began = Instant::now();
    let found = behind("fq_codel");
    assert_eq!((&found["drops"], &found["flows"]), (&"aqm".into(), &"separate".into()), "{found}");
    passed("fq_codel was recognised", began);
}

/// Measures the buffer in front of a station: this queue, which a token bucket drains at the rate
/// of the link.
fn behind(queue: &str) -> Value {
    let bss = Bss::without_interfaces(&["a", "router", "b"]);
    for (host, network) in [("a", 1), ("b", 2)] {
        let there = bss.name(host);
        bss.ip("router", &format!("link add to-{host} type veth peer name eth0 netns {there}"));
        bss.ip("router", &format!("addr add 10.79.{network}.1/24 dev to-{host}"));
        bss.ip("router", &format!("link set to-{host} up"));
        bss.ip(host, &format!("addr add 10.79.{network}.2/24 dev eth0"));
        bss.ip(host, "link set eth0 up");
        bss.ip(host, &format!("route add default via 10.79.{network}.1"));
    }
    let router = bss.namespace("router");
    let forward = || std::fs::write("/proc/sys/net/ipv4/ip_forward", "1");
    router.run(forward).unwrap().unwrap();
    for qdisc in [
        format!("root handle 1: tbf rate {LINK} burst 3000 limit 10000000"),
        format!("parent 1:1 handle 10: {queue}"),
    ] {
        router.run(|| must("tc", &format!("qdisc add dev to-a {qdisc}"))).unwrap();
    }
    let station = Listener::start(inside(&bss.name("a")), "buffer", "10.79.1.2", &[]);
    let more = ["--rate", OFFERED, "--runs", "3"];
    let found = buffer(&bss.name("b"), &mut [station], &more);
    println!("guest: {queue}: {found}");
    found
}
