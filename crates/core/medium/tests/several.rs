//! Several access points: on one channel they share its air, on two they do not.

#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod common;

use common::{Datagram, Saturation, config, drain, medium, saturate_uplink, station, to_station};
use wakeai_medium::{AccessPointConfig, Destination, Node, WifiConfig};
use wakeai_units::{Duration, Instant};
use wakeai_wifi::Standard;

/// `stations` stations at each of two access points, on one channel or on two.
fn two(standard: Standard, stations: usize, channels: [u32; 2]) -> WifiConfig {
    let mut config = config(standard, 2 * stations);
    let second = config.access_points[0].clone();
    config.access_points.push(AccessPointConfig { channel: channels[1], ..second });
    config.access_points[0].channel = channels[0];
    for station in &mut config.stations[stations..] {
        station.access_point = 1;
    }
    config
}

fn saturate(config: &WifiConfig) -> Saturation {
    saturate_uplink(config, 1_500, Duration::from_secs(1), Duration::from_secs(8), 1)
}

#[test]
fn two_bsss_on_a_channel_have_the_goodput_of_one_and_half_each() {
    for standard in [Standard::G, Standard::N] {
        let one = saturate(&config(standard, 10)).mbps(1_472);
        let both = saturate(&two(standard, 5, [1, 1]));
        let off = both.mbps(1_472) / one - 1.0;
        assert!(off.abs() < 0.05, "{standard}: {} against {one} Mbit/s", both.mbps(1_472));
        let [left, right] = [0, 5].map(|first| both.arrived[first..first + 5].iter().sum::<u64>());
        let share = left as f64 / (left + right) as f64;
        assert!((share - 0.5).abs() < 0.025, "{standard}: {share}");
    }
}

#[test]
fn two_bsss_on_two_channels_have_twice_the_goodput() {
    for standard in [Standard::G, Standard::N] {
        let one = saturate(&config(standard, 5)).mbps(1_472);
        let both = saturate(&two(standard, 5, [1, 6])).mbps(1_472);
        assert!((both / one / 2.0 - 1.0).abs() < 0.02, "{standard}: {both} against {one}");
    }
}

/// A BSS's packets on a channel of its own do not depend on what another one's stations send.
#[test]
fn channels_are_independent() {
    let run = |count: u64| {
        let mut medium = medium(&two(Standard::N, 2, [1, 6]), 7);
        for id in 0..300 {
            for (index, most) in [(0, 300), (1, 300), (2, count), (3, count)] {
                if id < most {
                    let to = Destination::Unicast(Node::Server);
                    let packet = Datagram { id, length: 1_500 };
                    medium.enqueue(Instant::ZERO, station(index), to, packet).unwrap();
                }
            }
        }
        let mut arrived = drain(&mut medium);
        arrived.retain(|delivery| [station(0), station(1)].contains(&delivery.from));
        arrived
    };
    assert_eq!(run(0), run(300));
}

#[test]
fn each_access_point_has_a_buffer_and_a_wire_of_its_own() {
    let mut config = two(Standard::N, 1, [1, 1]);
    config.access_points[1].wired.delay = Duration::from_millis(30);
    config.access_points[1].buffer = wakeai_wifi::QueueLimit::Packets(5);
    let mut medium = medium(&config, 1);
    for index in [0, 1] {
        for id in 0..50 {
            let packet = Datagram { id, length: 1_500 };
            medium.enqueue(Instant::ZERO, Node::Server, to_station(index), packet).unwrap();
        }
    }
    let arrived = drain(&mut medium);
    let to = |index| arrived.iter().filter(move |delivery| delivery.to == station(index));
    assert_eq!(to(0).count(), 50);
    assert!((5..50).contains(&to(1).count()), "{}", to(1).count());
    let later = Instant::ZERO + Duration::from_millis(30);
    assert!(to(0).all(|delivery| delivery.at < later));
    assert!(to(1).all(|delivery| delivery.at >= later));
}

#[test]
fn a_broadcast_stays_in_its_bss_and_a_packet_for_another_bss_takes_both_wires() {
    let mut config = two(Standard::G, 2, [1, 6]);
    for access_point in &mut config.access_points {
        access_point.wired.delay = Duration::from_millis(10);
    }
    let mut medium = medium(&config, 1);
    let send = |medium: &mut wakeai_medium::Medium<Datagram>, id, to| {
        medium.enqueue(Instant::ZERO, station(0), to, Datagram { id, length: 100 }).unwrap();
    };
    send(&mut medium, 1, Destination::Broadcast);
    send(&mut medium, 2, to_station(3));
    let arrived = drain(&mut medium);
    let nodes: Vec<(u64, Node)> = arrived.iter().map(|d| (d.packet.id, d.to)).collect();
    assert_eq!(nodes, [(1, station(1)), (2, station(3))]);
    assert!(arrived[1].at >= Instant::ZERO + Duration::from_millis(20));
    let counters = medium.counters();
    assert_eq!((counters.wired_up.delivered, counters.wired_down.delivered), (1, 1));
}

#[test]
fn access_points_of_two_bands_on_one_channel_are_refused() {
    let mut config = two(Standard::G, 1, [3, 3]);
    config.access_points[0].bss = wakeai_wifi::Bss::new(Standard::N);
    config.stations[0] =
        wakeai_medium::WifiStationConfig::new(Standard::N, &config.access_points[0].bss);
    let made = wakeai_medium::Medium::<Vec<u8>>::new(
        &wakeai_medium::MediumConfig::Wifi(config),
        wakeai_medium::generator(1),
    );
    let error = made.unwrap_err().to_string();
    assert!(error.contains("channel 3") && error.contains("802.11n and 802.11g"), "{error}");
}
