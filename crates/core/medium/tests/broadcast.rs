//! Broadcasts, and packets from station to station.

mod common;

use common::{Datagram, TO_SERVER, config, drain, medium, station, to_station};
use wakeai_medium::{Arrival, Destination, Medium, Node, Receivers};
use wakeai_units::{Duration, Instant};
use wakeai_wifi::{QueueDiscipline, QueueLimit, Standard};

const SHORT: Datagram = Datagram { id: 1, length: 100 };

fn ms(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

#[test]
fn a_stations_broadcast_crosses_the_air_twice() {
    let mut medium = medium(&config(Standard::G, 5), 1);
    medium.enqueue(ms(1), station(2), Destination::Broadcast, SHORT).unwrap();
    let arrived = drain(&mut medium);
    let receivers: Vec<Node> = arrived.iter().map(|delivery| delivery.to).collect();
    assert_eq!(receivers, [0, 1, 3, 4].map(station), "not the sender, not the server");
    assert!(arrived.iter().all(|delivery| delivery.from == station(2)));
    let counters = medium.counters();
    // Up at 54 Mbit/s, with an ACK: 136 bytes are 1110 bits or 6 symbols, which take 20 + 24 + 6
    // us.
    assert_eq!(counters.stations[2].attempts, 1);
    assert_eq!(counters.airtime.data, Duration::from_micros(50));
    assert_eq!(counters.airtime.ack, Duration::from_micros(34));
    // Down at 6 Mbit/s, without an ACK: 1110 bits at 24 bits per symbol are 47 symbols, which take
    // 20 + 188 + 6 us.
    let point = &counters.access_point;
    assert_eq!((point.attempts, point.broadcasts, point.delivered), (0, 1, 0));
    assert_eq!(counters.airtime.broadcast, Duration::from_micros(214));
}

#[test]
fn a_broadcast_of_an_n_station_goes_down_as_one_legacy_frame() {
    let mut medium = medium(&config(Standard::N, 3), 1);
    medium.enqueue(ms(1), station(0), Destination::Broadcast, SHORT).unwrap();
    assert_eq!(drain(&mut medium).len(), 2);
    // No QoS field, no signal extension at 5 GHz.
    assert_eq!(medium.counters().airtime.broadcast, Duration::from_micros(208));
}

#[test]
fn a_server_can_broadcast_to_all_stations() {
    let mut medium = medium(&config(Standard::G, 3), 1);
    medium.enqueue(ms(1), Node::Server, Destination::Broadcast, SHORT).unwrap();
    let receivers: Vec<Node> = drain(&mut medium).iter().map(|delivery| delivery.to).collect();
    assert_eq!(receivers, [0, 1, 2].map(station));
}

#[test]
fn a_broadcast_waits_its_turn_in_the_access_points_fifo() {
    let mut medium = medium(&config(Standard::G, 3), 1);
    let packet = |id| Datagram { id, length: 1_500 };
    for id in 0..10 {
        medium.enqueue(ms(1), Node::Server, to_station(0), packet(id)).unwrap();
    }
    medium.enqueue(ms(1), Node::Server, Destination::Broadcast, packet(10)).unwrap();
    medium.enqueue(ms(1), Node::Server, to_station(1), packet(11)).unwrap();
    let order: Vec<u64> = drain(&mut medium).iter().map(|delivery| delivery.packet.id).collect();
    assert_eq!(order, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10, 10, 11]);
}

#[test]
fn a_broadcast_counts_against_the_access_points_buffer() {
    let mut config = config(Standard::G, 2);
    config.access_points[0].buffer = QueueLimit::Packets(3);
    let mut medium = medium(&config, 1);
    for id in 0..4 {
        let packet = Datagram { id, length: 1_500 };
        medium.enqueue(ms(1), Node::Server, Destination::Broadcast, packet).unwrap();
    }
    drain(&mut medium);
    let point = &medium.counters().access_point;
    assert_eq!((point.offered, point.broadcasts, point.queue_drops), (4, 3, 1));
}

#[test]
fn each_station_has_its_own_errors_in_a_broadcast() {
    let mut config = config(Standard::G, 3);
    config.stations[1].frame_error_ppm = 1_000_000;
    config.access_points[0].bss.queue = QueueDiscipline::Fq;
    let mut medium = medium(&config, 1);
    medium.enqueue(ms(1), station(0), Destination::Broadcast, SHORT).unwrap();
    let receivers: Vec<Node> = drain(&mut medium).iter().map(|delivery| delivery.to).collect();
    assert_eq!(receivers, [station(2)]);
    let point = &medium.counters().access_point;
    assert_eq!((point.broadcasts, point.broadcast_losses, point.retry_drops), (1, 1, 0));
}

#[test]
fn a_broadcast_that_collides_is_lost_to_all_and_not_tried_again() {
    // The access point and a station get a packet in the same slot of an idle medium.
    let mut medium = medium(&config(Standard::G, 3), 1);
    medium.enqueue(ms(1), Node::Server, Destination::Broadcast, SHORT).unwrap();
    let sent = medium.next_timeout().unwrap();
    medium.handle_timeout(sent); // it has crossed the wire
    medium.enqueue(sent, station(0), TO_SERVER, SHORT).unwrap();
    let arrived = drain(&mut medium);
    assert_eq!(arrived.iter().map(|d| d.to).collect::<Vec<_>>(), [Node::Server]);
    let counters = medium.counters();
    let point = &counters.access_point;
    assert_eq!((point.broadcasts, point.collisions, point.broadcast_losses), (1, 1, 3));
    assert_eq!((counters.stations[0].attempts, counters.stations[0].failures), (2, 1));
    // For the air the longer frame counts, 214 us. For each sender its own frame counts, 214 us and
    // 50 us.
    assert_eq!(counters.airtime.collision, Duration::from_micros(214));
    assert_eq!(point.airtime.collision, Duration::from_micros(214));
    assert_eq!(counters.stations[0].airtime.collision, Duration::from_micros(50));
}

#[test]
fn station_to_station_goes_through_the_access_point() {
    let mut medium = medium(&config(Standard::G, 3), 1);
    medium.enqueue(ms(1), station(0), to_station(2), SHORT).unwrap();
    let arrived = drain(&mut medium);
    assert_eq!(arrived.len(), 1);
    assert_eq!((arrived[0].from, arrived[0].to), (station(0), station(2)));
    let counters = medium.counters();
    assert_eq!((counters.stations[0].attempts, counters.access_point.attempts), (1, 1));
}

#[test]
fn what_nobody_can_receive_is_refused_and_counted() {
    let mut medium = medium(&config(Standard::G, 2), 1);
    let long = Datagram { id: 1, length: 2_297 };
    for (from, to, packet) in [
        (Node::Server, TO_SERVER, SHORT),
        (station(1), to_station(1), SHORT),
        (station(1), to_station(2), SHORT),
        (station(2), TO_SERVER, SHORT),
        (station(1), TO_SERVER, long),
    ] {
        assert_eq!(medium.enqueue(ms(1), from, to, packet), Err(packet));
    }
    assert_eq!((medium.counters().refused, medium.packets_inside()), (5, 0));
}

/// The arrivals until nothing more happens.
fn arrivals(medium: &mut Medium<Datagram>) -> Vec<Arrival<Datagram>> {
    let mut arrivals = Vec::new();
    while let Some(due) = medium.next_timeout() {
        medium.handle_timeout(due);
        arrivals.extend(std::iter::from_fn(|| medium.poll_arrival()));
    }
    arrivals
}

#[test]
fn an_arrival_has_the_deliveries_of_a_broadcast_in_their_order() {
    // More stations than a word of the set has bits; a third of them loses most frames.
    let mut config = config(Standard::G, 130);
    for station in config.stations.iter_mut().step_by(3) {
        station.frame_error_ppm = 900_000;
    }
    let filled = || {
        let mut medium = medium(&config, 1);
        for id in 0..10 {
            let from = if id % 3 == 0 { Node::Server } else { station(id as usize) };
            let packet = Datagram { id, length: 100 };
            medium.enqueue(ms(1), from, Destination::Broadcast, packet).unwrap();
            medium.enqueue(ms(1), station(70), TO_SERVER, packet).unwrap();
        }
        medium
    };
    let deliveries = drain(&mut filled());
    let arrivals = arrivals(&mut filled());
    let expanded = arrivals.iter().flat_map(|Arrival { at, to, from, packet }| {
        let to = match to {
            Receivers::Node(node) => vec![*node],
            Receivers::Stations(stations) => stations.iter().map(Node::Station).collect(),
        };
        to.into_iter().map(|to| (*at, to, *from, *packet))
    });
    let expected = deliveries.iter().map(|one| (one.at, one.to, one.from, one.packet));
    assert_eq!(expanded.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    let broadcasts = arrivals.iter().filter(|one| matches!(one.to, Receivers::Stations(_)));
    assert_eq!(broadcasts.count(), 6, "of ten, the other four reach nobody");
    // Of 130 stations, 86 receive nearly each of them.
    assert!((480..620).contains(&deliveries.len()), "{}", deliveries.len());
}
