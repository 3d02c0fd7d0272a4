//! Uses the whole plan to measure known queues: in virtual time, a line of constant rate behind a
//! queue.

#![allow(clippy::unwrap_used, reason = "a helper that fails, fails the test")]

use std::collections::VecDeque;

use wakeai_probe::BurstArrival;
use wakeai_probe::buffer::{
    BufferReport, Burst, Drops, Isolation, LimitUnit, Plan, PlanOptions, Schedule, Shot, Sizes,
    Unmeasured,
};
use wakeai_units::{Bytes, Duration, Instant, Rate, Serializer};

#[derive(Clone, Copy)]
struct QueuedPacket {
    flow: u8,
    number: u32,
    length: usize,
    since: Instant,
}

/// The limit at which a queue drops packets.
#[derive(Clone, Copy)]
enum QueueKind {
    /// This number of packets.
    Packets(usize),
    /// This number of bytes.
    Bytes(usize),
    /// This number of packets, with `CoDel` (RFC 8289), whose target is 5 ms and whose interval is
    /// 100 ms.
    CoDel(usize),
}

/// `CoDel`'s control law.
#[derive(Default)]
struct Control {
    above_since: Option<Instant>,
    next_drop: Option<Instant>,
    drops: u32,
}

impl Control {
    /// Whether `CoDel` drops the packet at the head, which has been in the queue since `since`.
    fn drops(&mut self, now: Instant, since: Instant) -> bool {
        let interval = Duration::from_millis(100);
        if now - since < Duration::from_millis(5) {
            *self = Self::default();
            return false;
        }
        let above = *self.above_since.get_or_insert(now);
        let due = self.next_drop.unwrap_or(above + interval);
        if now < due {
            return false;
        }
        self.drops += 1;
        let pause = interval.as_nanos() as f64 / f64::from(self.drops).sqrt();
        self.next_drop = Some(due + Duration::from_nanos(pause as u64));
        true
    }
}

/// A line of constant rate, which serves its queues in turns.
struct QueuedLine {
    kind: QueueKind,
    queues: Vec<(VecDeque<QueuedPacket>, Control)>,
    turn: usize,
    bits: Serializer,
    free: Instant,
    now: Instant,
    arrivals: Vec<BurstArrival>,
}

impl QueuedLine {
    fn new(kind: QueueKind, rate: Rate, per_flow: bool) -> Self {
        let queues = (0..if per_flow { 2 } else { 1 }).map(|_| Default::default()).collect();
        let start = Instant::ZERO + Duration::from_millis(1);
        let bits = Serializer::new(rate);
        Self { kind, queues, turn: 0, bits, free: start, now: start, arrivals: Vec::new() }
    }

    fn run(&mut self, until: Instant) {
        while self.free <= until && self.serve() {}
        self.free = self.free.max(until);
        self.now = until;
    }

    /// Sends one packet; `false` where all queues are empty.
    fn serve(&mut self) -> bool {
        for _ in 0..self.queues.len() {
            self.turn = (self.turn + 1) % self.queues.len();
            let (queue, control) = &mut self.queues[self.turn];
            while let Some(packet) = queue.pop_front() {
                let is_codel = matches!(self.kind, QueueKind::CoDel(_));
                if is_codel && control.drops(self.free, packet.since) {
                    continue;
                }
                self.free = self.bits.send(self.free, Bytes::new(packet.length as u64));
                let at = self.free + Duration::from_micros(100);
                self.arrivals.push(BurstArrival { flow: packet.flow, number: packet.number, at });
                return true;
            }
        }
        false
    }

    fn enqueue(&mut self, packet: QueuedPacket) {
        let place = usize::from(packet.flow).min(self.queues.len() - 1);
        let queue = &mut self.queues[place].0;
        let fits = match self.kind {
            QueueKind::Packets(limit) | QueueKind::CoDel(limit) => queue.len() < limit,
            QueueKind::Bytes(limit) => {
                queue.iter().map(|one| one.length).sum::<usize>() + packet.length <= limit
            }
        };
        if fits {
            queue.push_back(packet);
        }
    }

    fn fire(&mut self, shot: &Shot) -> (Burst, Burst) {
        let mut sent = [Vec::new(), Vec::new()];
        self.arrivals.clear();
        for due in Schedule::new(*shot, self.now) {
            self.run(due.at);
            let length = if due.flow == 0 { shot.packet.get() as usize } else { 92 };
            self.enqueue(QueuedPacket {
                flow: due.flow,
                number: due.number,
                length,
                since: due.at,
            });
            sent[usize::from(due.flow)].push(due.at);
        }
        self.run(self.now + Duration::from_secs(20));
        let [burst, sparse] = sent;
        (Burst::of_flow(0, burst, &self.arrivals), Burst::of_flow(1, sparse, &self.arrivals))
    }
}

fn probe(kind: QueueKind, per_flow: bool) -> Result<BufferReport, Unmeasured> {
    let packets = Sizes { large: Bytes::new(1_500), small: Bytes::new(750) };
    let limit = Rate::from_mbps(900);
    let mut plan = Plan::new(PlanOptions { runs: 10, limit, packets, second: false });
    let mut line = QueuedLine::new(kind, Rate::from_mbps(20), per_flow);
    while let Some(shot) = plan.poll_shot() {
        let (burst, sparse) = line.fire(&shot);
        plan.handle_burst(&burst, shot.beside.is_some().then_some(&sparse), false)?;
    }
    Ok(plan.report())
}

#[track_caller]
fn within_5_percent(found: f64, expected: f64) {
    assert!((found - expected).abs() <= 0.05 * expected, "{found} instead of {expected}");
}

#[test]
fn a_limit_in_packets_is_found() {
    for limit in [50, 300, 1_000] {
        let report = probe(QueueKind::Packets(limit), false).unwrap();
        // The packet that is on the line has left the queue, and does not count.
        within_5_percent(report.packets.unwrap().median, limit as f64);
        within_5_percent(report.packets_by_delay.unwrap().median, limit as f64);
        assert_eq!((report.counts, report.drops), (LimitUnit::Packets, Drops::Tail));
        assert_eq!(report.flows, Some(Isolation::Shared), "{report:?}");
        within_5_percent(report.drain_mbps, 20.0);
    }
}

#[test]
fn a_limit_in_bytes_is_found_and_told_from_one_in_packets() {
    for limit in [75_000, 450_000] {
        let report = probe(QueueKind::Bytes(limit), false).unwrap();
        within_5_percent(report.bytes.unwrap().median, limit as f64);
        assert_eq!((report.counts, report.drops), (LimitUnit::Bytes, Drops::Tail), "{report:?}");
    }
}

#[test]
fn a_queue_per_flow_is_told_from_one_for_all() {
    let report = probe(QueueKind::Packets(300), true).unwrap();
    assert_eq!(report.flows, Some(Isolation::Separate), "{report:?}");
}

#[test]
fn codel_is_told_from_tail_drop_and_its_first_drop_is_reported() {
    let report = probe(QueueKind::CoDel(10_000), true).unwrap();
    assert_eq!((report.drops, report.counts), (Drops::Aqm, LimitUnit::Unclear), "{report:?}");
    let first = report.first_drop.unwrap();
    // `CoDel` drops the first packet only after the delay was above the target for an interval.
    assert!(first.delay_ms > 50.0 && first.packets < 1_500.0, "{first:?}");
    assert_eq!(report.flows, Some(Isolation::Separate), "{report:?}");
}

#[test]
fn a_queue_that_nothing_fills_is_reported() {
    let result = probe(QueueKind::Packets(1_000_000), false);
    assert!(matches!(result, Err(Unmeasured::NeverFull { .. })), "{result:?}");
}
