//! A sender and a receiver with a network between them.

use std::collections::VecDeque;

use wakeai_tcp::{Algorithm, Receiver, Segment, Sender, TcpConfig};
use wakeai_units::{Bytes, Duration, Instant, Rate, Serializer};

/// The packets that a link loses, besides those for which its queue has no room.
#[derive(Clone, Debug)]
pub(crate) enum Loss {
    /// No packet.
    Never,
    /// These packets, counted from 0.
    These(Vec<u64>),
    /// Each packet with this probability in 1/65536; the second number is the seed.
    Random(u64, u64),
}

impl Loss {
    fn strikes(&mut self, nth: u64) -> bool {
        match self {
            Self::Never => false,
            Self::These(packets) => packets.contains(&nth),
            Self::Random(per_65536, state) => splitmix(state) % 65_536 < *per_65536,
        }
    }
}

/// Steele, Lea and Flood, "Fast splittable pseudorandom number generators".
fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut word = *state;
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// One direction: a queue, a rate, a delay and losses.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    line: Serializer,
    delay: Duration,
    queue: usize,
    loss: Loss,
    /// Whether the queue is the sending host's own, which reports that it is full.
    pub(crate) is_host_queue: bool,
    departures: VecDeque<(Instant, usize)>,
    on_their_way: VecDeque<(Instant, Segment)>,
    pub(crate) offered: u64,
    pub(crate) dropped: u64,
    /// The largest length of the queue so far.
    pub(crate) longest: usize,
}

impl Link {
    pub(crate) fn new(rate: Rate, delay: Duration, queue: usize, loss: Loss) -> Self {
        Self {
            line: Serializer::new(rate),
            delay,
            queue,
            loss,
            is_host_queue: false,
            departures: VecDeque::new(),
            on_their_way: VecDeque::new(),
            offered: 0,
            dropped: 0,
            longest: 0,
        }
    }

    /// Takes a packet, or returns it where the queue is full. A lost packet disappears only at the
    /// far end of the link.
    fn send(&mut self, now: Instant, segment: Segment) -> Option<Segment> {
        let lost = self.loss.strikes(self.offered);
        self.offered += 1;
        if self.departures.len() >= self.queue {
            self.dropped += 1;
            return Some(segment);
        }
        let len = segment.packet_len();
        let departure = self.line.send(now, Bytes::new(len as u64));
        self.departures.push_back((departure, len));
        self.longest = self.longest.max(self.departures.len());
        if lost {
            self.dropped += 1;
        } else {
            self.on_their_way.push_back((departure + self.delay, segment));
        }
        None
    }

    fn next_departure(&self) -> Option<Instant> {
        self.departures.front().map(|(at, _)| *at)
    }

    fn next_arrival(&self) -> Option<Instant> {
        self.on_their_way.front().map(|(at, _)| *at)
    }
}

/// Both ends of a connection.
pub(crate) struct Pair {
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
    pub(crate) forward: Link,
    pub(crate) back: Link,
    pub(crate) now: Instant,
}

impl Pair {
    /// A connection that is being opened at time zero.
    pub(crate) fn open(
        config: &TcpConfig,
        algorithm: Algorithm,
        forward: Link,
        back: Link,
    ) -> Self {
        let mut pair = Self {
            sender: Sender::new(config, algorithm),
            receiver: Receiver::new(config),
            forward,
            back,
            now: Instant::ZERO,
        };
        pair.sender.open(pair.now);
        pair.flush();
        pair
    }

    /// Sends the segments that are due at either end.
    pub(crate) fn flush(&mut self) {
        while let Some(segment) = self.sender.poll_transmit(self.now) {
            let refused = self.forward.send(self.now, segment);
            if let Some(segment) = refused.filter(|_| self.forward.is_host_queue) {
                self.sender.handle_local_drop(self.now, &segment);
            }
        }
        while let Some(segment) = self.receiver.poll_transmit(self.now) {
            self.back.send(self.now, segment);
        }
    }

    fn next_event(&self) -> Option<Instant> {
        let links = [&self.forward, &self.back];
        let moves = links.into_iter().flat_map(|link| [link.next_departure(), link.next_arrival()]);
        let timers = [self.sender.next_timeout(), self.receiver.next_timeout()];
        moves.chain(timers).flatten().min()
    }

    /// Runs until `end`, or until nothing more happens.
    pub(crate) fn run_until(&mut self, end: Instant) {
        let (mut last, mut events) = (None, 0);
        while let Some(at) = self.next_event().filter(|at| *at <= end) {
            events = if last == Some(at) { events + 1 } else { 0 };
            assert!(events < 100_000, "time stands still at {at}");
            last = Some(at);
            self.now = self.now.max(at);
            self.step();
        }
        self.now = end;
    }

    /// Handles the next event.
    fn step(&mut self) {
        let due = |at: Option<Instant>| at.is_some_and(|at| at <= self.now);
        if due(self.back.next_departure()) {
            self.back.departures.pop_front();
        } else if due(self.forward.next_departure()) {
            let (_, len) = self.forward.departures.pop_front().expect("it is due");
            self.sender.handle_departure(self.now, len);
        } else if due(self.forward.next_arrival()) {
            let (_, segment) = self.forward.on_their_way.pop_front().expect("it is due");
            self.receiver.handle_segment(self.now, &segment);
        } else if due(self.back.next_arrival()) {
            let (_, segment) = self.back.on_their_way.pop_front().expect("it is due");
            self.sender.handle_segment(self.now, &segment);
        } else if due(self.sender.next_timeout()) {
            self.sender.handle_timeout(self.now);
        } else {
            self.receiver.handle_timeout(self.now);
        }
        self.flush();
    }
}
