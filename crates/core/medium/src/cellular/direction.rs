//! One direction of a cellular link: a queue for each station, and intervals of time that are
//! granted to the stations.

use std::collections::VecDeque;

use wakeai_units::{Bytes, Duration, Instant, Rate};
use wakeai_wifi::{QueueLimit, Scheduler};

use super::turns::Turns;
use crate::counters::{Airtime, BytesByKind};
use crate::node::Kind;

/// Transmission time interval of LTE (3GPP TS 36.211 section 4.1).
pub(super) const INTERVAL: Duration = Duration::from_millis(1);

/// One byte, in the unit bits/s times nanoseconds.
const BYTE: u64 = 8_000_000_000;

/// The packets of the stations in one direction.
///
/// Time is divided into intervals from [`Instant::ZERO`] on. At each boundary between two
/// intervals, first the packets of the last interval arrive ([`CellDirection::arrive`]). Then the next
/// interval is granted ([`CellDirection::grant`]) to stations that have something to send at that
/// moment. A packet may be divided over several grants. It arrives when the interval of its last
/// byte ends.
#[derive(Clone, Debug)]
pub(super) struct CellDirection<T> {
    rate: Rate,
    queues: Vec<VecDeque<Waiting<T>>>,
    limits: Vec<QueueLimit>,
    /// For each station, the bytes in its queue that are not yet granted.
    waiting: Vec<u64>,
    turns: Turns,
    /// The fraction of a byte that earlier intervals could not carry, in units of 1 / [`BYTE`]
    /// byte.
    owed: u64,
    /// The next boundary at which something happens.
    pub(super) boundary: Option<Instant>,
    /// The boundary of the last grant.
    last_grant: Instant,
    /// Packets that arrive when the current interval ends.
    on_air: VecDeque<(u32, T)>,
    /// By station: bytes granted.
    granted: Vec<BytesByKind>,
    /// Bytes granted to all stations.
    all_granted: BytesByKind,
    /// The part of `all_granted` in intervals that have ended.
    carried: BytesByKind,
}

#[derive(Clone, Debug)]
struct Waiting<T> {
    packet: T,
    kind: Kind,
    /// Bytes that are not yet granted.
    left: u64,
}

impl<T> CellDirection<T> {
    /// A direction whose stations' queues have the limits `limits`.
    pub(super) fn new(rate: Rate, scheduler: Scheduler, limits: Vec<QueueLimit>) -> Self {
        let stations = limits.len();
        let quantum = rate.bytes_in(INTERVAL).get();
        Self {
            rate,
            queues: (0..stations).map(|_| VecDeque::new()).collect(),
            limits,
            waiting: vec![0; stations],
            turns: Turns::new(scheduler, stations, quantum),
            owed: 0,
            boundary: None,
            last_grant: Instant::ZERO,
            on_air: VecDeque::new(),
            granted: vec![BytesByKind::default(); stations],
            all_granted: BytesByKind::default(),
            carried: BytesByKind::default(),
        }
    }

    /// Packets in the station's queue. A packet stays there until its last byte is granted.
    pub(super) fn queued(&self, station: usize) -> usize {
        self.queues[station].len()
    }

    /// Packets that still fit into the station's queue.
    pub(super) fn room(&self, station: usize) -> usize {
        self.limits[station].room(self.queued(station), self.waiting[station])
    }

    /// Adds a packet of `length` bytes. Where the queue is full, the packet is given back.
    pub(super) fn push(
        &mut self,
        now: Instant,
        station: usize,
        (length, kind): (usize, Kind),
        packet: T,
    ) -> Result<(), T> {
        if !self.limits[station].takes(self.queued(station), self.waiting[station], length) {
            return Err(packet);
        }
        if self.queues[station].is_empty() {
            self.turns.join(station);
        }
        // A packet without bytes counts as one byte, so that it is scheduled.
        let left = (length as u64).max(1);
        self.queues[station].push_back(Waiting { packet, kind, left });
        self.waiting[station] += left;
        self.boundary.get_or_insert(boundary_at(now));
        Ok(())
    }

    /// The next packet of the interval that ends now, with its station; `None` where all have
    /// arrived.
    pub(super) fn arrive(&mut self) -> Option<(usize, T)> {
        self.on_air.pop_front().map(|(station, packet)| (station as usize, packet))
    }

    /// Grants the interval that begins now. All packets of the last interval have to arrive before.
    pub(super) fn grant(&mut self, now: Instant) {
        self.carried = self.all_granted;
        if self.turns.is_empty() {
            self.boundary = None;
            return;
        }
        let passed = (now - self.last_grant).as_nanos() / INTERVAL.as_nanos();
        self.turns.intervals_over(passed.saturating_sub(1));
        self.last_grant = now;
        self.owed += self.rate.bits_per_second() * INTERVAL.as_nanos();
        let mut left = self.owed / BYTE;
        self.owed %= BYTE;
        while left > 0
            && let Some((station, most)) = self.turns.next()
        {
            let bytes = self.carry(station, left.min(most));
            left -= bytes;
            self.turns.served(bytes, self.queues[station].is_empty());
        }
        self.boundary = Some(now + INTERVAL);
    }

    /// Puts up to `most` bytes of the station's queue on the air, and returns their number.
    fn carry(&mut self, station: usize, most: u64) -> u64 {
        let queue = &mut self.queues[station];
        let mut left = most;
        while let Some(first) = queue.front_mut().filter(|_| left > 0) {
            let bytes = first.left.min(left);
            first.left -= bytes;
            left -= bytes;
            self.granted[station][first.kind as usize] += bytes;
            self.all_granted[first.kind as usize] += bytes;
            if first.left == 0 {
                let whole = queue.pop_front().map(|waiting| (station as u32, waiting.packet));
                self.on_air.extend(whole);
            }
        }
        self.waiting[station] -= most - left;
        most - left
    }

    /// Packets in queues and on the air.
    pub(super) fn packets(&self) -> usize {
        self.all_queued() + self.on_air.len()
    }

    /// Packets in all queues.
    pub(super) fn all_queued(&self) -> usize {
        self.queues.iter().map(VecDeque::len).sum()
    }

    /// The airtime that was used until the last boundary.
    pub(super) fn used(&self) -> Airtime {
        self.air_of(self.carried)
    }

    /// The airtime that was granted to a station.
    pub(super) fn granted_to(&self, station: usize) -> Airtime {
        self.air_of(self.granted[station])
    }

    fn air_of(&self, bytes: BytesByKind) -> Airtime {
        let all = Bytes::new(bytes.iter().sum());
        let time = self.rate.time_for(all).unwrap_or(Duration::from_nanos(u64::MAX));
        Airtime::of_data(time, bytes)
    }
}

/// The first boundary at or after `now`.
fn boundary_at(now: Instant) -> Instant {
    Instant::from_nanos(now.as_nanos().next_multiple_of(INTERVAL.as_nanos()))
}
