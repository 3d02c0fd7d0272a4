//! The wired leg: rate, delay, queue, and order.

mod common;

use common::{Datagram, TO_SERVER, config, drain, medium, run, station, to_station};
use proptest::prelude::*;
use wakeai_medium::{Change, Delivery, Medium, Node, StationId};
use wakeai_units::{Duration, Instant, Rate};
use wakeai_wifi::{QueueLimit, Standard};

fn packet(id: u64) -> Datagram {
    Datagram { id, length: 1_500 }
}

#[test]
fn the_wire_carries_its_rate_exactly() {
    let mut config = config(Standard::N, 1);
    config.access_points[0].wired.rate = Rate::from_mbps(7);
    let mut medium = medium(&config, 1);
    for id in 0..1_000 {
        medium.enqueue(Instant::ZERO, station(0), TO_SERVER, packet(id)).unwrap();
    }
    let arrived = drain(&mut medium);
    let span = arrived[999].at - arrived[0].at;
    // 999 packets of 12000 bits at 7 Mbit/s take 1.712571428 s. Both ends are rounded down to a
    // nanosecond, and the rounding errors do not add up.
    assert!(span.as_nanos().abs_diff(999 * 12_000_000_000 / 7_000) <= 1, "{span}");
}

#[test]
fn a_station_without_load_sees_the_delays_and_the_air_alone() {
    let mut config = config(Standard::G, 1);
    config.access_points[0].wired.rate = Rate::from_mbps(1_000);
    config.access_points[0].wired.delay = Duration::from_millis(5);
    config.stations[0].wired_delay = Duration::from_millis(100);
    let mut medium = medium(&config, 1);
    let now = Instant::ZERO + Duration::from_secs(1);
    medium.enqueue(now, Node::Server, to_station(0), packet(0)).unwrap();
    let down = drain(&mut medium)[0].at - now;
    // 12 us on the wire, 105 ms of delay, up to one slot until the next boundary, and 254 us of
    // frame.
    let wanted = Duration::from_micros(12 + 105_000 + 254);
    assert!(down >= wanted && down <= wanted + Duration::from_micros(9), "{down}");
}

#[test]
fn a_full_wire_drops_and_counts_both_ways() {
    let mut config = config(Standard::N, 1);
    config.access_points[0].wired.rate = Rate::from_mbps(1);
    config.access_points[0].wired.queue = QueueLimit::Packets(10);
    let mut medium = medium(&config, 1);
    for id in 0..100 {
        medium.enqueue(Instant::ZERO, station(0), TO_SERVER, packet(id)).unwrap();
    }
    let refused = (0..20)
        .filter(|id| {
            medium.enqueue(Instant::ZERO, Node::Server, to_station(0), packet(*id)).is_err()
        })
        .count();
    let arrived = drain(&mut medium);
    let counters = medium.counters();
    assert_eq!((refused, counters.wired_down.queue_drops), (10, 10));
    let up = counters.wired_up;
    assert_eq!((up.offered, up.queue_drops + up.delivered), (100, 100));
    assert!(up.queue_drops > 50, "100 packets come within 50 ms, and 12 ms carry one");
    assert_eq!(arrived.len() as u64, up.delivered + counters.wired_down.delivered);
}

/// Sends 4000 packets each way over a wire that loses this share of them. Returns the medium, and the ids of the packets that
/// arrived at the server and at the station.
fn losing(loss_ppm: u32, seed: u64) -> (Medium<Datagram>, Vec<u64>, Vec<u64>) {
    let mut config = config(Standard::N, 1);
    config.access_points[0].wired.loss_ppm = loss_ppm;
    let mut medium = medium(&config, seed);
    let (mut up, mut down) = (Vec::new(), Vec::new());
    let mut arrive = |delivery: Delivery<Datagram>| {
        let ids = if delivery.to == Node::Server { &mut up } else { &mut down };
        ids.push(delivery.packet.id);
    };
    for id in 0..4_000 {
        let now = Instant::ZERO + Duration::from_millis(id * 2);
        medium.enqueue(now, station(0), TO_SERVER, packet(id)).expect("the queue has room");
        medium.enqueue(now, Node::Server, to_station(0), packet(id)).expect("the queue has room");
        run(&mut medium, now, &mut arrive);
    }
    run(&mut medium, Instant::MAX, arrive);
    (medium, up, down)
}

#[test]
fn a_wire_loses_its_share_of_packets_each_way_and_the_same_ones_with_the_same_seed() {
    let (medium, up, down) = losing(100_000, 1);
    let counters = medium.counters();
    for (wire, arrived) in [(counters.wired_up, &up), (counters.wired_down, &down)] {
        assert_eq!((wire.offered, wire.queue_drops), (4_000, 0));
        // 400 are expected, with a standard deviation of 19.
        assert!((320..480).contains(&wire.losses), "{}", wire.losses);
        assert_eq!(arrived.len() as u64, 4_000 - wire.losses);
    }
    assert_ne!(up, down, "each way has losses of its own");
    assert_eq!(losing(100_000, 1).1, up);
    assert_ne!(losing(100_000, 2).1, up);
    assert_eq!(losing(0, 1).1.len(), 4_000);
    assert!(losing(1_000_000, 1).2.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_delay_that_changes_never_reorders_a_stations_packets(
        delays_ms in prop::collection::vec(0_u64..600, 1..30),
        standard in prop::sample::select(vec![Standard::G, Standard::N]),
        seed in any::<u64>(),
    ) {
        let mut medium = medium(&config(standard, 2), seed);
        let (mut now, mut arrived) = (Instant::ZERO, Vec::new());
        for (round, delay) in delays_ms.iter().enumerate() {
            medium.change(StationId(0), Change::WiredDelay(Duration::from_millis(*delay))).unwrap();
            for index in 0..2 {
                let packet = packet(round as u64);
                medium.enqueue(now, station(index), TO_SERVER, packet).unwrap();
                medium.enqueue(now, Node::Server, to_station(index), packet).unwrap();
            }
            now += Duration::from_millis(20);
            run(&mut medium, now, |delivery| arrived.push(delivery));
        }
        arrived.extend(drain(&mut medium));
        prop_assert_eq!(arrived.len(), 4 * delays_ms.len());
        prop_assert!(arrived.is_sorted_by_key(|delivery| delivery.at));
        for index in 0..2 {
            let up = arrived.iter().filter(|delivery| delivery.from == station(index));
            let down = arrived.iter().filter(|delivery| delivery.to == station(index));
            prop_assert!(up.map(|delivery| delivery.packet.id).is_sorted());
            prop_assert!(down.map(|delivery| delivery.packet.id).is_sorted());
        }
    }
}
