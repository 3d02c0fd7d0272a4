//! Airtime is counted by station, direction and kind.

#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod common;

use common::{TO_SERVER, config, station, to_station};
use wakeai_medium::{Destination, Kind, Medium, MediumConfig, Node, Packet, WifiConfig, generator};
use wakeai_units::{Duration, Instant};
use wakeai_wifi::Standard;

#[derive(Clone, Copy, Debug)]
struct Labelled(Kind, usize);

impl Packet for Labelled {
    fn len(&self) -> usize {
        self.1
    }

    fn kind(&self) -> Kind {
        self.0
    }
}

const DATA: Labelled = Labelled(Kind::Data, 1_500);
const ACK: Labelled = Labelled(Kind::TransportAck, 52);

/// Enqueues all packets at once, and runs until all have arrived.
fn run(config: &WifiConfig, packets: &[(Node, Destination, Labelled)]) -> Medium<Labelled> {
    let mut medium = Medium::new(&MediumConfig::Wifi(config.clone()), generator(1)).unwrap();
    for (from, to, packet) in packets {
        medium.enqueue(Instant::ZERO, *from, *to, *packet).unwrap();
    }
    while let Some(at) = medium.next_timeout() {
        medium.handle_timeout(at);
        while medium.poll_delivery().is_some() {}
    }
    medium
}

fn us(microseconds: u64) -> Duration {
    Duration::from_micros(microseconds)
}

#[test]
fn each_direction_of_each_station_has_its_own_air() {
    let config = config(Standard::G, 2);
    let up = (station(0), TO_SERVER, DATA);
    let down = (Node::Server, to_station(1), ACK);
    let medium = run(&config, &[up, down]);
    let counters = medium.counters();
    // A data frame takes 254 us. A packet of 52 bytes is an MPDU of 88 bytes: 4 symbols, or 42 us
    // with preamble and extension.
    let uplink = counters.stations[0].airtime;
    assert_eq!((uplink.data, uplink.transport_ack, uplink.ack), (us(254), us(0), us(34)));
    let downlink = counters.downlinks[1];
    assert_eq!((downlink.data, downlink.transport_ack, downlink.ack), (us(0), us(42), us(34)));
    assert_eq!(counters.stations[1].airtime.busy(), us(0));
    assert_eq!(counters.downlinks[0].busy(), us(0));
    assert_eq!(counters.airtime.carried(), us(254 + 42));
}

#[test]
fn an_aggregate_is_divided_by_the_bytes_of_its_kinds() {
    let config = config(Standard::N, 1);
    let presence = Labelled(Kind::Presence, 268);
    let packets = [DATA, ACK, ACK, presence, DATA].map(|packet| (station(0), TO_SERVER, packet));
    let medium = run(&config, &packets);
    let airtime = medium.counters().stations[0].airtime;
    assert_eq!(medium.counters().stations[0].attempts, 1);
    // The MPDUs have 1538, 90 and 306 bytes.
    let all = airtime.carried();
    let part = |bytes: u64| all.mul_div(bytes, 2 * 1_538 + 2 * 90 + 306).unwrap();
    assert_eq!((airtime.transport_ack, airtime.presence), (part(180), part(306)));
    assert_eq!(airtime.data, all.saturating_sub(part(180) + part(306)));
}

#[test]
fn the_air_of_all_is_the_sum_of_its_parts_but_where_they_overlap() {
    let config = config(Standard::G, 5);
    let packets: Vec<_> = (0..100)
        .flat_map(|_| 0..5)
        .flat_map(|index| {
            [(station(index), TO_SERVER, DATA), (Node::Server, to_station(index), ACK)]
        })
        .collect();
    let medium = run(&config, &packets);
    let counters = medium.counters();
    let uplinks = counters.stations.iter().map(|station| station.airtime);
    let parts: Vec<_> = uplinks.chain(counters.downlinks.iter().copied()).collect();
    let sum = |part: fn(&wakeai_medium::Airtime) -> Duration| {
        parts.iter().map(part).fold(Duration::ZERO, |sum, part| sum + part)
    };
    assert_eq!(sum(|air| air.data), counters.airtime.data);
    assert_eq!(sum(|air| air.transport_ack), counters.airtime.transport_ack);
    assert_eq!(sum(|air| air.ack), counters.airtime.ack);
    // Frames that overlap count once for the air. For the senders, each of these frames counts.
    assert!(sum(|air| air.collision) > counters.airtime.collision);
    assert!(!counters.airtime.collision.is_zero());
}
