//! The stations' queues, and the division of the access point's queue.

mod common;

use common::{Datagram, TO_SERVER, config, drain, medium, station, to_station};
use wakeai_medium::{HostQueueKind, Medium, Node, StationId, WifiConfig};
use wakeai_units::{Duration, Instant, Rate};
use wakeai_wifi::{QueueDiscipline, QueueLimit, Standard};

fn packet(id: u64) -> Datagram {
    Datagram { id, length: 1_500 }
}

/// Offers every station the same load from the server for 20 s, more than the air carries. Returns
/// the packets and the seconds of airtime of each station.
fn saturate_downlink(config: &WifiConfig, every: Duration) -> (Vec<u64>, Vec<f64>) {
    let mut medium = medium(config, 1);
    let stations = config.stations.len();
    let (mut arrived, mut now, mut first) = (vec![0; stations], Instant::ZERO, 0);
    while now < Instant::ZERO + Duration::from_secs(20) {
        // The stations take turns. A station that is always first would get every free place in a
        // FIFO.
        for index in (0..stations).map(|index| (first + index) % stations) {
            // Packets that the wire's queue refuses are part of the load.
            let _ = medium.enqueue(now, Node::Server, to_station(index), packet(0));
        }
        now += every;
        first += 1;
        medium.handle_timeout(now);
        while let Some(delivery) = medium.poll_delivery() {
            let Node::Station(id) = delivery.to else { panic!("a downlink") };
            arrived[id.index()] += 1;
        }
    }
    let frame = |index: usize| {
        let fast = config.stations[index].radio.rate == Rate::from_mbps(54);
        if fast { 254e-6 } else { 2_078e-6 }
    };
    let air = arrived.iter().enumerate().map(|(index, n)| *n as f64 * frame(index)).collect();
    (arrived, air)
}

fn slow_and_fast(queue: QueueDiscipline) -> WifiConfig {
    let mut config = config(Standard::G, 3);
    config.access_points[0].bss.queue = queue;
    config.stations[0].radio.rate = Rate::from_mbps(6);
    config
}

#[test]
fn a_fifo_gives_stations_of_equal_load_equal_packets() {
    let config = slow_and_fast(QueueDiscipline::Fifo);
    let (arrived, _) = saturate_downlink(&config, Duration::from_micros(200));
    let (least, most) = (arrived.iter().min().unwrap(), arrived.iter().max().unwrap());
    assert!(*least as f64 / *most as f64 > 0.9, "{arrived:?}");
}

#[test]
fn a_fair_queue_gives_stations_equal_air() {
    let config = slow_and_fast(QueueDiscipline::Fq);
    let (arrived, air) = saturate_downlink(&config, Duration::from_micros(200));
    let (least, most) =
        (air.iter().copied().fold(9e9, f64::min), air.iter().copied().fold(0.0, f64::max));
    // `air` has only the frames. The spaces between the frames make the parts differ a little.
    assert!(least / most > 0.8, "{air:?}");
    assert!(arrived[1] > 5 * arrived[0], "{arrived:?}");
}

#[test]
fn a_fair_queue_keeps_a_flood_from_crowding_out_a_trickle() {
    let trickle_through = |queue| {
        let mut config = config(Standard::G, 2);
        config.access_points[0].bss.queue = queue;
        config.access_points[0].buffer = QueueLimit::Packets(50);
        let mut medium = medium(&config, 1);
        let mut now = Instant::ZERO;
        for round in 0..1_000 {
            for _ in 0..10 {
                medium.enqueue(now, Node::Server, to_station(0), packet(0)).unwrap();
            }
            if round % 10 == 0 {
                medium.enqueue(now, Node::Server, to_station(1), packet(1)).unwrap();
            }
            now += Duration::from_millis(1);
            medium.handle_timeout(now);
        }
        drain(&mut medium).iter().filter(|delivery| delivery.packet.id == 1).count()
    };
    assert_eq!(trickle_through(QueueDiscipline::Fq), 100);
    assert!(trickle_through(QueueDiscipline::Fifo) < 50);
}

#[test]
fn an_access_point_aggregates_what_lies_apart_in_its_fifo() {
    // The packets of two stations alternate. Each A-MPDU has packets of one station, in order.
    let mut medium = medium(&config(Standard::N, 2), 1);
    for id in 0..40 {
        let to = to_station(usize::try_from(id % 2).unwrap());
        medium.enqueue(Instant::ZERO, Node::Server, to, packet(id)).unwrap();
    }
    let arrived = drain(&mut medium);
    for index in 0..2 {
        let of = arrived.iter().filter(|delivery| delivery.to == station(index));
        assert!(of.map(|delivery| delivery.packet.id).is_sorted());
    }
    let point = &medium.counters().access_point;
    assert_eq!((point.mpdus, point.delivered), (40, 40));
    assert!(point.attempts <= 6, "{} frames instead of 40", point.attempts);
}

#[test]
fn room_is_what_still_fits() {
    let mut config = config(Standard::G, 2);
    config.stations[1].queue = 4;
    config.access_points[0].wired.queue = QueueLimit::Packets(3);
    let mut medium = medium(&config, 1);
    for (from, to, limit) in [(station(1), TO_SERVER, 4), (Node::Server, to_station(0), 3)] {
        for taken in 0..limit {
            assert_eq!(medium.room(from), limit - taken);
            medium.enqueue(Instant::ZERO, from, to, packet(0)).unwrap();
        }
        assert_eq!(medium.room(from), 0);
        assert!(medium.enqueue(Instant::ZERO, from, to, packet(0)).is_err());
    }
    assert_eq!(medium.counters().stations[1].queue_drops, 1);
    assert_eq!(medium.counters().wired_down.queue_drops, 1);
    drain(&mut medium);
    assert_eq!((medium.room(station(1)), medium.room(Node::Server)), (4, 3));
    assert_eq!(medium.room(station(7)), 0);
}

/// One station of 802.11n whose host has FQ-CoDel.
fn with_fq_codel() -> WifiConfig {
    let mut config = config(Standard::N, 1);
    config.stations[0].host_queue = HostQueueKind::FqCodel;
    config.stations[0].queue = 8_192;
    config
}

#[test]
fn a_sparse_flow_s_packet_is_in_the_host_s_next_aggregate() {
    let place_of_the_sparse = |config: &WifiConfig| {
        let mut medium = medium(config, 1);
        let now = Instant::ZERO;
        for number in 0..300 {
            medium.enqueue(now, station(0), TO_SERVER, packet(3 * number)).unwrap();
        }
        medium.enqueue(now, station(0), TO_SERVER, packet(1)).unwrap();
        let arrived = drain(&mut medium);
        assert_eq!(arrived.len(), 301);
        let bulk = arrived.iter().map(|delivery| delivery.packet.id).filter(|id| *id != 1);
        assert!(bulk.is_sorted(), "each flow keeps its order");
        arrived.iter().position(|delivery| delivery.packet.id == 1).unwrap()
    };
    let mut fifo = with_fq_codel();
    fifo.stations[0].host_queue = HostQueueKind::Fifo;
    assert_eq!(place_of_the_sparse(&fifo), 300);
    assert!(place_of_the_sparse(&with_fq_codel()) <= 1);
}

#[test]
fn aggregates_are_as_long_with_fq_codel_as_with_a_fifo() {
    let frames = |host_queue| {
        let mut config = with_fq_codel();
        config.stations[0].host_queue = host_queue;
        config.stations[0].frame_error_ppm = 100_000;
        let mut medium = medium(&config, 1);
        for number in 0..2_000 {
            medium.enqueue(Instant::ZERO, station(0), TO_SERVER, packet(3 * number)).unwrap();
        }
        medium.handle_timeout(Instant::ZERO + Duration::from_millis(90));
        let counters = &medium.counters().stations[0];
        assert!(counters.delivered > 200, "{counters:?}");
        counters.mpdus as f64 / counters.attempts as f64
    };
    // 65535 bytes have room for 42 frames, but there are fewer, because the window begins with the
    // oldest failure.
    let (fifo, fq) = (frames(HostQueueKind::Fifo), frames(HostQueueKind::FqCodel));
    assert!((fifo - fq).abs() < 0.5 && fq > 25.0, "{fifo} and {fq} frames each");
}

#[test]
fn what_codel_drops_has_left_the_host_s_queue_and_is_counted() {
    let mut medium = medium(&with_fq_codel(), 1);
    medium.watch_departures(StationId(0));
    // 70 Mbit/s for two seconds, which is more than the air carries.
    let (mut now, mut offered, mut arrived) = (Instant::ZERO, 0, 0);
    let mut left = Vec::new();
    let mut pass = |medium: &mut Medium<Datagram>, now| {
        medium.handle_timeout(now);
        arrived += std::iter::from_fn(|| medium.poll_delivery()).count() as u64;
        left.extend(std::iter::from_fn(|| medium.poll_departure()).map(|one| one.packet.id));
    };
    while now < Instant::ZERO + Duration::from_secs(2) {
        medium.enqueue(now, station(0), TO_SERVER, packet(3 * offered)).unwrap();
        offered += 1;
        now += Duration::from_micros(170);
        pass(&mut medium, now);
    }
    while let Some(due) = medium.next_timeout() {
        pass(&mut medium, due);
    }
    let counters = &medium.counters().stations[0];
    assert!(counters.queue_drops > 10, "{counters:?}");
    assert_eq!(arrived + counters.queue_drops, offered);
    left.sort_unstable();
    assert!(left.iter().copied().eq((0..offered).map(|number| 3 * number)), "each once");
    assert_eq!((medium.queued(station(0)), medium.packets_inside()), (0, 0));
}
