//! Both ends and the path between them.

use std::collections::BTreeMap;

use wakeai_connection::EventKind;
use wakeai_units::{Duration, Instant};

use crate::{Receiver, Segment, Sender, TcpConfig, by_name};

/// A small random generator. It only matters that the same seed gives the same numbers.
#[derive(Clone, Debug)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound.max(1)
    }

    fn one_in(&mut self, n: u64) -> bool {
        n > 0 && self.below(n) == 0
    }
}

/// One direction of the path. On average it loses one in `loss` segments, duplicates one in `copy`,
/// and delays one in `reorder`; 0 means none.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Direction {
    pub(super) loss: u64,
    pub(super) copy: u64,
    pub(super) reorder: u64,
    pub(super) delay: Duration,
    /// The extra delay of a reordered segment.
    pub(super) extra: Duration,
    /// The transmission time of a segment; zero means none.
    pub(super) serialization: Duration,
    /// The most segments that may wait.
    pub(super) queue: u64,
}

impl Direction {
    pub(super) fn of(delay_ms: u64) -> Self {
        Self { delay: Duration::from_millis(delay_ms), queue: u64::MAX, ..Self::default() }
    }
}

#[derive(Clone, Debug, Default)]
struct Line {
    busy_until: Instant,
    /// The segments dropped here for any reason.
    dropped: u64,
}

/// The whole path, in virtual time.
pub(super) struct SimulatedPath {
    pub(super) sender: Sender,
    pub(super) receiver: Receiver,
    pub(super) now: Instant,
    pub(super) up: Direction,
    pub(super) down: Direction,
    pub(super) events: Vec<EventKind>,
    /// On average one in this many segments finds the host's queue full; 0 means none.
    pub(super) local_drop: u64,
    lines: [Line; 2],
    /// The segments on the way, by arrival time and order of departure. `true` means towards the
    /// receiver.
    flying: BTreeMap<(Instant, u64), (bool, Segment)>,
    departures: BTreeMap<(Instant, u64), usize>,
    sent: u64,
    random: Random,
    largest_window_end: u64,
}

impl SimulatedPath {
    pub(super) fn new(config: &TcpConfig, algorithm: &str, up: Direction, down: Direction) -> Self {
        Self {
            sender: Sender::new(config, by_name(algorithm, config).unwrap()),
            receiver: Receiver::new(config),
            now: Instant::ZERO,
            up,
            down,
            events: Vec::new(),
            local_drop: 0,
            lines: Default::default(),
            flying: BTreeMap::new(),
            departures: BTreeMap::new(),
            sent: 0,
            random: Random::new(1),
            largest_window_end: 0,
        }
    }

    pub(super) fn seeded(mut self, seed: u64) -> Self {
        self.random = Random::new(seed);
        self
    }

    pub(super) fn open(&mut self, bytes: Option<u64>) {
        self.sender.open(self.now);
        self.sender.supply(bytes);
        if bytes.is_some() {
            self.sender.close();
        }
        self.drain();
    }

    /// Runs both ends until nothing more happens or `end` has come.
    pub(super) fn run_until(&mut self, end: Instant) {
        while let Some(next) = self.next_event() {
            if next > end {
                break;
            }
            assert!(next >= self.now, "time goes back");
            self.now = next;
            self.step();
        }
        self.now = self.now.max(end);
    }

    /// Runs until both ends are done, and returns that time.
    pub(super) fn finish(&mut self, deadline_s: u64) -> Instant {
        let deadline = Instant::ZERO + Duration::from_secs(deadline_s);
        let mut steps = 0;
        while !(self.sender.is_closed() && self.receiver.is_closed()) {
            let next = self.next_event();
            let next = next.unwrap_or_else(|| panic!("stuck: {:?}", self.sender.figures()));
            assert!(next <= deadline, "too slow: {:?}", self.sender.figures());
            steps += 1;
            assert!(steps < 1_000_000, "no progress at {next}: {:?}", self.sender);
            self.now = next;
            self.step();
        }
        self.now
    }

    /// Stops all departures from the sender's host for a while.
    pub(super) fn stall(&mut self, span: Duration) {
        self.lines[1].busy_until = self.now + span;
    }

    fn next_event(&self) -> Option<Instant> {
        let flying = self.flying.first_key_value().map(|(key, _)| key.0);
        let departure = self.departures.first_key_value().map(|(key, _)| key.0);
        let timers = [self.sender.next_timeout(), self.receiver.next_timeout()];
        let next = [flying, departure].into_iter().chain(timers).flatten().min()?;
        Some(next.max(self.now))
    }

    fn step(&mut self) {
        let now = self.now;
        if let Some(entry) = self.departures.first_entry()
            && entry.key().0 <= now
        {
            self.sender.handle_departure(now, entry.remove());
            self.drain();
        } else if let Some(entry) = self.flying.first_entry()
            && entry.key().0 <= now
        {
            let (up, segment) = entry.remove();
            if up {
                self.receiver.handle_segment(now, &segment);
            } else {
                if segment.flags.ack {
                    let end = segment.ack + segment.window;
                    self.largest_window_end = self.largest_window_end.max(end);
                }
                self.sender.handle_segment(now, &segment);
            }
            self.drain();
        } else {
            self.sender.handle_timeout(now);
            self.receiver.handle_timeout(now);
            self.drain();
        }
    }

    fn drain(&mut self) {
        let mut burst = 0;
        loop {
            self.sender.check();
            let retransmits = self.sender.counters().retransmits;
            let probes = self.sender.counters().tail_loss_probes;
            let Some(segment) = self.sender.poll_transmit(self.now) else { break };
            burst += 1;
            assert!(burst < 100_000, "sends without end");
            let again = self.sender.counters().retransmits > retransmits;
            let probe = self.sender.counters().tail_loss_probes > probes;
            if segment.len > 0 {
                assert!(segment.end() <= self.largest_window_end, "beyond the peer's window");
                let sample = self.sender.figures();
                let in_flight = sample.packets_out.get() + sample.retrans_out.get()
                    - sample.sacked_out.get()
                    - sample.lost_out.get();
                assert!(again || probe || in_flight <= sample.cwnd.get(), "{sample:?}");
            }
            if self.random.one_in(self.local_drop) {
                self.sender.handle_local_drop(self.now, &segment);
                continue;
            }
            self.carry(true, segment);
        }
        while let Some(segment) = self.receiver.poll_transmit(self.now) {
            self.carry(false, segment);
        }
        while let Some(event) = self.sender.poll_event() {
            self.events.push(event);
        }
    }

    fn carry(&mut self, up: bool, segment: Segment) {
        let direction = if up { self.up } else { self.down };
        let line = &mut self.lines[usize::from(up)];
        let start = line.busy_until.max(self.now);
        let waiting = (start - self.now).as_nanos() / direction.serialization.as_nanos().max(1);
        let gone = start + direction.serialization;
        self.sent += 1;
        let lost = self.random.one_in(direction.loss) || waiting >= direction.queue;
        if lost {
            line.dropped += 1;
        } else {
            line.busy_until = gone;
        }
        if up {
            self.departures.insert((gone, self.sent), segment.packet_len());
        }
        let copies = if lost { 0 } else { 1 + u64::from(self.random.one_in(direction.copy)) };
        for _ in 0..copies {
            let late = self.random.one_in(direction.reorder);
            let extra = if late { self.random.below(direction.extra.as_nanos()) } else { 0 };
            self.sent += 1;
            let arrival = gone + direction.delay + Duration::from_nanos(extra);
            self.flying.insert((arrival, self.sent), (up, segment));
        }
    }
}
