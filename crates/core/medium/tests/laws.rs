//! Invariants of every configuration and every sequence of calls.

#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod common;

use std::collections::BTreeSet;

use common::{Datagram, config, contend, medium, station};
use proptest::prelude::*;
use wakeai_medium::{
    AccessPointConfig, Change, Counters, Delivery, Destination, HostQueueKind, Medium,
    MediumConfig, Node, StationId, WifiConfig,
};
use wakeai_units::{Bytes, Duration, Instant, Rate};
use wakeai_wifi::{Contention, Protection, QueueDiscipline, QueueLimit, Standard};

const STATIONS: usize = 4;

/// Pairs of zones that do not hear each other: the access points are in zones 0 and 5, the stations in 1 to 4.
const HIDDEN: [&[(u32, u32)]; 4] =
    [&[], &[], &[(1, 2), (3, 1)], &[(1, 2), (1, 3), (2, 3), (4, 1), (4, 0), (5, 0), (5, 2)]];

#[derive(Clone, Debug)]
enum Operation {
    Send { from: usize, to: usize, count: usize, length: usize },
    Wait { us: u64 },
    Delay { station: u32, ms: u64 },
    Errors { station: u32, ppm: u32 },
    Rate { station: u32, slow: bool },
}

/// The node of an index: the stations come first, then the server, then the broadcast address.
fn node(index: usize) -> Node {
    if index < STATIONS { station(index) } else { Node::Server }
}

fn destination(index: usize) -> Destination {
    if index > STATIONS { Destination::Broadcast } else { Destination::Unicast(node(index)) }
}

fn operation() -> impl Strategy<Value = Operation> {
    let send = (0..=STATIONS, 0..STATIONS + 2, 1_usize..40, 0_usize..2_297)
        .prop_map(|(from, to, count, length)| Operation::Send { from, to, count, length });
    let any_station = 0..u32::try_from(STATIONS).unwrap();
    prop_oneof![
        4 => send,
        4 => (0_u64..20_000).prop_map(|us| Operation::Wait { us }),
        1 => (any_station.clone(), 0_u64..50)
            .prop_map(|(station, ms)| Operation::Delay { station, ms }),
        1 => (any_station.clone(), prop::sample::select(vec![0, 50_000, 600_000, 1_000_000]))
            .prop_map(|(station, ppm)| Operation::Errors { station, ppm }),
        1 => (any_station, any::<bool>())
            .prop_map(|(station, slow)| Operation::Rate { station, slow }),
    ]
}

prop_compose! {
    fn any_config()(
        standard in prop::sample::select(vec![
            Standard::A, Standard::G, Standard::N, Standard::Ac, Standard::Ax,
        ]),
        protection in prop::sample::select(vec![
            Protection::None, Protection::CtsToSelf, Protection::RtsCts,
        ]),
        queue in prop::sample::select(vec![QueueDiscipline::Fifo, QueueDiscipline::Fq]),
        (buffer, host, wire) in (limit(), 1_usize..60, limit()),
        loss_ppm in prop::sample::select(vec![0, 0, 1_000, 300_000, 1_000_000]),
        (retry_limit, cw_min, txop_us) in (1_u8..8, 0_u16..16, prop::sample::select(vec![0, 500, 3_000])),
        (eifs_after_collision, mixed) in any::<(bool, bool)>(),
        ampdu in 1_u64..70_000,
        host_queue in prop::sample::select(vec![HostQueueKind::Fifo, HostQueueKind::FqCodel]),
        (amsdu, second, hidden) in (
            prop::sample::select(vec![0, 0, 3_839, 7_935]),
            prop::sample::select(vec![None, None, Some(0), Some(1)]),
            prop::sample::select(HIDDEN.to_vec()),
        ),
    ) -> WifiConfig {
        let mut config = config(standard, STATIONS);
        (config.access_points[0].bss.protection, config.access_points[0].bss.queue, config.access_points[0].buffer) = (protection, queue, buffer);
        (config.access_points[0].bss.retry_limit, config.eifs_after_collision) = (retry_limit, eifs_after_collision);
        config.access_points[0].bss.ampdu = Bytes::new(ampdu);
        let txop = Duration::from_micros(txop_us);
        contend(&mut config, Contention { cw_min, txop, ..Contention::of(standard) });
        config.access_points[0].wired.rate = Rate::from_mbps(20);
        config.access_points[0].wired.queue = wire;
        config.access_points[0].wired.loss_ppm = loss_ppm;
        config.access_points[0].bss.amsdu = Bytes::new(amsdu);
        for (zone, station) in (1..).zip(&mut config.stations) {
            (station.queue, station.host_queue, station.zone) = (host, host_queue, zone);
        }
        config.hidden = hidden.to_vec();
        if let Some(channel) = second {
            // The last station is at an access point of its own, on the same channel or on another.
            let other = AccessPointConfig { channel, zone: 5, ..config.access_points[0].clone() };
            config.access_points.push(other);
            config.stations[STATIONS - 1].access_point = 1;
        }
        if mixed && standard != Standard::G {
            // A station of an older standard, with contention parameters of its own, in a newer
            // BSS.
            config.stations[0] = wakeai_medium::WifiStationConfig::new(Standard::A, &config.access_points[0].bss);
        }
        config
    }
}

/// All results of one run.
#[derive(Debug, PartialEq)]
struct Played {
    arrived: Vec<Delivery<Datagram>>,
    counters: Counters,
}

/// Applies the operations, and then runs until nothing more happens. With `late` the driver handles
/// no event when it is due, but only at the next operation.
fn play(config: &WifiConfig, operations: &[Operation], seed: u64, late: bool) -> Played {
    let mut medium = medium(config, seed);
    let (mut now, mut next_id, mut arrived) = (Instant::ZERO, 0, Vec::new());
    for operation in operations {
        match *operation {
            Operation::Send { from, to, count, length } => {
                for _ in 0..count {
                    next_id += 1;
                    let packet = Datagram { id: next_id, length };
                    let room = medium.room(node(from));
                    let taken = medium.enqueue(now, node(from), destination(to), packet).is_ok();
                    let addressed = destination(to) != Destination::Unicast(node(from));
                    let refuses = config
                        .stations
                        .get(from)
                        .is_none_or(|station| station.host_queue == HostQueueKind::Fifo);
                    // Where a queue is limited in bytes, `room` is the number of full packets that
                    // it takes.
                    let in_bytes =
                        matches!(config.access_points[0].wired.queue, QueueLimit::Bytes(_))
                            && node(from) == Node::Server;
                    // With several access points the server's room is that of the leg that has the least.
                    let of_another = config.access_points.len() > 1 && node(from) == Node::Server;
                    if of_another && addressed {
                        assert!(taken || room == 0 || in_bytes);
                    } else if !in_bytes || !addressed {
                        assert_eq!(taken, addressed && (room > 0 || !refuses));
                    } else if taken != (room > 0) {
                        assert_eq!(taken, length < 1_500, "{length} bytes");
                    }
                }
            }
            Operation::Wait { us } => {
                now += Duration::from_micros(us);
                pass(&mut medium, now, late, &mut arrived);
            }
            Operation::Delay { station, ms } => {
                let delay = Duration::from_millis(ms);
                medium.change(StationId(station), Change::WiredDelay(delay)).unwrap();
            }
            Operation::Errors { station, ppm } => {
                medium.change(StationId(station), Change::FrameErrorPpm(ppm)).unwrap();
            }
            Operation::Rate { station, slow } => {
                let standard = config.stations[station as usize].radio.standard;
                let place = config.stations[station as usize].access_point as usize;
                let rate = if slow {
                    slowest(standard)
                } else {
                    config.access_points[place].bss.default_rate(standard)
                };
                medium.change(StationId(station), Change::Rate(rate)).unwrap();
            }
        }
        assert_conserved(&medium);
    }
    // The longest possible duration: 60 packets from every node, each transmitted seven times.
    pass(&mut medium, now + Duration::from_secs(600), late, &mut arrived);
    assert_eq!((medium.next_timeout(), medium.packets_inside()), (None, 0));
    assert_conserved(&medium);
    Played { arrived, counters: medium.counters().clone() }
}

fn slowest(standard: Standard) -> Rate {
    Rate::from_bps(match standard {
        Standard::A | Standard::G => 6_000_000,
        Standard::B => 1_000_000,
        Standard::N => 6_500_000,
        Standard::Ac => 29_300_000,
        Standard::Ax => 36_000_000,
    })
}

/// Lets time pass until `now`. After each call no event is due any more, so time moves on.
fn pass(
    medium: &mut Medium<Datagram>,
    now: Instant,
    late: bool,
    arrived: &mut Vec<Delivery<Datagram>>,
) {
    while let Some(due) = medium.next_timeout().filter(|due| *due <= now) {
        let called = if late { now } else { due };
        medium.handle_timeout(called);
        assert!(medium.next_timeout().is_none_or(|next| next > called));
        while let Some(delivery) = medium.poll_delivery() {
            assert!(delivery.at <= called);
            arrived.push(delivery);
        }
    }
}

/// Checks that every offered packet was forwarded, was dropped and counted, or is still inside.
fn assert_conserved(medium: &Medium<Datagram>) {
    let counters = medium.counters();
    let contenders = counters.contenders();
    let in_the_air: u64 = contenders
        .map(|c| c.offered - c.queue_drops - c.retry_drops - c.delivered - c.broadcasts)
        .sum();
    let wires = [counters.wired_up, counters.wired_down];
    let on_wires: u64 =
        wires.iter().map(|w| w.offered - w.queue_drops - w.losses - w.delivered).sum();
    assert_eq!(in_the_air + on_wires, medium.packets_inside() as u64);
    // Packets from the stations and from the server go to the wire or to the access point's queue.
    let handed_on: u64 = counters.stations.iter().map(|c| c.delivered).sum();
    let taken = counters.wired_up.offered + counters.access_point.offered;
    assert_eq!(handed_on + counters.wired_down.delivered, taken);
}

fn limit() -> impl Strategy<Value = QueueLimit> {
    prop_oneof![
        (1_u32..60).prop_map(QueueLimit::Packets),
        (2_296_u64..60_000).prop_map(|bytes| QueueLimit::Bytes(Bytes::new(bytes))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn every_packet_arrives_once_or_is_a_counted_drop(
        config in any_config(),
        operations in prop::collection::vec(operation(), 1..40),
        seed in any::<u64>(),
    ) {
        let outcome = play(&config, &operations, seed, false);
        let Played { arrived, counters } = &outcome;
        prop_assert!(arrived.is_sorted_by_key(|delivery| delivery.at));
        let once: BTreeSet<(u64, Node)> = arrived.iter().map(|d| (d.packet.id, d.to)).collect();
        prop_assert_eq!(once.len(), arrived.len());
        let at_server = arrived.iter().filter(|d| d.to == Node::Server).count() as u64;
        // The server forwards what is for a station of another access point.
        prop_assert!(at_server <= counters.wired_up.delivered);
        if config.access_points.len() == 1 {
            prop_assert_eq!(at_server, counters.wired_up.delivered);
        }
        let point = &counters.access_point;
        // A broadcast arrives at all stations of its BSS, or at all except its sender.
        let at_stations = arrived.len() as u64 - at_server;
        let heard = at_stations - point.delivered + point.broadcast_losses;
        let fewest = if config.access_points.len() > 1 { 0 } else { STATIONS as u64 - 1 };
        let (least, most) = (point.broadcasts * fewest, point.broadcasts * STATIONS as u64);
        prop_assert!((least..=most).contains(&heard), "{heard} of {least} to {most}");
    }

    #[test]
    fn the_same_seed_and_calls_give_the_same_run_however_late_the_driver_is(
        config in any_config(),
        operations in prop::collection::vec(operation(), 1..40),
        seed in any::<u64>(),
    ) {
        let punctual = play(&config, &operations, seed, false);
        prop_assert_eq!(&punctual, &play(&config, &operations, seed, false));
        prop_assert_eq!(&punctual, &play(&config, &operations, seed, true));
    }
}

#[test]
fn another_seed_gives_another_run() {
    let operations = [
        Operation::Send { from: 0, to: 4, count: 40, length: 1_500 },
        Operation::Send { from: 1, to: 4, count: 40, length: 1_500 },
    ];
    let config = config(Standard::G, STATIONS);
    let times = |seed| play(&config, &operations, seed, false).arrived;
    assert_ne!(times(1), times(2));
}

type Edit = fn(&mut WifiConfig);

#[test]
fn a_configuration_out_of_range_says_what_was_found_and_what_is_allowed() {
    let broken = |change: Edit| {
        let mut config = config(Standard::N, 2);
        change(&mut config);
        let made =
            Medium::<Datagram>::new(&MediumConfig::Wifi(config), wakeai_medium::generator(1));
        made.map(|_| ()).unwrap_err()
    };
    let cases: [(Edit, &str); 11] = [
        (
            |c| c.access_points[0].buffer = QueueLimit::Packets(0),
            "buffer is 0; allowed: 1 and more packets",
        ),
        (
            |c| c.access_points[0].buffer = QueueLimit::Bytes(Bytes::new(2_295)),
            "buffer is 2295; allowed: 2296 B to 4 GB",
        ),
        (|c| c.stations[1].radio.rate = Rate::from_mbps(64), "rate of 64Mbit/s"),
        (|c| c.stations[1].frame_error_ppm = 1_000_001, "frame_error_ppm is 1000001"),
        (|c| c.stations[1].radio.standard = Standard::Ac, "station 1 uses 802.11ac"),
        (|c| c.stations[1].radio.standard = Standard::G, "station 1 uses 802.11g"),
        (|c| c.access_points[0].bss.basic_rate = Rate::from_mbps(5), "basic_rate of 5Mbit/s"),
        (|c| c.access_points[0].bss.streams = 5, "streams is 5; allowed: 1 to 4"),
        (
            |c| c.access_points[0].wired.rate = Rate::ZERO,
            "wired.rate is 0; allowed: 1bit/s and more",
        ),
        (
            |c| c.access_points[0].wired.loss_ppm = 1_000_001,
            "wired.loss_ppm is 1000001; allowed: 0 to 1000000 parts per million",
        ),
        (
            |c| c.access_points[0].bss.width = wakeai_wifi::Width::Mhz80,
            "width is \"80MHz\"; allowed: 20MHz, 40MHz",
        ),
    ];
    for (change, expected) in cases {
        let found = broken(change).to_string();
        assert!(found.contains(expected), "{found}");
    }
}
