//! The MPDUs of an aggregate arrive one after another.

#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod common;

use common::{Datagram, TO_SERVER, config, drain, medium, station, to_station};
use wakeai_medium::{Node, WifiConfig};
use wakeai_units::{Duration, Instant};
use wakeai_wifi::Standard;

const SENT: u64 = 6;

/// The arrival times, in microseconds, of downlink packets of 1500 bytes that are sent in one
/// aggregate.
fn arrivals(config: &WifiConfig) -> Vec<u64> {
    let mut medium = medium(config, 1);
    for id in 0..SENT {
        let packet = Datagram { id, length: 1_500 };
        medium.enqueue(Instant::ZERO, Node::Server, to_station(0), packet).unwrap();
    }
    let arrived = drain(&mut medium);
    assert!(arrived.iter().map(|delivery| delivery.packet.id).eq(0..SENT));
    arrived.iter().map(|delivery| (delivery.at - Instant::ZERO).as_micros()).collect()
}

#[test]
fn each_packet_of_an_aggregate_arrives_when_its_mpdu_ends() {
    // 1544 bytes are 47.5 symbols of 260 bits: 188 and 192 us in turn.
    let found = arrivals(&config(Standard::N, 1));
    let steps: Vec<u64> = found.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(steps.iter().all(|step| [188, 192].contains(step)), "{found:?}");
}

#[test]
fn a_receiver_that_reports_whole_ppdus_hands_them_up_together() {
    let mut config = config(Standard::N, 1);
    config.hand_up_after_ppdu = true;
    let found = arrivals(&config);
    assert!(found.iter().all(|at| *at == found[0]), "{found:?}");
    // The last packet arrives at the end of the PPDU in both cases.
    config.hand_up_after_ppdu = false;
    assert_eq!(arrivals(&config).last(), found.last());
}

#[test]
fn the_sender_keeps_the_packets_of_an_aggregate_until_it_ends() {
    let config = config(Standard::N, 1);
    let mut medium = medium(&config, 1);
    for id in 0..SENT {
        let packet = Datagram { id, length: 1_500 };
        medium.enqueue(Instant::ZERO, station(0), TO_SERVER, packet).unwrap();
    }
    let (mut arrived, mut while_on_air) = (0, 0);
    while let Some(at) = medium.next_timeout() {
        medium.handle_timeout(at);
        arrived += std::iter::from_fn(|| medium.poll_delivery()).count();
        assert_eq!(arrived + medium.packets_inside(), 6);
        while_on_air += usize::from(arrived > 0 && medium.queued(station(0)) == 6);
    }
    assert_eq!((arrived, medium.queued(station(0))), (6, 0));
    assert!(while_on_air >= 4);
}

#[test]
fn a_damaged_mpdu_holds_back_those_behind_it_also_in_mid_aggregate() {
    let mut config = config(Standard::N, 1);
    config.stations[0].frame_error_ppm = 200_000;
    let mut medium = medium(&config, 3);
    for id in 0..500 {
        let packet = Datagram { id, length: 1_500 };
        medium.enqueue(Instant::ZERO, station(0), TO_SERVER, packet).unwrap();
    }
    let arrived = drain(&mut medium);
    assert!(arrived.is_sorted_by_key(|delivery| delivery.packet.id));
    let counters = &medium.counters().stations[0];
    assert!(counters.mpdu_failures > 50);
    assert_eq!(counters.delivered, arrived.len() as u64);
    assert_eq!(counters.delivered + counters.retry_drops, 500);
    // The MPDUs in the reorder buffer arrive together with the missing one. On the wire they follow
    // each other.
    let gaps = arrived.windows(2).map(|pair| pair[1].at - pair[0].at);
    let together = gaps.filter(|gap| *gap < Duration::from_micros(1)).count();
    assert!((50..450).contains(&together), "{together}");
}
