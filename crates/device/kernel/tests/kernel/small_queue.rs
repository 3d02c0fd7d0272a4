//! Tests the bound on a connection's share of the host's queue. A TUN takes packets at once. So a
//! token bucket before it keeps the packets as long as a busy radio would, and with them the memory
//! that TCP small queues count.

use std::process::Command;
use std::time::{Duration, Instant};

use wakeai_kernel::{
    Bounded, Bounds, Control, STALE_AFTER, TcpSnapshot, move_connections, snapshot,
};

use crate::path::PathConfig;
use crate::rig::{Registration, Rig};

/// The size of the largest aggregate (A-MPDU) of 802.11n in bytes, and the number of packets of
/// 1500 bytes that fit into it.
const AGGREGATE: u64 = 65_535;
const PACKETS: u64 = 43;
/// The smallest number of bytes that `bpf/shim.h` counts for a packet, and the kernel's default
/// shift of the pacing rate: data for 1/1024 s may wait in the host's queue.
const TRUESIZE: u64 = 1448 + 832;
const SHIFT: u32 = 10;
/// The pacing rate, in bytes per second, to which the budget raises the connection.
const RAISED: u64 = (PACKETS * TRUESIZE - 1) << SHIFT;

/// A window of 60 segments. The RTT is 20 ms plus the time that packets wait in the queue.
const WINDOW: Bounds = Bounds::from_numbers(60, 60, 0, 0);
const BUDGET: Bounds = Bounds::from_numbers(60, 60, 0, AGGREGATE);

/// How often the queue under the budget is looked at, at most.
const TRIES: u32 = 5;

/// Prints the reason and returns `None` where this kernel has no token bucket.
fn rig() -> Option<Rig> {
    let rig = Rig::with_path(PathConfig::CALM);
    let bucket = "qdisc add dev wire root tbf rate 2mbit burst 3000 limit 1000000";
    let run = || Command::new("tc").args(bucket.split(' ')).status().unwrap();
    if rig.sender.run(run).unwrap().success() {
        return Some(rig);
    }
    assert!(std::env::var_os("WAKEAI_REQUIRE_KERNEL").is_none(), "kernel lacks sch_tbf");
    println!("SKIPPED: the kernel has no token bucket filter (sch_tbf)");
    None
}

/// The bytes that the connection keeps in the host's queue, as the kernel counts them.
fn queued(rig: &Rig) -> u64 {
    let show = || Command::new("ss").args(["-tmnH", "dst", "10.77.0.2"]).output().unwrap();
    let shown = String::from_utf8(rig.sender.run(show).unwrap().stdout).unwrap();
    let memory = shown.split("skmem:(").nth(1).unwrap_or_else(|| panic!("{shown}"));
    let figure = memory.split(',').find_map(|figure| figure.strip_prefix('t'));
    figure.unwrap().parse().unwrap()
}

/// Applies the bounds for a while. Returns a snapshot, and the median of the connection's share of
/// the queue in the second half of that time. It is a median because on a busy machine single
/// samples were ten times as high.
fn mostly_queued(rig: &Rig, control: &Control, bounds: Bounds) -> (TcpSnapshot, u64) {
    let (cookie, interface) = rig.interface("wire");
    control.set_interface(cookie, interface, bounds).unwrap();
    let (began, mut seen) = (Instant::now(), Vec::new());
    while began.elapsed() < Duration::from_secs(3) {
        control.heartbeat(cookie, interface).unwrap();
        if began.elapsed() > Duration::from_millis(1500) {
            seen.push(queued(rig));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    seen.sort_unstable();
    (own(rig), seen[seen.len() / 2])
}

/// Waits until the queue has sent what was queued before the bounds applied.
fn settle(rig: &Rig, control: &Control, bounds: Bounds) {
    let (cookie, interface) = rig.interface("wire");
    control.set_interface(cookie, interface, bounds).unwrap();
    let began = Instant::now();
    while queued(rig) >= 10 * TRUESIZE {
        assert!(began.elapsed() < Duration::from_secs(20), "the queue does not drain");
        control.heartbeat(cookie, interface).unwrap();
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn own(rig: &Rig) -> TcpSnapshot {
    let all = rig.sender.run(|| snapshot(None)).unwrap().unwrap();
    all.into_iter().next().unwrap()
}

fn rate(one: &TcpSnapshot) -> u64 {
    one.figures.pacing_rate.unwrap().bytes_per_second()
}

#[test]
fn a_budget_keeps_an_aggregate_in_the_host_queue_where_a_few_packets_were() {
    let Some(registration) = Registration::share() else { return };
    for bounded in Bounded::ALL {
        let Some(rig) = rig() else { return };
        let _flow = rig.flow(77, bounded.name);
        settle(&rig, &registration.0, WINDOW);
        let (before, without) = mostly_queued(&rig, &registration.0, WINDOW);
        let enough = (PACKETS - 5) * TRUESIZE;
        // A sender that a busy machine keeps waiting leaves a part of its budget unused; it is looked at again.
        let mut found = mostly_queued(&rig, &registration.0, BUDGET);
        for _ in 1..TRIES {
            if found.1 <= enough {
                found = mostly_queued(&rig, &registration.0, BUDGET);
            }
        }
        let (raised, with) = found;
        println!("{}: {without} and {with} bytes", bounded.name);
        assert_eq!(rate(&raised), RAISED, "{}", bounded.name);
        assert!(rate(&before) < RAISED / 10, "{}", bounded.name);
        assert!(without < 20 * TRUESIZE, "{}: {without}", bounded.name);
        assert!(with > enough, "{}: {with}", bounded.name);
    }
}

#[test]
fn nothing_is_raised_without_a_ceiling_nor_where_a_bound_paces() {
    let Some(registration) = Registration::share() else { return };
    let Some(rig) = rig() else { return };
    let _flow = rig.flow(77, "wakeai_cubic");
    let endless = Bounds::from_numbers(60, 0, 0, AGGREGATE);
    assert!(rate(&mostly_queued(&rig, &registration.0, endless).0) < RAISED / 10);
    let paced = Bounds::from_numbers(60, 60, 200_000, AGGREGATE);
    assert_eq!(rate(&mostly_queued(&rig, &registration.0, paced).0), 200_000);
    assert_eq!(rate(&mostly_queued(&rig, &registration.0, BUDGET).0), RAISED);
}

#[test]
fn a_raised_rate_ends_with_the_heartbeat_and_with_the_algorithm() {
    let Some(registration) = Registration::share() else { return };
    let Some(rig) = rig() else { return };
    let _flow = rig.flow(77, "wakeai_cubic");
    assert_eq!(rate(&mostly_queued(&rig, &registration.0, BUDGET).0), RAISED);
    std::thread::sleep(STALE_AFTER.into());
    // At the next ACK the pacing rate follows from the window again.
    let began = Instant::now();
    while rate(&own(&rig)) >= RAISED / 10 {
        assert!(began.elapsed() < Duration::from_secs(20), "the rate stays raised");
        std::thread::sleep(Duration::from_millis(20));
    }

    assert_eq!(rate(&mostly_queued(&rig, &registration.0, BUDGET).0), RAISED);
    let moved = rig.sender.run(|| move_connections(&["wakeai_cubic"], "reno", None));
    assert_eq!(moved.unwrap().unwrap().failed, 0);
    assert!(rate(&own(&rig)) < RAISED / 10);
}
