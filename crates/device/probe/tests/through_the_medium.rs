//! Uses the whole plan to measure an access point whose buffer is known: the emulated access point,
//! in virtual time.

#![allow(clippy::unwrap_used, reason = "a helper that fails, fails the test")]

use wakeai_medium::{
    Destination, Medium, MediumConfig, Node, Packet, StationId, WifiConfig, generator,
};
use wakeai_probe::BurstArrival;
use wakeai_probe::buffer::{
    BufferReport, Burst, Drops, Isolation, LimitUnit, Plan, PlanOptions, Schedule, Shot, Sizes,
    Unmeasured,
};
use wakeai_units::{Bytes, Duration, Instant, Rate};
use wakeai_wifi::{QueueDiscipline, QueueLimit, Standard};

/// The time by which the stations' clock is ahead of the sender's.
const AHEAD: Duration = Duration::from_secs(1_000);

#[derive(Clone)]
struct Numbered {
    number: u32,
    flow: u8,
    length: usize,
}

impl Packet for Numbered {
    fn len(&self) -> usize {
        self.length
    }
}

struct MediumAir {
    medium: Medium<Numbered>,
    now: Instant,
    arrivals: Vec<BurstArrival>,
}

impl MediumAir {
    fn new(config: WifiConfig) -> Self {
        let medium = Medium::new(&MediumConfig::Wifi(config), generator(1)).unwrap();
        Self { medium, now: Instant::ZERO + Duration::from_millis(1), arrivals: Vec::new() }
    }

    fn run(&mut self, until: Instant) {
        while let Some(due) = self.medium.next_timeout().filter(|due| *due <= until) {
            self.medium.handle_timeout(due);
            while let Some(delivery) = self.medium.poll_delivery() {
                let Numbered { number, flow, .. } = delivery.packet;
                self.arrivals.push(BurstArrival { flow, number, at: delivery.at + AHEAD });
            }
        }
        self.now = until;
    }

    /// Sends a shot and waits until the queue is empty.
    fn fire(&mut self, shot: &Shot) -> (Burst, Burst) {
        let mut sent = [Vec::new(), Vec::new()];
        self.arrivals.clear();
        for due in Schedule::new(*shot, self.now) {
            self.run(due.at);
            let second = due.flow == 1 && shot.beside.unwrap().to_second;
            let to = Destination::Unicast(Node::Station(StationId(u32::from(second))));
            let length = if due.flow == 0 { shot.packet.get() as usize } else { 92 };
            let packet = Numbered { number: due.number, flow: due.flow, length };
            self.medium.enqueue(due.at, Node::Server, to, packet).ok().unwrap();
            sent[usize::from(due.flow)].push(due.at);
        }
        self.run(self.now + Duration::from_secs(5));
        let [burst, sparse] = sent;
        (Burst::of_flow(0, burst, &self.arrivals), Burst::of_flow(1, sparse, &self.arrivals))
    }
}

fn probe(config: WifiConfig, limit: Rate) -> Result<BufferReport, Unmeasured> {
    let packets = Sizes { large: Bytes::new(1_500), small: Bytes::new(750) };
    let second = config.stations.len() > 1;
    let mut plan = Plan::new(PlanOptions { runs: 10, limit, packets, second });
    let mut air = MediumAir::new(config);
    while let Some(shot) = plan.poll_shot() {
        let (burst, sparse) = air.fire(&shot);
        plan.handle_burst(&burst, shot.beside.is_some().then_some(&sparse), false)?;
    }
    Ok(plan.report())
}

fn config(standard: Standard, buffer: u32, stations: usize) -> WifiConfig {
    let mut config = WifiConfig::new(standard, stations);
    config.access_points[0].buffer = QueueLimit::Packets(buffer);
    config
}

#[test]
fn the_buffer_is_found_whatever_the_standard_and_however_long_it_is() {
    for standard in [Standard::G, Standard::N, Standard::Ac] {
        for buffer in [50, 300, 1_000] {
            let report = probe(config(standard, buffer, 1), Rate::from_mbps(900)).unwrap();
            println!("{standard} {buffer}: {report:?}");
            let found = report.packets.unwrap();
            for packets in [found.median, found.min, found.max] {
                let off = (packets - f64::from(buffer)).abs() / f64::from(buffer);
                assert!(off <= 0.05, "{standard}: {packets} of {buffer}: {report:?}");
            }
            assert_eq!(
                (report.drops, report.counts),
                (Drops::Tail, LimitUnit::Packets),
                "{report:?}"
            );
        }
    }
}

#[test]
fn a_limit_in_bytes_is_told_from_one_in_packets() {
    for standard in [Standard::G, Standard::N] {
        for kilobytes in [75, 450] {
            let limit = QueueLimit::Bytes(Bytes::new(kilobytes * 1_000));
            let mut config = WifiConfig::new(standard, 1);
            config.access_points[0].buffer = limit;
            let report = probe(config, Rate::from_mbps(900)).unwrap();
            println!("{standard} {kilobytes} kB: {report:?}");
            let found = report.packets.unwrap().median * 1.5;
            let off = (found - kilobytes as f64).abs() / kilobytes as f64;
            assert!(off <= 0.05, "{standard}: {found} kB of {kilobytes}: {report:?}");
            assert_eq!(
                (report.drops, report.counts),
                (Drops::Tail, LimitUnit::Bytes),
                "{report:?}"
            );
        }
    }
}

#[test]
fn a_queue_per_station_is_told_from_one_for_all() {
    for (queue, expected) in
        [(QueueDiscipline::Fifo, Isolation::Shared), (QueueDiscipline::Fq, Isolation::Separate)]
    {
        for standard in [Standard::G, Standard::N] {
            let mut config = config(standard, 300, 2);
            config.access_points[0].bss.queue = queue;
            let report = probe(config, Rate::from_mbps(900)).unwrap();
            println!("{standard} {queue:?}: {report:?}");
            assert_eq!(report.stations, Some(expected), "{report:?}");
            assert_eq!(report.flows, Some(Isolation::Shared), "{report:?}");
        }
    }
}

/// An access point with one queue collects the packets of the station whose packet is the first of the queue for an
/// aggregate. A sparse packet that is collected has not waited as long as the queue is, so the delays of the sparse flow
/// lie anywhere between none and a full queue.
#[test]
fn a_queue_for_all_is_recognised_where_aggregates_collect_packets_from_its_middle() {
    for buffer in (50..=1_000).step_by(7) {
        let mut config = config(Standard::N, buffer, 2);
        config.access_points[0].bss.queue = QueueDiscipline::Fifo;
        let report = probe(config, Rate::from_mbps(900)).unwrap();
        assert_eq!(report.stations, Some(Isolation::Shared), "{buffer}: {report:?}");
    }
}

#[test]
fn a_wire_that_is_slower_than_the_air_is_reported() {
    let result = probe(config(Standard::Ac, 300, 1), Rate::from_mbps(100));
    assert!(matches!(result, Err(Unmeasured::TooSlow { .. })), "{result:?}");
}

#[test]
fn losses_on_the_air_do_not_pass_for_active_queue_management() {
    let mut config = config(Standard::G, 300, 1);
    config.stations[0].frame_error_ppm = 100_000;
    config.access_points[0].bss.retry_limit = 1;
    let report = probe(config, Rate::from_mbps(900)).unwrap();
    println!("{report:?}");
    assert!(report.air_loss > 0.05, "{report:?}");
    assert_ne!(report.drops, Drops::Aqm);
}
