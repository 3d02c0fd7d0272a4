//! The segments that are out (sent and not acknowledged): RFC 6675's scoreboard.

use wakeai_units::Instant;

/// The state of a segment that is out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Marks(pub(super) u8);

impl Marks {
    /// The segment is selectively acknowledged.
    pub(super) const SACKED: u8 = 1;
    /// Taken for lost.
    pub(super) const LOST: u8 = 2;
    /// A retransmission of the segment is out.
    pub(super) const RETRANSMITTED: u8 = 4;
    /// The segment was sent more than once, so its acknowledgement is ambiguous (Karn).
    pub(super) const SENT_AGAIN: u8 = 8;

    pub(super) fn sacked(self) -> bool {
        self.0 & Self::SACKED != 0
    }

    pub(super) fn lost(self) -> bool {
        self.0 & Self::LOST != 0
    }

    pub(super) fn retransmitted(self) -> bool {
        self.0 & Self::RETRANSMITTED != 0
    }

    pub(super) fn sent_again(self) -> bool {
        self.0 & Self::SENT_AGAIN != 0
    }
}

/// One segment.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Record {
    /// The time of the segment's last transmission.
    pub(super) sent_at: Instant,
    /// The number of the packet that last carried the segment, counted over the connection's
    /// packets. It may wrap.
    pub(super) packet: u32,
    pub(super) marks: Marks,
    /// Whether the segment ends a write of the application, so that each copy has PSH.
    pub(super) pushed: bool,
}

/// The initial capacity, in segments.
const FIRST_CAPACITY: u64 = 64;

/// The segments that are out, numbered from the first of the connection.
///
/// The records are a ring. Two bit sets find the segments that are not selectively acknowledged,
/// and those that wait for retransmission. The ring grows by doubling; nothing else allocates.
#[derive(Clone, Debug, Default)]
pub(super) struct Scoreboard {
    records: Vec<Record>,
    mask: u64,
    /// The oldest segment that is out; where none is out, the next segment to be sent.
    pub(super) first: u64,
    /// The next segment to be sent for the first time.
    pub(super) next: u64,
    sacked: Bits,
    /// The lost segments whose retransmission is not out.
    waiting: Bits,
    /// No segment below this waits for retransmission.
    waiting_from: u64,
    /// The number of segments that wait for retransmission.
    waiting_count: u32,
    pub(super) sacked_out: u32,
    pub(super) lost_out: u32,
    pub(super) retransmitted_out: u32,
    /// The segment after the highest selectively acknowledged segment.
    sacked_end: u64,
    /// Segments delivered so far, selectively acknowledged ones and copies included.
    pub(super) delivered: u64,
    /// Marks of loss so far; a segment counts each time.
    pub(super) lost: u64,
}

impl Scoreboard {
    pub(super) fn new() -> Self {
        Self {
            records: vec![Record::default(); FIRST_CAPACITY as usize],
            mask: FIRST_CAPACITY - 1,
            sacked: Bits::new(FIRST_CAPACITY),
            waiting: Bits::new(FIRST_CAPACITY),
            ..Self::default()
        }
    }

    pub(super) fn out(&self) -> u32 {
        (self.next - self.first) as u32
    }

    /// RFC 6675's pipe: the number of segments that are assumed to be in the network.
    pub(super) fn in_flight(&self) -> u32 {
        self.out() + self.retransmitted_out - self.sacked_out - self.lost_out
    }

    /// The segment after the highest selectively acknowledged segment; [`Self::first`] where there
    /// is none.
    pub(super) fn sacked_end(&self) -> u64 {
        self.sacked_end.max(self.first)
    }

    pub(super) fn record(&self, segment: u64) -> Record {
        self.records[(segment & self.mask) as usize]
    }

    fn record_mut(&mut self, segment: u64) -> &mut Record {
        &mut self.records[(segment & self.mask) as usize]
    }

    /// Records that the next segment leaves for the first time, and returns its number.
    pub(super) fn send(&mut self, now: Instant, packet: u32, pushed: bool) -> u64 {
        if self.next - self.first > self.mask {
            self.grow();
        }
        let segment = self.next;
        *self.record_mut(segment) =
            Record { sent_at: now, packet, marks: Marks::default(), pushed };
        self.next += 1;
        segment
    }

    /// Replaces the number of a segment's last packet.
    pub(super) fn set_packet(&mut self, segment: u64, packet: u32) {
        self.record_mut(segment).packet = packet;
    }

    /// Takes back the last segment that was sent for the first time, because it did not leave the
    /// host.
    pub(super) fn unsend(&mut self) {
        let marks = self.record(self.next - 1).marks;
        debug_assert_eq!(marks, Marks::default(), "nothing can have happened to it");
        self.next -= 1;
    }

    /// Records that a segment leaves again. With `probe` the copy does not count as in flight,
    /// because the first copy still does (RFC 8985 section 7.3).
    pub(super) fn resend(&mut self, segment: u64, now: Instant, packet: u32, probe: bool) {
        debug_assert!((self.first..self.next).contains(&segment), "{segment} is not out");
        let record = self.record_mut(segment);
        debug_assert!(record.sent_at <= now, "it leaves before its first transmission");
        record.sent_at = now;
        record.packet = packet;
        record.marks.0 |= Marks::SENT_AGAIN;
        if !probe && !record.marks.retransmitted() {
            record.marks.0 |= Marks::RETRANSMITTED;
            let waited = record.marks.lost();
            self.retransmitted_out += 1;
            if waited {
                self.stop_waiting(segment);
            }
        }
    }

    /// Records that the retransmission of a segment is no longer out. Where the segment is lost, it
    /// waits for another retransmission.
    pub(super) fn forget_retransmission(&mut self, segment: u64) {
        let record = self.record_mut(segment);
        if !record.marks.retransmitted() {
            return;
        }
        record.marks.0 &= !Marks::RETRANSMITTED;
        let lost = record.marks.lost();
        self.retransmitted_out -= 1;
        if lost {
            self.wait(segment);
        }
    }

    /// Removes the oldest segment, which is acknowledged, and returns its record.
    pub(super) fn acknowledge(&mut self) -> Record {
        let segment = self.first;
        debug_assert!(segment < self.next, "nothing is out");
        let record = self.record(segment);
        self.delivered += u64::from(!record.marks.sacked());
        if record.marks != Marks::default() {
            self.clear(segment, record.marks);
        }
        self.first += 1;
        record
    }

    fn clear(&mut self, segment: u64, marks: Marks) {
        if marks.sacked() {
            self.sacked_out -= 1;
            self.sacked.clear(segment);
        }
        if marks.lost() {
            self.lost_out -= 1;
            if !marks.retransmitted() {
                self.stop_waiting(segment);
            }
        }
        if marks.retransmitted() {
            self.retransmitted_out -= 1;
        }
    }

    /// The first segment in `from..to` that is not selectively acknowledged.
    pub(super) fn next_unsacked(&self, from: u64, to: u64) -> Option<u64> {
        self.sacked.next_clear(from.max(self.first), to.min(self.next))
    }

    /// Marks a segment as selectively acknowledged, for the first time. Returns its record from before.
    pub(super) fn sack(&mut self, segment: u64) -> Record {
        let record = self.record(segment);
        debug_assert!(!record.marks.sacked(), "{segment} was selectively acknowledged before");
        debug_assert!((self.first..self.next).contains(&segment), "{segment} is not out");
        if record.marks.lost() {
            self.lost_out -= 1;
            if record.marks.retransmitted() {
                self.retransmitted_out -= 1;
            } else {
                self.stop_waiting(segment);
            }
            // Where the segment is not lost, its retransmission stays counted, because it is still
            // on its way.
            self.record_mut(segment).marks.0 &= !(Marks::LOST | Marks::RETRANSMITTED);
        }
        self.record_mut(segment).marks.0 |= Marks::SACKED;
        self.sacked.set(segment);
        self.sacked_out += 1;
        self.delivered += 1;
        self.sacked_end = self.sacked_end.max(segment + 1);
        record
    }

    /// Marks a segment that is not selectively acknowledged, or its retransmission, as lost.
    pub(super) fn lose(&mut self, segment: u64) {
        let marks = self.record(segment).marks;
        debug_assert!(!marks.sacked(), "a segment that arrived is not lost");
        if marks.lost() {
            self.lost += u64::from(marks.retransmitted());
            self.forget_retransmission(segment);
            return;
        }
        self.lost += 1;
        self.record_mut(segment).marks.0 |= Marks::LOST;
        self.lost_out += 1;
        if !marks.retransmitted() {
            self.wait(segment);
        }
    }

    /// Removes all marks of loss.
    pub(super) fn unlose_all(&mut self) {
        if self.lost_out == 0 {
            return;
        }
        for segment in self.first..self.next {
            let marks = self.record(segment).marks;
            if marks.lost() {
                self.record_mut(segment).marks.0 &= !Marks::LOST;
                self.waiting.clear(segment);
            }
        }
        self.lost_out = 0;
        self.waiting_count = 0;
    }

    /// Removes all selective acknowledgements: the receiver discarded the data (RFC 2018 section 8).
    pub(super) fn unsack_all(&mut self) {
        for segment in self.first..self.next {
            if self.record(segment).marks.sacked() {
                self.record_mut(segment).marks.0 &= !Marks::SACKED;
                self.sacked.clear(segment);
            }
        }
        self.sacked_out = 0;
        self.sacked_end = self.first;
    }

    /// The oldest lost segment whose retransmission is not out.
    pub(super) fn next_waiting(&mut self) -> Option<u64> {
        if self.waiting_count == 0 {
            return None;
        }
        let from = self.waiting_from.max(self.first);
        let found = self.waiting.next_set(from, self.next);
        debug_assert!(found.is_some(), "{} wait", self.waiting_count);
        self.waiting_from = found.unwrap_or(self.next);
        found
    }

    fn wait(&mut self, segment: u64) {
        self.waiting.set(segment);
        self.waiting_count += 1;
        self.waiting_from = self.waiting_from.min(segment);
    }

    fn stop_waiting(&mut self, segment: u64) {
        self.waiting.clear(segment);
        self.waiting_count -= 1;
    }

    fn grow(&mut self) {
        let capacity = 2 * (self.mask + 1);
        let mut grown = Self {
            records: vec![Record::default(); capacity as usize],
            mask: capacity - 1,
            sacked: Bits::new(capacity),
            waiting: Bits::new(capacity),
            ..*self
        };
        for segment in self.first..self.next {
            let record = self.record(segment);
            *grown.record_mut(segment) = record;
            if record.marks.sacked() {
                grown.sacked.set(segment);
            } else if record.marks.lost() && !record.marks.retransmitted() {
                grown.waiting.set(segment);
            }
        }
        *self = grown;
    }

    /// No segment is both lost and selectively acknowledged, and only what is out counts.
    pub(super) fn assert_counts(&self) {
        debug_assert!(self.first <= self.next, "{} acknowledged of {}", self.first, self.next);
        debug_assert!(self.sacked_out + self.lost_out <= self.out(), "more than is out");
        debug_assert!(self.retransmitted_out <= self.out(), "more retransmissions than segments");
        debug_assert!(self.waiting_count <= self.lost_out, "only lost segments wait");
    }

    /// Recounts all sums and checks them.
    #[cfg(test)]
    pub(super) fn check(&self) {
        let (mut sacked, mut lost, mut retransmitted, mut waiting) = (0, 0, 0, 0);
        for segment in self.first..self.next {
            let marks = self.record(segment).marks;
            assert!(!(marks.sacked() && marks.lost()), "{segment} arrived and is lost");
            sacked += u32::from(marks.sacked());
            lost += u32::from(marks.lost());
            retransmitted += u32::from(marks.retransmitted());
            let waits = marks.lost() && !marks.retransmitted();
            waiting += u32::from(waits);
            assert_eq!(self.sacked.next_set(segment, segment + 1).is_some(), marks.sacked());
            assert_eq!(self.waiting.next_set(segment, segment + 1).is_some(), waits);
            assert!(!waits || segment >= self.waiting_from, "{segment} would not be found");
        }
        assert_eq!(self.sacked_out, sacked);
        assert_eq!(self.lost_out, lost);
        assert_eq!(self.retransmitted_out, retransmitted);
        assert_eq!(self.waiting_count, waiting);
    }
}

/// One bit for each position of a window that slides over the whole numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct Bits {
    words: Vec<u64>,
    /// The number of bits less one. The number of bits is a power of two.
    mask: u64,
}

impl Bits {
    /// Bits for windows of up to `capacity` positions, which is a power of two and at least 64.
    pub(super) fn new(capacity: u64) -> Self {
        debug_assert!(capacity.is_power_of_two() && capacity >= 64, "whole words");
        Self { words: vec![0; (capacity / 64) as usize], mask: capacity - 1 }
    }

    fn word(&self, at: u64) -> usize {
        ((at & self.mask) / 64) as usize
    }

    pub(super) fn set(&mut self, at: u64) {
        let word = self.word(at);
        self.words[word] |= 1 << (at % 64);
    }

    pub(super) fn clear(&mut self, at: u64) {
        let word = self.word(at);
        self.words[word] &= !(1 << (at % 64));
    }

    /// The first position in `from..to` whose bit is set.
    pub(super) fn next_set(&self, from: u64, to: u64) -> Option<u64> {
        self.next(from, to, 0)
    }

    /// The first position in `from..to` whose bit is not set.
    pub(super) fn next_clear(&self, from: u64, to: u64) -> Option<u64> {
        self.next(from, to, u64::MAX)
    }

    fn next(&self, from: u64, to: u64, flip: u64) -> Option<u64> {
        let mut at = from;
        while at < to {
            let found = (self.words[self.word(at)] ^ flip) >> (at % 64);
            if found != 0 {
                at += u64::from(found.trailing_zeros());
                return (at < to).then_some(at);
            }
            at = (at | 63) + 1;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn searches_cross_words_and_the_end_of_the_ring() {
        let mut bits = Bits::new(128);
        for at in [100, 190, 191, 192] {
            bits.set(at);
        }
        assert_eq!(bits.next_set(90, 200), Some(100));
        assert_eq!(bits.next_set(101, 200), Some(190));
        assert_eq!(bits.next_set(101, 190), None);
        assert_eq!(bits.next_clear(190, 200), Some(193));
        assert_eq!(bits.next_clear(190, 193), None);
        bits.clear(191);
        assert_eq!(bits.next_clear(190, 193), Some(191));
    }
}
