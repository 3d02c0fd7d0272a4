//! The end of a connection that receives the stream and acknowledges it.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use wakeai_units::{Duration, Instant};

use crate::packet::{Ack, Data, Packet};
use crate::{MAX_ACK_DELAY, STREAM_WINDOW};

/// The most ranges of an acknowledgement (RFC 9000 section 13.2.3 lets the receiver choose).
const MAX_RANGES: usize = 32;
/// An acknowledgement leaves at the latest after this number of packets (RFC 9000 section 13.2.2).
const ACK_EVERY: u32 = 2;
/// The sender hears of a new limit when an eighth of the window has been read since the last one, as from quinn.
const LIMIT_PARTS: u64 = 8;

/// The receiver of the stream of a [`Sender`](crate::Sender). Its application reads at once what has arrived in order.
///
/// Call [`Self::handle_packet`] for each packet that arrives and [`Self::handle_timeout`] when [`Self::next_timeout`]
/// has come, then [`Self::poll_transmit`] until it gives `None`.
#[derive(Clone, Debug)]
pub struct Receiver {
    /// The packet numbers that have arrived, as in [`Ack::ranges`].
    ranges: VecDeque<(u64, u64)>,
    /// When the largest packet number arrived.
    largest_at: Instant,
    /// Packets that have arrived since the last acknowledgement.
    unacknowledged: u32,
    /// Packets that have arrived with CE.
    marked: u64,
    /// When the next acknowledgement leaves.
    due: Option<Instant>,
    answers: bool,
    /// The position up to which the sender may send.
    limit: u64,
    /// The bytes that have arrived in order.
    read: u64,
    /// The parts behind a gap: offset and length.
    waiting: BTreeMap<u64, u16>,
}

impl Default for Receiver {
    fn default() -> Self {
        Self {
            ranges: VecDeque::new(),
            largest_at: Instant::ZERO,
            unacknowledged: 0,
            marked: 0,
            due: None,
            answers: false,
            limit: STREAM_WINDOW,
            read: 0,
            waiting: BTreeMap::new(),
        }
    }
}

impl Receiver {
    /// Takes a packet that arrived.
    pub fn handle_packet(&mut self, now: Instant, packet: &Packet) {
        match packet {
            Packet::Hello => self.answers = true,
            Packet::Data(data) => self.handle_data(now, *data),
            Packet::Answer | Packet::Ack(_) => {
                debug_assert!(false, "{packet:?} goes to the sender");
            }
        }
    }

    fn handle_data(&mut self, now: Instant, data: Data) {
        let largest = self.ranges.front().map(|(_, last)| *last);
        let in_order = largest.is_none_or(|largest| data.number == largest + 1);
        if largest.is_none_or(|largest| data.number > largest) {
            self.largest_at = now;
        }
        if !self.note(data.number) {
            return;
        }
        self.store(data);
        self.unacknowledged += 1;
        self.marked += u64::from(data.is_marked);
        // A packet out of order, or with CE, is acknowledged at once (RFC 9000 section 13.2.1).
        let at_once = !in_order || data.is_marked;
        let wait = if at_once || self.unacknowledged >= ACK_EVERY {
            Duration::ZERO
        } else {
            MAX_ACK_DELAY
        };
        let due = now + wait;
        self.due = Some(self.due.map_or(due, |before| before.min(due)));
    }

    /// Notes a packet number. Returns whether it is new.
    fn note(&mut self, number: u64) -> bool {
        // Nearly all packets are the next of the first range, or the first of a new one.
        let mut at = 0;
        while let Some((first, last)) = self.ranges.get_mut(at) {
            if number > *last + 1 {
                break;
            }
            if number == *last + 1 {
                *last = number;
                self.join(at);
                return true;
            }
            if number >= *first {
                return false;
            }
            if number + 1 == *first {
                *first = number;
                self.join(at + 1);
                return true;
            }
            at += 1;
        }
        if at == MAX_RANGES {
            return false; // so old that its sender has long taken it for lost
        }
        self.ranges.insert(at, (number, number));
        self.ranges.truncate(MAX_RANGES);
        true
    }

    /// Joins the range at this place with the one above it, where no number is between them.
    fn join(&mut self, at: usize) {
        let Some(above) = at.checked_sub(1) else { return };
        if let (Some((first, _)), Some((below, last))) =
            (self.ranges.get(above), self.ranges.get(at))
            && *last + 1 == *first
        {
            let below = *below;
            self.ranges[above].0 = below;
            self.ranges.remove(at);
        }
    }

    fn store(&mut self, data: Data) {
        if data.offset > self.read {
            self.waiting.insert(data.offset, data.len);
            return;
        }
        self.read = self.read.max(data.offset + u64::from(data.len));
        while let Some(entry) = self.waiting.first_entry()
            && *entry.key() <= self.read
        {
            let end = entry.key() + u64::from(*entry.get());
            self.read = self.read.max(end);
            entry.remove();
        }
    }

    /// Returns the next packet that leaves now.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Packet> {
        if std::mem::take(&mut self.answers) {
            return Some(Packet::Answer);
        }
        self.due.take_if(|due| *due <= now)?;
        self.unacknowledged = 0;
        if self.read + STREAM_WINDOW >= self.limit + STREAM_WINDOW / LIMIT_PARTS {
            self.limit = self.read + STREAM_WINDOW;
        }
        Some(Packet::Ack(Rc::new(Ack {
            ranges: self.ranges.iter().copied().collect(),
            delay: now.saturating_since(self.largest_at),
            marked: self.marked,
            limit: self.limit,
        })))
    }

    /// The time of the next acknowledgement.
    pub fn next_timeout(&self) -> Option<Instant> {
        self.due
    }

    /// The bytes that the application has read.
    pub fn bytes_read(&self) -> u64 {
        self.read
    }
}
