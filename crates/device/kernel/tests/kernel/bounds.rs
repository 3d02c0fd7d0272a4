//! Tests which connections obey bounds, and for how long.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use libbpf_rs::{MapCore as _, MapFlags, MapHandle};
use wakeai_kernel::{
    AppliedBounds, Bounded, Bounds, CongestionState, Control, STALE_AFTER, snapshot,
};
use wakeai_units::Rate;

use crate::path::PathConfig;
use crate::rig::{Flow, Registration, Rig, kernel};
use crate::watch::{largest, watch, watch_each};

/// Sets bounds for the interface `wire`, with a first heartbeat.
fn bind(rig: &Rig, control: &Control, bounds: Bounds) {
    let (cookie, interface) = rig.interface("wire");
    control.set_interface(cookie, interface, bounds).unwrap();
    control.heartbeat(cookie, interface).unwrap();
}

fn bounds(floor: u32, ceiling: u32) -> Bounds {
    Bounds::from_numbers(floor, ceiling, 0, 0)
}

/// A flow of each algorithm, all over the wire.
fn one_of_each(rig: &Rig) -> [Flow; Bounded::ALL.len()] {
    Bounded::ALL.map(|bounded| rig.flow(77, bounded.name))
}

#[test]
fn a_ceiling_holds_from_the_first_flight_on() {
    let Some(registration) = Registration::share() else { return };
    for bounded in Bounded::ALL {
        let rig = Rig::with_path(PathConfig::CALM);
        bind(&rig, &registration.0, bounds(0, 7));
        let _flow = rig.flow(77, bounded.name);
        let samples = watch(&rig, Some(&registration.0), Duration::from_secs(1));
        assert_eq!(largest(&samples), 7, "{}", bounded.name);
    }
}

#[test]
fn a_floor_and_a_ceiling_hold_in_every_state_but_loss() {
    let Some(registration) = Registration::share() else { return };
    for bounded in Bounded::ALL {
        let rig = Rig::with_path(PathConfig::LOSSY);
        // The bounds come first: a window from before them could return when the kernel undoes a reduction.
        bind(&rig, &registration.0, bounds(30, 40));
        let _flow = rig.flow(77, bounded.name);
        let samples = watch(&rig, Some(&registration.0), Duration::from_secs(4));
        // The first sample has the window from before its ACK, at which the bounds applied first.
        let bound = &samples[1..];
        assert!(bound.iter().any(|figures| figures.congestion_state == CongestionState::Recovery));
        let mut after_loss = false;
        for figures in bound {
            assert!(figures.cwnd.get() <= 40, "{}: {figures:?}", bounded.name);
            // After the state Loss, the floor first applies at the ACK that ends the state.
            let in_loss = figures.congestion_state == CongestionState::Loss;
            assert!(figures.cwnd.get() >= 30 || in_loss || after_loss, "{figures:?}");
            after_loss = in_loss;
        }
    }
}

#[test]
fn a_ceiling_that_is_lowered_and_lifted_is_followed() {
    let Some(registration) = Registration::share() else { return };
    let rig = Rig::with_path(PathConfig::CALM);
    // The path loses nothing, and holds 170 segments. That is five times the highest ceiling.
    bind(&rig, &registration.0, bounds(0, 20));
    let _flows = one_of_each(&rig);
    let watched = |seconds| watch_each(&rig, Some(&registration.0), Duration::from_secs(seconds));
    for (name, samples) in watched(1) {
        assert_eq!(largest(&samples), 20, "{name}");
    }
    bind(&rig, &registration.0, bounds(0, 8));
    for (name, samples) in watched(1) {
        assert_eq!(largest(&samples[1..]), 8, "{name}");
    }
    bind(&rig, &registration.0, bounds(0, 30));
    for (name, samples) in watched(3) {
        let largest = largest(&samples);
        assert!((9..=30).contains(&largest), "{name}: {largest}");
    }
}

#[test]
fn a_pacing_bound_holds_and_ends_with_its_bounds() {
    const BOUND: u64 = 500_000;
    let Some(registration) = Registration::share() else { return };
    let rig = Rig::with_path(PathConfig::CALM);
    let pacing = Bounds::from_numbers(0, 0, BOUND, 0);
    bind(&rig, &registration.0, pacing);
    let _flows = one_of_each(&rig);
    watch(&rig, Some(&registration.0), Duration::from_millis(500));
    let (first, from) = (delivered(&rig), Instant::now());
    let watched = watch_each(&rig, Some(&registration.0), Duration::from_secs(2));
    let seconds = from.elapsed().as_secs_f64();
    for (name, now) in delivered(&rig) {
        let is_held = |rate: Option<Rate>| rate.unwrap().bytes_per_second() <= BOUND;
        assert!(watched[&name].iter().all(|figures| is_held(figures.pacing_rate)), "{name}");
        // The path would carry twice this rate.
        let share = (now - first[&name]) as f64 * 1448.0 / seconds / BOUND as f64;
        assert!((0.75..1.15).contains(&share), "{name}: {share} of its bound");
    }
    bind(&rig, &registration.0, Bounds::NONE);
    for (name, samples) in watch_each(&rig, Some(&registration.0), Duration::from_secs(2)) {
        let is_free = |rate: Option<Rate>| rate.unwrap().bytes_per_second() > BOUND;
        assert!(samples.iter().any(|figures| is_free(figures.pacing_rate)), "{name}");
    }
}

/// Pacing schedules a departure at most one segment's time ahead, here 72 ms, and the segment's
/// time stamp is that time. If the segment leaves earlier once the bound is lifted, its RTT seems
/// shorter than the path.
#[test]
fn the_end_of_a_pacing_bound_makes_no_rtt_shorter_than_the_path() {
    let Some(registration) = Registration::share() else { return };
    let rig = Rig::with_path(PathConfig::CALM);
    let pacing = Bounds::from_numbers(0, 0, 20_000, 0);
    let _flow = rig.flow(77, "wakeai_cubic");
    let third = Duration::from_millis(300);
    for _ in 0..4 {
        bind(&rig, &registration.0, pacing);
        watch(&rig, Some(&registration.0), third);
        bind(&rig, &registration.0, Bounds::NONE);
        let free = watch(&rig, Some(&registration.0), third);
        for figures in free {
            assert!(figures.min_rtt.unwrap().as_millis() >= 20, "{figures:?}");
        }
    }
}

/// The number of segments of each algorithm's connection that have arrived.
fn delivered(rig: &Rig) -> BTreeMap<String, u64> {
    let all = rig.sender.run(|| snapshot(None)).unwrap().unwrap();
    all.into_iter().map(|one| (one.algorithm.to_string(), one.figures.delivered)).collect()
}

#[test]
fn bounds_expire_without_a_heartbeat() {
    let Some(registration) = Registration::share() else { return };
    let rig = Rig::with_path(PathConfig::CALM);
    bind(&rig, &registration.0, bounds(0, 8));
    let _flows = one_of_each(&rig);
    let bound = watch_each(&rig, Some(&registration.0), Duration::from_millis(500));
    assert!(bound.values().all(|samples| largest(samples) == 8));
    std::thread::sleep(STALE_AFTER.into());
    for (name, samples) in watch_each(&rig, None, Duration::from_secs(2)) {
        assert!(largest(&samples) > 8, "{name}");
    }
}

/// Such a heartbeat would be an error of a program that runs as root, for example one that uses
/// another clock.
#[test]
fn a_heartbeat_from_the_future_keeps_no_bounds() {
    let Some(_kernel) = kernel() else { return };
    let registration = Registration::open();
    let rig = Rig::with_path(PathConfig::CALM);
    bind(&rig, &registration.0, bounds(0, 8));
    let _flows = one_of_each(&rig);
    let map = MapHandle::from_pinned_path("/sys/fs/bpf/wakeai/heartbeats").unwrap();
    let keys: Vec<_> = map.keys().collect();
    assert_eq!(keys.len(), 1);
    let beat = map.lookup(&keys[0], MapFlags::ANY).unwrap().unwrap();
    let beat = u64::from_ne_bytes(beat.try_into().unwrap());
    let later = beat + 10 * 1_000_000_000 * 60;
    map.update(&keys[0], &later.to_ne_bytes(), MapFlags::ANY).unwrap();
    for (name, samples) in watch_each(&rig, None, Duration::from_secs(2)) {
        assert!(largest(&samples) > 8, "{name}");
    }
}

#[test]
fn a_sockets_own_bounds_precede_those_of_its_interface() {
    let Some(registration) = Registration::share() else { return };
    let rig = Rig::with_path(PathConfig::CALM);
    bind(&rig, &registration.0, bounds(0, 30));
    let _flows = one_of_each(&rig);
    let connections = rig.sender.run(|| snapshot(None)).unwrap().unwrap();
    assert_eq!(connections.len(), Bounded::ALL.len());
    let own: Vec<_> =
        connections.iter().map(|connection| (connection.socket.cookie, bounds(0, 6))).collect();
    registration.0.set_sockets(&own).unwrap();
    let watched = || watch_each(&rig, Some(&registration.0), Duration::from_secs(1));
    assert!(watched().values().all(|samples| largest(&samples[1..]) == 6));
    for connection in &connections {
        registration.0.clear_socket(connection.socket.cookie).unwrap();
    }
    // The windows grow again, up to the bound of the interface.
    let grow = || watched().values().all(|samples| largest(samples) == 30);
    assert!((0..30).any(|_| grow()), "30 s were not enough");
}

#[test]
fn a_connection_over_another_interface_is_not_bound() {
    let Some(registration) = Registration::share() else { return };
    let rig = Rig::with_path(PathConfig::CALM);
    bind(&rig, &registration.0, bounds(0, 5));
    let _bound = rig.flow(77, "wakeai_cubic");
    let free = rig.flow(78, "wakeai_cubic");
    let samples = watch(&rig, Some(&registration.0), Duration::from_secs(1));
    drop(free);
    let (_, wire) = rig.interface("wire");
    let (bound, free): (Vec<_>, Vec<_>) =
        samples.into_iter().partition(|figures| figures.interface == wire);
    assert_eq!(largest(&bound), 5);
    assert!(largest(&free) > 5);
}

#[test]
fn the_bounds_in_force_are_read_while_the_heartbeat_is_fresh() {
    let Some(registration) = Registration::share() else { return };
    let rig = Rig::with_veth();
    let (netns, wire) = rig.interface("wire");
    let (_, side) = rig.interface("side");
    let of = |cookie, ifindex| {
        let read = AppliedBounds::read().unwrap();
        read.and_then(|applied| applied.of(cookie, netns, ifindex).unwrap())
    };
    assert_eq!(of(1, Some(wire)), None, "no agent is alive");
    bind(&rig, &registration.0, bounds(3, 9));
    let cookie = u64::MAX - u64::from(std::process::id()); // no socket has it
    registration.0.set_socket(cookie, bounds(4, 8)).unwrap();
    assert_eq!(of(1, Some(wire)), Some(bounds(3, 9)), "those of the interface");
    assert_eq!(of(cookie, Some(wire)), Some(bounds(4, 8)), "its own");
    assert_eq!(of(cookie, None), Some(bounds(4, 8)), "its own, of an unknown interface");
    assert_eq!(of(1, None), None, "the interface is unknown");
    assert_eq!(of(cookie, Some(side)), None, "no agent is alive there");
    let deadline = Instant::now() + Duration::from_secs(30);
    while of(cookie, Some(wire)).is_some() {
        assert!(Instant::now() < deadline, "a heartbeat ends after {STALE_AFTER}");
        std::thread::sleep(Duration::from_millis(50));
    }
    registration.0.clear_socket(cookie).unwrap();
}
