//! A cellular link: exact rates, deep queues, turns by scheduler, and nothing lost on the air.

#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod common;

use common::{Datagram, TO_SERVER, station, to_station};
use proptest::prelude::*;
use wakeai_medium::{
    CellularConfig, CellularStationConfig, Change, ConfigError, Delivery, Destination, Medium,
    MediumConfig, Node, StationId,
};
use wakeai_units::{Duration, Instant, Rate};
use wakeai_wifi::{Cell, QueueLimit, Scheduler, Wired};

const INTERVAL: Duration = Duration::from_millis(1);

/// A rate of 12 Mbit/s up (1500 bytes per interval) and 24 Mbit/s down, with a wire without delay.
fn config(stations: usize, scheduler: Scheduler) -> CellularConfig {
    let one = CellularStationConfig { queue: 1_000, wired_delay: Duration::ZERO };
    CellularConfig {
        cell: Cell { uplink: Rate::from_mbps(12), downlink: Rate::from_mbps(24), scheduler },
        buffer: QueueLimit::Packets(1_000),
        wired: Wired {
            rate: Rate::from_mbps(100_000),
            delay: Duration::ZERO,
            queue: QueueLimit::Packets(1_000_000),
            ..Wired::default()
        },
        stations: vec![one; stations],
    }
}

fn cell(config: &CellularConfig) -> Medium<Datagram> {
    Medium::new(&MediumConfig::Cellular(config.clone()), wakeai_medium::generator(1)).unwrap()
}

fn full(id: u64) -> Datagram {
    Datagram { id, length: 1_500 }
}

fn at_ms(milliseconds: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(milliseconds)
}

/// Lets time pass until `end`, or until nothing more happens. Returns the packets that have
/// arrived.
fn run(cell: &mut Medium<Datagram>, end: Instant) -> Vec<Delivery<Datagram>> {
    let mut arrived = Vec::new();
    while let Some(at) = cell.next_timeout().filter(|at| *at <= end) {
        cell.handle_timeout(at);
        arrived.extend(std::iter::from_fn(|| cell.poll_delivery()));
    }
    arrived
}

/// For each station, the number of its packets that arrive at the server within `span`, while every
/// station always has packets to send.
fn saturated(config: &CellularConfig, span: Duration) -> Vec<u64> {
    let mut cell = cell(config);
    let mut arrived = vec![0; config.stations.len()];
    for index in 0..arrived.len() {
        for id in 0..20 {
            cell.enqueue(Instant::ZERO, station(index), TO_SERVER, full(id)).unwrap();
        }
    }
    let end = Instant::ZERO + span;
    while let Some(at) = cell.next_timeout().filter(|at| *at <= end) {
        cell.handle_timeout(at);
        while let Some(delivery) = cell.poll_delivery() {
            let Node::Station(from) = delivery.from else { panic!("an uplink") };
            arrived[from.index()] += 1;
            cell.enqueue(at, delivery.from, TO_SERVER, delivery.packet).unwrap();
        }
    }
    arrived
}

const BOTH: [Scheduler; 2] = [Scheduler::ProportionalFair, Scheduler::RoundRobin];

#[test]
fn a_packet_arrives_when_the_interval_of_its_last_byte_ends() {
    let mut cell = cell(&config(1, Scheduler::RoundRobin));
    let asked = Instant::ZERO + Duration::from_micros(2_300);
    cell.enqueue(asked, station(0), TO_SERVER, full(1)).unwrap();
    cell.enqueue(asked, station(0), TO_SERVER, Datagram { id: 2, length: 100 }).unwrap();
    let arrived = run(&mut cell, Instant::MAX);
    // The first packet is granted at 3 ms. The second finds the interval full. On the wire 1500
    // bytes take 120 ns.
    let nanos: Vec<u64> = arrived.iter().map(|delivery| delivery.at.as_nanos()).collect();
    assert_eq!(nanos, [4_000_120, 5_000_008]);
    assert_eq!(cell.next_timeout(), None);
}

#[test]
fn the_rate_is_exact_also_where_an_interval_carries_no_whole_bytes() {
    // 1 234 567 bit/s are 154.32 bytes in each interval.
    for (rate, seconds) in [(Rate::from_mbps(12), 10), (Rate::from_bps(1_234_567), 100)] {
        let mut config = config(3, Scheduler::ProportionalFair);
        config.cell.uplink = rate;
        let packets: u64 = saturated(&config, Duration::from_secs(seconds)).iter().sum();
        let expected = rate.bits_per_second() * seconds / 12_000;
        // Up to three packets, one of each station, are under way at the end.
        assert!((expected - 3..=expected).contains(&packets), "{packets} of {expected}");
    }
}

#[test]
fn the_directions_do_not_disturb_each_other() {
    let mut cell = cell(&config(1, Scheduler::RoundRobin));
    for id in 0..100 {
        cell.enqueue(Instant::ZERO, station(0), TO_SERVER, full(id)).unwrap();
        cell.enqueue(Instant::ZERO, Node::Server, to_station(0), full(id)).unwrap();
    }
    let arrived = run(&mut cell, Instant::MAX);
    let last = |to: Node| arrived.iter().rfind(|delivery| delivery.to == to).unwrap().at;
    // A packet that is sent at time 0 is on the wire for 120 ns, so it misses the grant at time 0.
    assert_eq!(last(station(0)), at_ms(1 + 50));
    assert_eq!(last(Node::Server), at_ms(100) + Duration::from_nanos(120));
    let airtime = cell.counters().airtime;
    assert_eq!(airtime.data, Duration::from_millis(50 + 100));
    assert_eq!(airtime.busy() + airtime.idle, Duration::from_millis(2 * 100));
}

#[test]
fn the_delay_of_a_full_buffer_is_its_length_by_the_rate() {
    let mut config = config(1, Scheduler::ProportionalFair);
    config.buffer = QueueLimit::Packets(300);
    let mut cell = cell(&config);
    for id in 0..400 {
        cell.enqueue(Instant::ZERO, Node::Server, to_station(0), full(id)).unwrap();
    }
    let arrived = run(&mut cell, Instant::MAX);
    let counters = &cell.counters().access_point;
    // All 400 packets are there before the first grant.
    assert_eq!((arrived.len(), counters.queue_drops), (300, 100));
    // 300 packets of 1500 bytes at 24 Mbit/s: 150 ms, from the grant at 1 ms.
    assert_eq!(arrived.last().unwrap().at, at_ms(151));
}

#[test]
fn a_buffer_is_each_stations_own() {
    let mut config = config(2, Scheduler::ProportionalFair);
    config.buffer = QueueLimit::Packets(10);
    let mut cell = cell(&config);
    for id in 0..50 {
        cell.enqueue(Instant::ZERO, Node::Server, to_station(0), full(id)).unwrap();
    }
    cell.enqueue(Instant::ZERO, Node::Server, to_station(1), full(99)).unwrap();
    let arrived = run(&mut cell, Instant::MAX);
    assert_eq!(arrived.iter().filter(|delivery| delivery.to == station(1)).count(), 1);
    assert_eq!(cell.counters().access_point.queue_drops, 40);
}

#[test]
fn both_schedulers_give_saturating_stations_the_same_bytes() {
    for scheduler in BOTH {
        let arrived = saturated(&config(7, scheduler), Duration::from_secs(7));
        assert!(arrived.iter().all(|packets| (998..=1_001).contains(packets)), "{arrived:?}");
    }
}

#[test]
fn round_robin_counts_bytes_and_not_packets() {
    let mut cell = cell(&config(2, Scheduler::RoundRobin));
    for id in 0..900 {
        cell.enqueue(Instant::ZERO, station(0), TO_SERVER, full(id)).unwrap();
        cell.enqueue(Instant::ZERO, station(1), TO_SERVER, Datagram { id, length: 150 }).unwrap();
    }
    let arrived = run(&mut cell, at_ms(100) + INTERVAL / 2);
    let packets = |index| arrived.iter().filter(|d| d.from == station(index)).count();
    assert_eq!((packets(0), packets(1)), (50, 500));
}

/// The arrival time of the first packet of a station that was silent for a second, while five other
/// stations always send.
fn wait_after_a_pause(scheduler: Scheduler) -> Duration {
    let mut cell = cell(&config(6, scheduler));
    for id in 0..1_000 {
        for index in 0..5 {
            cell.enqueue(Instant::ZERO, station(index), TO_SERVER, full(id)).unwrap();
        }
    }
    let asked = at_ms(1_000) + INTERVAL / 2;
    run(&mut cell, asked);
    cell.enqueue(asked, station(5), TO_SERVER, full(7)).unwrap();
    let arrived = run(&mut cell, Instant::MAX);
    arrived.iter().find(|delivery| delivery.from == station(5)).unwrap().at - asked
}

#[test]
fn after_a_pause_proportional_fairness_serves_a_station_first() {
    let rest = INTERVAL / 2;
    let wire = Duration::from_nanos(120);
    assert_eq!(wait_after_a_pause(Scheduler::ProportionalFair), rest + INTERVAL + wire);
    assert_eq!(wait_after_a_pause(Scheduler::RoundRobin), rest + INTERVAL * 6 + wire);
}

#[test]
fn what_one_leaves_of_an_interval_is_anothers() {
    for scheduler in BOTH {
        let mut cell = cell(&config(40, scheduler));
        for index in 0..40 {
            let small = Datagram { id: 0, length: 37 };
            cell.enqueue(Instant::ZERO, station(index), TO_SERVER, small).unwrap();
        }
        let arrived = run(&mut cell, Instant::MAX);
        assert_eq!(arrived.len(), 40);
        // 40 times 37 bytes are less than 1500.
        assert!(arrived.iter().all(|d| d.at < at_ms(2)), "{scheduler:?}");
    }
}

#[test]
fn a_broadcast_goes_nowhere_and_is_counted() {
    let mut cell = cell(&config(3, Scheduler::ProportionalFair));
    for from in [station(1), Node::Server] {
        cell.enqueue(Instant::ZERO, from, Destination::Broadcast, full(1)).unwrap();
    }
    assert_eq!(run(&mut cell, Instant::MAX), []);
    assert_eq!((cell.counters().unheard_broadcasts, cell.packets_inside()), (2, 0));
}

#[test]
fn station_to_station_goes_up_and_then_down() {
    let mut cell = cell(&config(2, Scheduler::ProportionalFair));
    cell.enqueue(Instant::ZERO, station(0), to_station(1), full(1)).unwrap();
    let arrived = run(&mut cell, Instant::MAX);
    assert_eq!(arrived.len(), 1);
    assert_eq!((arrived[0].from, arrived[0].to, arrived[0].at), (station(0), station(1), at_ms(2)));
}

#[test]
fn a_wired_delay_changes_in_mid_run() {
    let mut cell = cell(&config(1, Scheduler::ProportionalFair));
    cell.change(StationId(0), Change::WiredDelay(Duration::from_millis(100))).unwrap();
    cell.enqueue(Instant::ZERO, station(0), TO_SERVER, full(1)).unwrap();
    let arrived = run(&mut cell, Instant::MAX);
    assert_eq!(arrived[0].at, at_ms(101) + Duration::from_nanos(120));
}

#[test]
fn what_a_cell_does_not_have_is_refused_by_name() {
    let mut cell = cell(&config(1, Scheduler::ProportionalFair));
    let no_rate = cell.change(StationId(0), Change::Rate(Rate::from_mbps(1))).unwrap_err();
    assert_eq!(no_rate.to_string(), "a station on a cellular link has no rate of its own");
    let nobody = cell.change(StationId(1), Change::WiredDelay(Duration::ZERO)).unwrap_err();
    assert_eq!(nobody, ConfigError::NoSuchStation { found: 1, stations: 1 });
    let mut silent = config(1, Scheduler::ProportionalFair);
    silent.cell.uplink = Rate::ZERO;
    let refused =
        Medium::<Datagram>::new(&MediumConfig::Cellular(silent), wakeai_medium::generator(1))
            .unwrap_err()
            .to_string();
    assert_eq!(refused, "uplink is 0; allowed: 1bit/s to 1000Gbit/s");
    assert!(cell.enqueue(Instant::ZERO, station(0), to_station(0), full(1)).is_err());
    assert!(cell.enqueue(Instant::ZERO, station(9), TO_SERVER, full(1)).is_err());
    assert_eq!(cell.counters().refused, 2);
}

#[derive(Clone, Copy, Debug)]
enum Action {
    Send { from: usize, to: usize, length: usize },
    Broadcast(usize),
    Wait(u64),
    Delay(u32, u64),
}

/// Node 0 is the server.
fn node(number: usize) -> Node {
    number.checked_sub(1).map_or(Node::Server, station)
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        8 => (0..4_usize, 0..4_usize, 0..2_000_usize)
            .prop_map(|(from, to, length)| Action::Send { from, to, length }),
        1 => (0..4_usize).prop_map(Action::Broadcast),
        3 => (0..20_000_u64).prop_map(Action::Wait),
        1 => (0..3_u32, 0..50_u64).prop_map(|(station, ms)| Action::Delay(station, ms)),
    ]
}

proptest! {
    #[test]
    fn every_packet_is_dropped_delivered_or_inside_and_none_overtakes(
        steps in prop::collection::vec(action(), 1..200),
        fair in any::<bool>(),
        limit in 1..20_u32,
        kbps in 10..50_000_u64,
    ) {
        let mut config = config(3, BOTH[usize::from(fair)]);
        config.buffer = QueueLimit::Packets(limit);
        config.cell.uplink = Rate::from_bps(kbps * 1_000);
        config.stations[0].queue = limit;
        config.wired = Wired { rate: Rate::from_mbps(10), ..Wired::default() };
        let mut cell = cell(&config);
        let (mut now, mut taken, mut arrived) = (Instant::ZERO, 0_u64, Vec::new());
        for (id, step) in steps.into_iter().enumerate() {
            match step {
                Action::Send { from, to, length } => {
                    let packet = Datagram { id: id as u64, length };
                    let to = Destination::Unicast(node(to));
                    taken += u64::from(cell.enqueue(now, node(from), to, packet).is_ok());
                }
                Action::Broadcast(from) => {
                    let packet = Datagram { id: id as u64, length: 100 };
                    prop_assert!(cell.enqueue(now, node(from), Destination::Broadcast, packet).is_ok());
                }
                Action::Wait(us) => {
                    now += Duration::from_micros(us);
                    cell.handle_timeout(now);
                    arrived.extend(std::iter::from_fn(|| cell.poll_delivery()));
                }
                Action::Delay(station, ms) => {
                    let delay = Duration::from_millis(ms);
                    cell.change(StationId(station), Change::WiredDelay(delay)).unwrap();
                }
            }
            let counters = cell.counters();
            let dropped = counters.access_point.queue_drops + counters.wired_up.queue_drops;
            let accounted = dropped + arrived.len() as u64 + cell.packets_inside() as u64;
            prop_assert_eq!(accounted, taken);
        }
        let before = cell.packets_inside();
        let dropped_before = cell.counters().access_point.queue_drops
            + cell.counters().wired_up.queue_drops;
        arrived.extend(run(&mut cell, Instant::MAX));
        prop_assert_eq!(cell.packets_inside(), 0);
        let dropped = cell.counters().access_point.queue_drops + cell.counters().wired_up.queue_drops;
        prop_assert!(dropped - dropped_before <= before as u64);
        prop_assert!(arrived.is_sorted_by_key(|delivery| delivery.at));
        for from in 0..4 {
            for to in 0..4 {
                let ends = (node(from), node(to));
                let ids = arrived.iter().filter(|d| (d.from, d.to) == ends).map(|d| d.packet.id);
                prop_assert!(ids.is_sorted());
            }
        }
        let airtime = cell.counters().airtime;
        prop_assert!(airtime.busy() + airtime.idle >= airtime.data);
    }
}
