//! Stations that do not hear each other.

#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod common;

use common::{Datagram, config, drain, medium, saturate, saturate_uplink, station};
use wakeai_medium::{Destination, Node, WifiConfig};
use wakeai_units::{Bytes, Duration, Instant};
use wakeai_wifi::{Protection, Standard};

/// Stations in zones 1, 2, …; the pairs of zones do not hear each other.
fn hidden(standard: Standard, stations: usize, rts: bool, pairs: &[(u32, u32)]) -> WifiConfig {
    let mut config = config(standard, stations);
    for (zone, station) in (1..).zip(&mut config.stations) {
        station.zone = zone;
    }
    config.hidden = pairs.to_vec();
    if rts {
        config.access_points[0].bss.protection = Protection::RtsCts;
        config.access_points[0].bss.rts_threshold = Bytes::ZERO;
    }
    config
}

/// The goodput of payload in Mbit/s of each station, as the mean of three seeds. The first five stations always have
/// packets.
fn mbps(config: &WifiConfig) -> Vec<f64> {
    let times = (Duration::from_secs(1), Duration::from_secs(20));
    let senders = config.stations.len().min(5);
    let mut sums = vec![0.0; config.stations.len()];
    for seed in 1..=3 {
        let run = saturate(config, senders, 1_500, times, seed);
        for (sum, packets) in sums.iter_mut().zip(&run.arrived) {
            *sum += *packets as f64 * 1_472.0 * 8.0 / 20.0 / 1e6 / 3.0;
        }
    }
    sums
}

/// The figures are means over the seeds 1 to 5 of `validation/ns3/reference.json`.
#[test]
fn the_goodput_of_hidden_stations_is_that_of_ns3() {
    let two: &[(u32, u32)] = &[(1, 2)];
    let row: &[(u32, u32)] = &[(1, 3)];
    for (standard, rts, stations, pairs, ns3) in [
        (Standard::G, false, 2, two, 21.65),
        (Standard::G, true, 2, two, 23.54),
        (Standard::G, false, 3, row, 26.19),
        (Standard::G, true, 3, row, 24.79),
        (Standard::N, false, 2, two, 54.61),
        (Standard::N, true, 2, two, 58.51),
        (Standard::N, false, 3, row, 54.01),
        (Standard::N, true, 3, row, 58.81),
    ] {
        let each = mbps(&hidden(standard, stations, rts, pairs));
        let found = each.iter().sum::<f64>();
        let case = format!("{standard}, {stations} stations, RTS/CTS {rts}: {found} of {ns3}");
        println!("{case}, {each:.2?}");
        assert!((found / ns3 - 1.0).abs() < 0.1, "{case}");
    }
}

/// A sixth station that is hidden from the first, and sends nothing, makes the channel one on which not all hear each
/// other. The others hear each other as before. Without A-MPDUs the two models have nothing that differs: with them,
/// one asks for a `BlockAck` that did not come.
#[test]
fn the_two_models_of_a_channel_agree_where_all_senders_hear_each_other() {
    for (standard, rts, bound) in [
        (Standard::G, false, 0.01),
        (Standard::G, true, 0.01),
        (Standard::N, true, 0.01),
        (Standard::N, false, 0.06),
    ] {
        let all = mbps(&hidden(standard, 5, rts, &[])).iter().sum::<f64>();
        let mut silent = hidden(standard, 6, rts, &[(1, 6)]);
        silent.stations[5].zone = 6;
        let partial = mbps(&silent).iter().sum::<f64>();
        let off = partial / all - 1.0;
        assert!(off.abs() < bound, "{standard}, RTS/CTS {rts}: {partial} against {all}");
    }
}

/// What a station sends is lost only where the other's frame overlaps with it, so the shorter the frames of hidden
/// stations, the fewer are lost.
#[test]
fn short_frames_of_hidden_stations_seldom_meet() {
    let failed = |length| {
        let config = hidden(Standard::G, 2, false, &[(1, 2)]);
        let (warmup, measured) = (Duration::ZERO, Duration::from_secs(2));
        saturate_uplink(&config, length, warmup, measured, 1).failed_share()
    };
    let (short, long) = (failed(100), failed(1_500));
    assert!(short < 0.7 * long, "{short} against {long}");
}

#[test]
fn nothing_is_left_behind() {
    let mut medium = medium(&hidden(Standard::N, 3, false, &[(1, 2), (1, 3), (2, 3)]), 3);
    for id in 0..900 {
        let to = Destination::Unicast(Node::Server);
        let packet = Datagram { id, length: 1_500 };
        medium.enqueue(Instant::ZERO, station(id as usize % 3), to, packet).unwrap();
    }
    let arrived = drain(&mut medium).len() as u64;
    let counters = medium.counters();
    let dropped: u64 = counters.stations.iter().map(|one| one.retry_drops).sum();
    assert_eq!((arrived + dropped, medium.packets_inside()), (900, 0));
}
