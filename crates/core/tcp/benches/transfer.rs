//! The time per data segment and its ACK, of a sender and a receiver over a line of constant delay.
//! This is what TCP itself adds to a simulation, without losses and with losses that keep thousands
//! of holes open.

#![allow(missing_docs, reason = "criterion's macros make undocumented functions")]

use std::collections::VecDeque;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use wakeai_connection::Bounds;
use wakeai_tcp::{Profile, Receiver, Segment, Sender, TcpConfig, by_name};
use wakeai_units::{Duration, Instant};

/// The number of segments in one iteration of a sample.
const SEGMENTS: u64 = 10_000;
/// The delay in one direction.
const DELAY: Duration = Duration::from_millis(50);
/// A segment every 10 us makes 1.2 Gbit/s, and 10,000 segments in a round trip.
const SERIALIZATION: Duration = Duration::from_micros(10);

struct Line {
    sender: Sender,
    receiver: Receiver,
    now: Instant,
    data: VecDeque<(Instant, Segment)>,
    acks: VecDeque<(Instant, Segment)>,
    free_at: Instant,
    /// The number of losses that begin in a million segments, and the length of each loss.
    loss: (u64, Duration),
    loses_until: Instant,
    random: u64,
    carried: u64,
}

impl Line {
    fn new(profile: Profile, ceiling: u32, loss: (u64, Duration)) -> Self {
        let config = TcpConfig::new(profile);
        let algorithm = by_name("wakeai_cubic", &config).expect("a known name");
        let mut sender = Sender::new(&config, algorithm);
        sender.set_bounds(Bounds::from_numbers(ceiling, ceiling, 0, 0));
        sender.supply(None);
        sender.open(Instant::ZERO);
        let mut line = Self {
            sender,
            receiver: Receiver::new(&config),
            now: Instant::ZERO,
            data: VecDeque::new(),
            acks: VecDeque::new(),
            free_at: Instant::ZERO,
            loss,
            loses_until: Instant::ZERO,
            random: 88_172_645_463_325_252,
            carried: 0,
        };
        line.drain_sender();
        line.carry(30 * SEGMENTS);
        line
    }

    fn is_lost(&mut self) -> bool {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        if (self.random >> 20) % 1_000_000 < self.loss.0 {
            self.loses_until = self.free_at + self.loss.1;
        }
        self.free_at < self.loses_until
    }

    fn drain_sender(&mut self) {
        while let Some(segment) = self.sender.poll_transmit(self.now) {
            self.carried += 1;
            self.free_at = self.free_at.max(self.now) + SERIALIZATION;
            if !self.is_lost() {
                self.data.push_back((self.free_at + DELAY, segment));
            }
        }
        while self.sender.poll_event().is_some() {}
    }

    fn drain_receiver(&mut self) {
        while let Some(segment) = self.receiver.poll_transmit(self.now) {
            self.acks.push_back((self.now + DELAY, segment));
        }
    }

    fn carry(&mut self, segments: u64) {
        let end = self.carried + segments;
        while self.carried < end {
            self.step();
        }
    }

    fn step(&mut self) {
        let at = |queue: &VecDeque<(Instant, Segment)>| queue.front().map_or(Instant::MAX, |e| e.0);
        let (data, ack) = (at(&self.data), at(&self.acks));
        let sender = self.sender.next_timeout().unwrap_or(Instant::MAX);
        let receiver = self.receiver.next_timeout().unwrap_or(Instant::MAX);
        let next = data.min(ack).min(sender).min(receiver);
        self.now = self.now.max(next);
        if next == data {
            let (_, segment) = self.data.pop_front().expect("it has a time");
            self.receiver.handle_segment(self.now, &segment);
            self.drain_receiver();
        } else if next == ack {
            let (_, segment) = self.acks.pop_front().expect("it has a time");
            self.sender.handle_segment(self.now, &segment);
            self.drain_sender();
        } else if next == sender {
            self.sender.handle_timeout(self.now);
            self.drain_sender();
        } else {
            self.receiver.handle_timeout(self.now);
            self.drain_receiver();
        }
    }
}

fn transfer(c: &mut Criterion) {
    let mut group = c.benchmark_group("transfer");
    group.sample_size(20);
    for (profile, name) in [(Profile::Linux, "linux"), (Profile::Classic, "classic")] {
        for (path, window, loss) in [
            ("clean", 100, (0, SERIALIZATION)),
            ("1 in 1000 lost, window 500", 500, (1_000, SERIALIZATION)),
            ("2 in 100 lost, window 5000", 5_000, (20_000, SERIALIZATION)),
            ("bursts of 50, window 5000", 5_000, (1_000, SERIALIZATION * 50)),
        ] {
            let mut line = Line::new(profile, window, loss);
            group.throughput(Throughput::Elements(SEGMENTS));
            group.bench_function(BenchmarkId::new(name, path), |b| {
                b.iter(|| line.carry(SEGMENTS));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, transfer);
criterion_main!(benches);
