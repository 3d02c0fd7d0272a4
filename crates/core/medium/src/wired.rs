//! The wired leg between the access point and the server.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use rand_pcg::Pcg64Mcg;
use wakeai_units::{Bytes, Duration, Instant, Serializer};
use wakeai_wifi::{QueueLimit, Wired};

use crate::chance;
use crate::counters::WireCounters;

/// One direction: a queue, a rate, a delay, losses, and an extra delay for each flow.
///
/// A flow is the traffic of one station, or of the broadcast address. The packets of a flow never
/// overtake each other. Where the extra delay is lowered while packets are on their way, later
/// packets arrive together with the last of the earlier ones.
#[derive(Clone, Debug)]
pub(crate) struct Wire<T> {
    line: Serializer,
    delay: Duration,
    limit: QueueLimit,
    /// The share of packets that is lost, in parts per million.
    loss_ppm: u32,
    /// Draws the losses.
    rng: Pcg64Mcg,
    /// The departure times and the lengths of the packets that are still at the sending end.
    departures: VecDeque<(Instant, u32)>,
    /// The sum of the lengths in `departures`.
    bytes: u64,
    flows: Vec<WireFlow<T>>,
    /// The first packet of each flow that has any, sorted by arrival and then by order of sending.
    heads: BinaryHeap<Reverse<(Instant, u64, u32)>>,
    sent: u64,
}

#[derive(Clone, Debug)]
struct WireFlow<T> {
    last_arrival: Instant,
    on_their_way: VecDeque<(Instant, u64, T)>,
}

impl<T> Wire<T> {
    pub(crate) fn new(config: &Wired, flows: usize, rng: Pcg64Mcg) -> Self {
        let flow = || WireFlow { last_arrival: Instant::ZERO, on_their_way: VecDeque::new() };
        let Wired { rate, delay, queue, loss_ppm } = *config;
        Self {
            line: Serializer::new(rate),
            delay,
            limit: queue,
            loss_ppm,
            rng,
            departures: VecDeque::new(),
            bytes: 0,
            flows: (0..flows).map(|_| flow()).collect(),
            heads: BinaryHeap::with_capacity(flows),
            sent: 0,
        }
    }

    /// Full packets that still fit in at `now`.
    pub(crate) fn room(&self, now: Instant) -> usize {
        let left = self.left_by(now);
        let bytes: u64 = self.departures.range(..left).map(|(_, length)| u64::from(*length)).sum();
        self.limit.room(self.departures.len() - left, self.bytes - bytes)
    }

    /// Packets at the sending end at `now`.
    pub(crate) fn queued(&self, now: Instant) -> usize {
        self.departures.len() - self.left_by(now)
    }

    /// The packets in `departures` that have left the sending end by `now`.
    fn left_by(&self, now: Instant) -> usize {
        self.departures.partition_point(|(departure, _)| *departure <= now)
    }

    /// The time at which a full queue has room again. A refused sender can then try again.
    #[inline]
    pub(crate) fn next_room(&self) -> Option<Instant> {
        if self.limit.room(self.departures.len(), self.bytes) > 0 {
            return None;
        }
        self.departures.front().map(|(departure, _)| *departure)
    }

    /// Removes the packets that have left the sending end by `now`.
    pub(crate) fn depart(&mut self, now: Instant) {
        while let Some((departure, length)) = self.departures.front().copied()
            && departure <= now
        {
            self.departures.pop_front();
            self.bytes -= u64::from(length);
        }
    }

    /// Packets on their way, or still at the sending end, that are not lost.
    pub(crate) fn packets(&self) -> usize {
        self.flows.iter().map(|flow| flow.on_their_way.len()).sum()
    }

    /// Sends a packet of `length` bytes. Where the queue is full, the packet is given back. A packet that is lost
    /// leaves the sending end as the others do, and does not arrive.
    pub(crate) fn send(
        &mut self,
        now: Instant,
        flow: usize,
        extra: Duration,
        length: usize,
        packet: T,
        counters: &mut WireCounters,
    ) -> Result<(), T> {
        counters.offered += 1;
        self.depart(now);
        if !self.limit.takes(self.departures.len(), self.bytes, length) {
            counters.queue_drops += 1;
            return Err(packet);
        }
        let departure = self.line.send(now, Bytes::new(length as u64));
        let last = self.departures.back();
        debug_assert!(last.is_none_or(|(last, _)| *last <= departure), "the line keeps the order");
        self.departures.push_back((departure, length as u32));
        self.bytes += length as u64;
        if chance::happens(self.loss_ppm, &mut self.rng) {
            counters.losses += 1;
            return Ok(());
        }
        let (number, flow_id) = (self.sent, flow as u32);
        self.sent += 1;
        let flow = &mut self.flows[flow];
        let arrival = (departure + self.delay + extra).max(flow.last_arrival);
        flow.last_arrival = arrival;
        if flow.on_their_way.is_empty() {
            self.heads.push(Reverse((arrival, number, flow_id)));
        }
        flow.on_their_way.push_back((arrival, number, packet));
        Ok(())
    }

    /// The arrival time of the next packet.
    #[inline]
    pub(crate) fn next_arrival(&self) -> Option<Instant> {
        self.heads.peek().map(|Reverse((arrival, ..))| *arrival)
    }

    /// The packet of [`Self::next_arrival`].
    pub(crate) fn arrive(&mut self, counters: &mut WireCounters) -> Option<T> {
        let mut head = self.heads.peek_mut()?;
        let Reverse((_, _, flow)) = *head;
        let on_their_way = &mut self.flows[flow as usize].on_their_way;
        let (_, _, packet) = on_their_way.pop_front()?;
        counters.delivered += 1;
        debug_assert!(
            counters.delivered + counters.queue_drops + counters.losses <= counters.offered
        );
        if let Some((arrival, number, _)) = on_their_way.front() {
            *head = Reverse((*arrival, *number, flow));
        } else {
            std::collections::binary_heap::PeekMut::pop(head);
        }
        Some(packet)
    }
}
