//! The access point's queues for the air, and the order in which receivers are served.

use std::collections::VecDeque;

use wakeai_units::Duration;
use wakeai_wifi::{QueueDiscipline, QueueLimit};

use super::attempt::Receiver;
use super::frames::{Frames, Shape};
use crate::node::{Destination, Node, Packet};

/// The airtime that one visit of the round robin grants: about one full frame at 54 Mbit/s. A
/// longer exchange is deducted from the visits that follow.
const QUANTUM: Duration = Duration::from_micros(300);

/// The access point's packets, by receiver.
///
/// Frames of one receiver may be aggregated although frames of others were queued between them,
/// because an access point keeps a queue for each receiver address and traffic class. With a FIFO
/// the queue with the oldest packet is served first. A frame that failed is the oldest, so a FIFO
/// retries it before it sends anything else.
#[derive(Clone, Debug)]
pub(crate) struct AccessPoint<P> {
    /// The frames by receiver: one entry for each station in order, then one for all stations
    /// (broadcasts).
    frames: Vec<Frames<P>>,
    /// The number of waiting frames of each receiver. The numbers are kept apart from the queues,
    /// so that the longest of up to a thousand queues is found fast.
    lengths: Vec<u32>,
    turns: Turns,
    limit: QueueLimit,
    /// Frames that wait, over all receivers.
    pub(crate) waiting: usize,
}

/// The order of service.
#[derive(Clone, Debug)]
enum Turns {
    /// Receiver and number of each frame in the order of arrival; some may have left already.
    Fifo(VecDeque<(u32, u64)>),
    /// Deficit round robin.
    Fair(RoundRobin),
}

impl<P: Packet> AccessPoint<P> {
    pub(crate) fn new(stations: usize, kind: QueueDiscipline, limit: QueueLimit) -> Self {
        let receivers = stations + 1;
        let turns = match kind {
            QueueDiscipline::Fifo => Turns::Fifo(VecDeque::new()),
            QueueDiscipline::Fq => Turns::Fair(RoundRobin::new(receivers)),
        };
        let frames = (0..receivers).map(|_| Frames::new()).collect();
        Self { frames, lengths: vec![0; receivers], turns, limit, waiting: 0 }
    }

    fn index(&self, receiver: Receiver) -> usize {
        match receiver {
            Receiver::Station(station) => station,
            Receiver::Everyone => self.frames.len() - 1,
        }
    }

    fn receiver(&self, index: usize) -> Receiver {
        if index + 1 < self.frames.len() { Receiver::Station(index) } else { Receiver::Everyone }
    }

    /// The frames for one receiver.
    pub(crate) fn frames(&self, receiver: Receiver) -> &Frames<P> {
        &self.frames[self.index(receiver)]
    }

    /// The frames for one receiver.
    pub(crate) fn frames_mut(&mut self, receiver: Receiver) -> &mut Frames<P> {
        let index = self.index(receiver);
        &mut self.frames[index]
    }

    /// The number of packets to all receivers. It counts waiting packets and packets in reorder
    /// buffers.
    pub(crate) fn packets(&self) -> usize {
        self.frames.iter().map(Frames::packets).sum()
    }

    /// Adds a frame, and returns the number of frames that were dropped because the limit was
    /// reached. A FIFO drops the new frame. fq drops the last frames of the longest queue, or the
    /// new frame where its own queue is the longest. Frames that are on the air are not dropped:
    /// `on_air` names their receiver, and how many of its first frames they are. `gone` is called for each dropped
    /// packet.
    pub(crate) fn push(
        &mut self,
        receiver: Receiver,
        frame: (P, Node, Destination, Shape),
        on_air: Option<(Receiver, usize)>,
        mut gone: impl FnMut(&P, u8, bool),
    ) -> u64 {
        let receiver = self.index(receiver);
        let on_air = on_air.map(|(receiver, span)| (self.index(receiver), span));
        let (packet, from, to, shape) = frame;
        let mut dropped = 0;
        let is_urgent = packet.is_urgent();
        while !is_urgent && !self.takes(shape) {
            dropped += 1;
            let Some(other) = self.make_room(receiver, on_air) else {
                gone(&packet, 0, false);
                return dropped;
            };
            gone(&other, 0, false);
        }
        let number = self.frames[receiver].push(packet, from, to, shape);
        self.waiting += 1;
        self.lengths[receiver] += 1;
        match &mut self.turns {
            Turns::Fifo(order) if is_urgent => order.push_front((receiver as u32, number)),
            Turns::Fifo(order) => order.push_back((receiver as u32, number)),
            Turns::Fair(robin) => robin.activate(receiver),
        }
        dropped
    }

    /// Whether there is room for a frame.
    fn takes(&self, shape: Shape) -> bool {
        let bytes = match self.limit {
            QueueLimit::Packets(_) => 0,
            QueueLimit::Bytes(_) => self.frames.iter().map(|frames| frames.bytes).sum(),
        };
        self.limit.takes(self.waiting, bytes, shape.packet as usize)
    }

    /// Drops the last frame of the longest queue, unless that is the queue of the new frame.
    /// Returns the packet that was dropped.
    fn make_room(&mut self, newcomer: usize, on_air: Option<(usize, usize)>) -> Option<P> {
        if matches!(self.turns, Turns::Fifo(_)) {
            return None;
        }
        let most = (0..self.frames.len()).map(|receiver| self.length(receiver)).max().unwrap_or(0);
        if most <= self.length(newcomer) {
            return None;
        }
        let longest = (0..self.frames.len()).find(|receiver| self.length(*receiver) == most)?;
        let keep = on_air.filter(|(receiver, _)| *receiver == longest).map_or(0, |(_, span)| span);
        let dropped = self.frames[longest].pop_untried(keep)?;
        self.left(self.receiver(longest), 1);
        Some(dropped)
    }

    /// The length of a receiver's queue, in the unit of the limit.
    fn length(&self, receiver: usize) -> u64 {
        match self.limit {
            QueueLimit::Packets(_) => u64::from(self.lengths[receiver]),
            QueueLimit::Bytes(_) => self.frames[receiver].bytes,
        }
    }

    /// The receiver whose frames go next.
    pub(crate) fn next_receiver(&mut self) -> Option<Receiver> {
        let next = match &mut self.turns {
            Turns::Fifo(order) => loop {
                let &(receiver, number) = order.front()?;
                if number >= self.frames[receiver as usize].front_number {
                    break receiver as usize;
                }
                order.pop_front();
            },
            Turns::Fair(robin) => robin.next(|receiver| self.lengths[receiver] > 0)?,
        };
        Some(self.receiver(next))
    }

    /// Records that `frames` frames of the receiver were acknowledged, sent without ACK, or given
    /// up.
    pub(crate) fn left(&mut self, receiver: Receiver, frames: usize) {
        let receiver = self.index(receiver);
        self.waiting -= frames;
        self.lengths[receiver] -= frames as u32;
    }

    /// Deducts airtime from the receiver's deficit.
    pub(crate) fn charge(&mut self, receiver: Receiver, airtime: Duration) {
        let receiver = self.index(receiver);
        if let Turns::Fair(robin) = &mut self.turns {
            robin.charge(receiver, airtime);
        }
    }
}

/// Deficit round robin (Shreedhar and Varghese, 1995) in nanoseconds of airtime instead of bytes.
#[derive(Clone, Debug)]
struct RoundRobin {
    active: VecDeque<u32>,
    is_active: Vec<bool>,
    /// Airtime granted less airtime used, in nanoseconds.
    deficit_ns: Vec<i64>,
}

impl RoundRobin {
    fn new(receivers: usize) -> Self {
        Self {
            active: VecDeque::with_capacity(receivers),
            is_active: vec![false; receivers],
            deficit_ns: vec![0; receivers],
        }
    }

    fn activate(&mut self, receiver: usize) {
        if !std::mem::replace(&mut self.is_active[receiver], true) {
            self.active.push_back(receiver as u32);
        }
    }

    /// The first receiver of the round that has frames and a positive deficit. A receiver without
    /// frames leaves the round. A receiver that has used up its airtime goes to the end of the
    /// round with a new quantum.
    fn next(&mut self, has_frames: impl Fn(usize) -> bool) -> Option<usize> {
        loop {
            let receiver = *self.active.front()? as usize;
            if !has_frames(receiver) {
                self.active.pop_front();
                self.is_active[receiver] = false;
            } else if self.deficit_ns[receiver] <= 0 {
                self.deficit_ns[receiver] += QUANTUM.as_nanos().cast_signed();
                self.active.rotate_left(1);
            } else {
                return Some(receiver);
            }
        }
    }

    fn charge(&mut self, receiver: usize, airtime: Duration) {
        self.deficit_ns[receiver] -= airtime.as_nanos().cast_signed();
    }
}

#[cfg(test)]
mod tests {
    use wakeai_units::Bytes;

    use super::*;
    use crate::node::{Kind, StationId};

    fn push(point: &mut AccessPoint<u32>, receiver: usize, packet: u32) -> bool {
        let to = Destination::Unicast(Node::Station(StationId(receiver as u32)));
        let shape = Shape { packet: 100, mpdu: 138, kind: Kind::Data };
        point.push(
            Receiver::Station(receiver),
            (packet, Node::Server, to, shape),
            None,
            |_, _, _| (),
        ) == 0
    }

    #[test]
    fn a_full_fifo_drops_the_newcomer() {
        let mut point = AccessPoint::new(3, QueueDiscipline::Fifo, QueueLimit::Packets(2));
        assert_eq!([push(&mut point, 0, 1), push(&mut point, 1, 2)], [true, true]);
        assert!(!push(&mut point, 2, 3));
        assert_eq!((point.waiting, point.next_receiver()), (2, Some(Receiver::Station(0))));
    }

    #[test]
    fn a_limit_in_bytes_counts_what_waits() {
        let limit = QueueLimit::Bytes(Bytes::new(250));
        let mut point = AccessPoint::new(3, QueueDiscipline::Fifo, limit);
        let taken: Vec<bool> = (0..3).map(|packet| push(&mut point, 0, packet)).collect();
        assert_eq!(taken, [true, true, false], "100 bytes each");
    }

    #[test]
    fn a_long_packet_takes_the_place_of_several_short_ones() {
        let limit = QueueLimit::Bytes(Bytes::new(450));
        let mut point = AccessPoint::new(3, QueueDiscipline::Fq, limit);
        for packet in 0..4 {
            push(&mut point, 0, packet);
        }
        let long = Shape { packet: 250, mpdu: 288, kind: Kind::Data };
        let to = Destination::Unicast(Node::Station(StationId(1)));
        let mut gone = Vec::new();
        let frame = (9, Node::Server, to, long);
        let dropped = point.push(Receiver::Station(1), frame, None, |packet, attempts, got| {
            gone.push((*packet, attempts, got));
        });
        assert_eq!((dropped, gone), (2, vec![(3, 0, false), (2, 0, false)]));
        assert_eq!((point.frames[0].waiting, point.frames[1].waiting), (2, 1));
    }

    #[test]
    fn a_full_fair_queue_drops_from_the_longest() {
        let mut point = AccessPoint::new(3, QueueDiscipline::Fq, QueueLimit::Packets(3));
        for packet in 0..3 {
            push(&mut point, 0, packet);
        }
        assert!(!push(&mut point, 1, 9));
        assert_eq!((point.frames[0].waiting, point.frames[1].waiting), (2, 1));
        assert!(!push(&mut point, 0, 3));
        assert_eq!(point.waiting, 3);
    }

    #[test]
    fn round_robin_grants_air_not_turns() {
        let mut robin = RoundRobin::new(2);
        robin.activate(0);
        robin.activate(1);
        let mut used = [Duration::ZERO; 2];
        for _ in 0..10_000 {
            let receiver = robin.next(|_| true).unwrap();
            let airtime = Duration::from_micros([250, 2_500][receiver]);
            robin.charge(receiver, airtime);
            used[receiver] += airtime;
        }
        let [fast, slow] = used.map(Duration::as_micros);
        assert!(fast.abs_diff(slow) <= 5_000, "{fast} us against {slow} us");
    }
}
