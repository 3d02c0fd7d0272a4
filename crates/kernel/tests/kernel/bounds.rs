//! Bounds are obeyed, by whom they should be, and for as long as they should be.

use std::time::{Duration, Instant};

use wakeai_kernel::{
    Bounded, CongestionState, Control, Figures, Filter, Monitor, MonitorConfig, Record,
    STALE_AFTER, SocketBounds, snapshot,
};

use crate::path::PathConfig;
use crate::rig::{Registration, Rig, kernel};

/// With losses, so that Recovery is entered every second or so.
const LOSSY: PathConfig = PathConfig { loss_ppm: 1000, ..PathConfig::CALM };

/// Every sample of the sender's connections over `span`; with a heartbeat in every step, if told.
fn watch(rig: &Rig, heartbeat: Option<&Control>, span: Duration) -> Vec<Figures> {
    let (cookie, interface) = rig.interface("wire");
    let filter = Filter { netns_cookies: vec![cookie], ..Filter::default() };
    let config = MonitorConfig { every_ack: true, filter, ..MonitorConfig::default() };
    let mut monitor = Monitor::open(&config).unwrap();
    let mut samples = Vec::new();
    let until = Instant::now() + span;
    while Instant::now() < until {
        if let Some(control) = heartbeat {
            control.heartbeat(cookie, interface).unwrap();
        }
        let mut keep = |record| {
            if let Record::Sample(sample) = record {
                samples.push(sample.figures);
            }
        };
        monitor.poll(Duration::from_millis(10), &mut keep).unwrap();
    }
    assert_eq!(monitor.lost(), 0);
    assert!(!samples.is_empty());
    samples
}

/// Bounds for the wire, with a first heartbeat.
fn bind(rig: &Rig, control: &Control, bounds: SocketBounds) {
    let (cookie, interface) = rig.interface("wire");
    control.set_interface(cookie, interface, bounds).unwrap();
    control.heartbeat(cookie, interface).unwrap();
}

fn bounds(floor: u32, ceiling: u32) -> SocketBounds {
    SocketBounds { floor, ceiling, pacing_bytes_per_second: 0 }
}

fn largest(samples: &[Figures]) -> u32 {
    samples.iter().map(|figures| figures.cwnd.get()).max().unwrap()
}

#[test]
fn a_ceiling_holds_from_the_first_flight_on() {
    let Some(_kernel) = kernel() else { return };
    let registration = Registration::open();
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
    let Some(_kernel) = kernel() else { return };
    let registration = Registration::open();
    for bounded in Bounded::ALL {
        let rig = Rig::with_path(LOSSY);
        let _flow = rig.flow(77, bounded.name);
        bind(&rig, &registration.0, bounds(30, 40));
        let samples = watch(&rig, Some(&registration.0), Duration::from_secs(4));
        // The first sample shows the window that the ACK found, before the bounds came.
        let bound = &samples[1..];
        assert!(bound.iter().any(|figures| figures.congestion_state == CongestionState::Recovery));
        let mut after_loss = false;
        for figures in bound {
            assert!(figures.cwnd.get() <= 40);
            // The ACK that ends Loss is the first that the floor can hold from.
            let in_loss = figures.congestion_state == CongestionState::Loss;
            assert!(figures.cwnd.get() >= 30 || in_loss || after_loss, "{figures:?}");
            after_loss = in_loss;
        }
    }
}

#[test]
fn wakeai_reno_halves_its_window_and_grows_by_a_segment_per_rtt() {
    let Some(_kernel) = kernel() else { return };
    let _registration = Registration::open();
    let rig = Rig::with_path(LOSSY);
    let _flow = rig.flow(77, "wakeai_reno");
    let samples = watch(&rig, None, Duration::from_secs(6));
    let is_reduced = |figures: &Figures| figures.congestion_state == CongestionState::Recovery;
    // A sample shows what its ACK found. Disorder before Recovery lets the window stand.
    let mut reductions = 0;
    for pair in samples.windows(2).filter(|pair| pair[0].cwnd >= pair[0].ssthresh) {
        let [before, after] = pair else { unreachable!("windows of two") };
        let (cwnd, ssthresh) = (before.cwnd.get(), after.ssthresh.get());
        if is_reduced(before) {
            continue;
        }
        if is_reduced(after) {
            reductions += 1;
            assert!(ssthresh.abs_diff(cwnd / 2) <= 1, "ssthresh {ssthresh} of {cwnd}");
        } else if after.congestion_state == CongestionState::Open {
            assert!(after.cwnd.get() <= cwnd + 1, "{cwnd} to {}", after.cwnd.get());
        }
    }
    assert!(reductions > 0);
}

#[test]
fn a_ceiling_that_is_lowered_and_lifted_is_followed() {
    let Some(_kernel) = kernel() else { return };
    let registration = Registration::open();
    let rig = Rig::with_path(PathConfig::CALM);
    bind(&rig, &registration.0, bounds(0, 50));
    let _flow = rig.flow(77, Control::ALGORITHM);
    let second = Duration::from_secs(1);
    assert_eq!(largest(&watch(&rig, Some(&registration.0), second)), 50);
    bind(&rig, &registration.0, bounds(0, 12));
    assert_eq!(largest(&watch(&rig, Some(&registration.0), second)[1..]), 12);
    bind(&rig, &registration.0, bounds(0, 90));
    let lifted = watch(&rig, Some(&registration.0), 3 * second);
    assert!((13..=90).contains(&largest(&lifted)));
}

#[test]
fn a_pacing_bound_holds_and_ends_with_its_bounds() {
    let Some(_kernel) = kernel() else { return };
    let registration = Registration::open();
    let rig = Rig::with_path(PathConfig::CALM);
    let pacing = SocketBounds { pacing_bytes_per_second: 1_000_000, ..SocketBounds::NONE };
    bind(&rig, &registration.0, pacing);
    let _flow = rig.flow(77, Control::ALGORITHM);
    watch(&rig, Some(&registration.0), Duration::from_millis(500));
    let first = delivered(&rig);
    let samples = watch(&rig, Some(&registration.0), Duration::from_secs(2));
    let sent = delivered(&rig) - first;
    assert!(samples.iter().all(|f| f.pacing_rate.unwrap().bytes_per_second() <= 1_000_000));
    // 2 s at 1 MB/s are 1381 segments of 1448 bytes; the path would carry 6900.
    assert!((1100..1600).contains(&sent), "{sent} segments");
    bind(&rig, &registration.0, SocketBounds::NONE);
    let free = watch(&rig, Some(&registration.0), Duration::from_secs(2));
    assert!(free.last().unwrap().pacing_rate.unwrap().bytes_per_second() > 2_000_000);
}

fn delivered(rig: &Rig) -> u64 {
    let all = rig.sender.run(|| snapshot(None)).unwrap().unwrap();
    all.iter().map(|connection| connection.figures.delivered).sum()
}

#[test]
fn bounds_without_a_heartbeat_stop_to_bind() {
    let Some(_kernel) = kernel() else { return };
    let registration = Registration::open();
    let rig = Rig::with_path(PathConfig::CALM);
    bind(&rig, &registration.0, bounds(0, 8));
    let _flow = rig.flow(77, Control::ALGORITHM);
    assert_eq!(largest(&watch(&rig, Some(&registration.0), Duration::from_millis(500))), 8);
    std::thread::sleep(STALE_AFTER.into());
    assert!(largest(&watch(&rig, None, Duration::from_secs(2))) > 8);
}

#[test]
fn a_sockets_own_bounds_go_before_those_of_its_interface() {
    let Some(_kernel) = kernel() else { return };
    let registration = Registration::open();
    let rig = Rig::with_path(PathConfig::CALM);
    bind(&rig, &registration.0, bounds(0, 30));
    let _flow = rig.flow(77, Control::ALGORITHM);
    let connections = rig.sender.run(|| snapshot(None)).unwrap().unwrap();
    let [connection] = &connections[..] else { panic!("one connection") };
    assert_eq!(connection.algorithm, Control::ALGORITHM);
    registration.0.set_socket(connection.socket.cookie, bounds(0, 6)).unwrap();
    let second = Duration::from_secs(1);
    assert_eq!(largest(&watch(&rig, Some(&registration.0), second)[1..]), 6);
    registration.0.clear_socket(connection.socket.cookie).unwrap();
    assert_eq!(largest(&watch(&rig, Some(&registration.0), second)), 30);
}

#[test]
fn a_connection_over_another_interface_is_not_bound() {
    let Some(_kernel) = kernel() else { return };
    let registration = Registration::open();
    let rig = Rig::with_path(PathConfig::CALM);
    bind(&rig, &registration.0, bounds(0, 5));
    let _bound = rig.flow(77, Control::ALGORITHM);
    let free = rig.flow(78, Control::ALGORITHM);
    let samples = watch(&rig, Some(&registration.0), Duration::from_secs(1));
    drop(free);
    let (_, wire) = rig.interface("wire");
    let (bound, free): (Vec<_>, Vec<_>) =
        samples.into_iter().partition(|figures| figures.interface == wire);
    assert_eq!(largest(&bound), 5);
    assert!(largest(&free) > 5);
}
