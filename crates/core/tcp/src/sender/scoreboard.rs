//! The segments that are out (sent and not acknowledged): RFC 6675's scoreboard.

use std::collections::{BTreeSet, VecDeque};

use wakeai_units::Instant;

/// One segment that is out.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub(super) struct Record {
    /// The time of the segment's last transmission.
    pub(super) sent_at: Instant,
    /// The number of the packet that last carried the segment, counted over the connection's
    /// packets. It may wrap.
    pub(super) packet: u32,
    /// Whether the segment is selectively acknowledged.
    pub(super) sacked: bool,
    /// Whether it is taken for lost.
    pub(super) lost: bool,
    /// Whether a retransmission of the segment is out.
    pub(super) retransmitted: bool,
    /// Whether it was sent more than once, so that its acknowledgement is ambiguous (Karn).
    pub(super) sent_again: bool,
    /// Whether the segment ends a write of the application, so that each copy has PSH.
    pub(super) pushed: bool,
}

/// The segments that are out, numbered from the first of the connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Scoreboard {
    records: VecDeque<Record>,
    /// The oldest segment that is out; where none is out, the next segment to be sent.
    pub(super) first: u64,
    /// The lost segments whose retransmission is not out.
    waiting: BTreeSet<u64>,
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
    /// The next segment to be sent for the first time.
    pub(super) fn next(&self) -> u64 {
        self.first + self.records.len() as u64
    }

    pub(super) fn out(&self) -> u32 {
        self.records.len() as u32
    }

    pub(super) fn is_out(&self, segment: u64) -> bool {
        (self.first..self.next()).contains(&segment)
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
        self.records[(segment - self.first) as usize]
    }

    /// The oldest segment that is out.
    pub(super) fn oldest(&self) -> Option<Record> {
        self.records.front().copied()
    }

    fn record_mut(&mut self, segment: u64) -> &mut Record {
        &mut self.records[(segment - self.first) as usize]
    }

    /// Records that the next segment leaves for the first time, and returns its number.
    pub(super) fn send(&mut self, now: Instant, packet: u32, pushed: bool) -> u64 {
        let segment = self.next();
        self.records.push_back(Record {
            sent_at: now,
            packet,
            sacked: false,
            lost: false,
            retransmitted: false,
            sent_again: false,
            pushed,
        });
        segment
    }

    /// Replaces the number of a segment's last packet.
    pub(super) fn set_packet(&mut self, segment: u64, packet: u32) {
        self.record_mut(segment).packet = packet;
    }

    /// Takes back the last segment that was sent for the first time, because it did not leave the
    /// host.
    pub(super) fn unsend(&mut self) {
        let last = self.records.pop_back();
        let is_untouched = |last: Record| !(last.sacked || last.lost || last.sent_again);
        debug_assert!(last.is_some_and(is_untouched), "nothing can have happened to it");
    }

    /// Records that a segment leaves again. With `probe` the copy does not count as in flight,
    /// because the first copy still does (RFC 8985 section 7.3).
    pub(super) fn resend(&mut self, segment: u64, now: Instant, packet: u32, probe: bool) {
        debug_assert!(self.is_out(segment), "{segment} is not out");
        let record = self.record_mut(segment);
        debug_assert!(record.sent_at <= now, "it leaves before its first transmission");
        (record.sent_at, record.packet, record.sent_again) = (now, packet, true);
        if !probe && !record.retransmitted {
            record.retransmitted = true;
            self.retransmitted_out += 1;
            self.waiting.remove(&segment);
        }
    }

    /// Records that the retransmission of a segment is no longer out. Where the segment is lost, it
    /// waits for another retransmission.
    pub(super) fn forget_retransmission(&mut self, segment: u64) {
        let record = self.record_mut(segment);
        let lost = record.lost;
        if std::mem::take(&mut record.retransmitted) {
            self.retransmitted_out -= 1;
            if lost {
                self.waiting.insert(segment);
            }
        }
    }

    /// Removes the oldest segment, which is acknowledged, and returns its record.
    pub(super) fn acknowledge(&mut self) -> Record {
        let record = self.records.pop_front().expect("a segment is out");
        self.delivered += u64::from(!record.sacked);
        self.sacked_out -= u32::from(record.sacked);
        self.retransmitted_out -= u32::from(record.retransmitted);
        if record.lost {
            self.lost_out -= 1;
            self.waiting.remove(&self.first);
        }
        self.first += 1;
        record
    }

    /// The first segment in `from..to` that is not selectively acknowledged.
    pub(super) fn next_unsacked(&self, from: u64, to: u64) -> Option<u64> {
        let mut out = from.max(self.first)..to.min(self.next());
        out.find(|segment| !self.record(*segment).sacked)
    }

    /// Marks a segment as selectively acknowledged, for the first time. Returns its record from before.
    pub(super) fn sack(&mut self, segment: u64) -> Record {
        debug_assert!(self.is_out(segment), "{segment} is not out");
        let record = self.record_mut(segment);
        let before = *record;
        debug_assert!(!before.sacked, "{segment} was selectively acknowledged before");
        record.sacked = true;
        if before.lost {
            // Where the segment is not lost, its retransmission stays counted, because it is still
            // on its way.
            (record.lost, record.retransmitted) = (false, false);
            self.lost_out -= 1;
            self.retransmitted_out -= u32::from(before.retransmitted);
            self.waiting.remove(&segment);
        }
        self.sacked_out += 1;
        self.delivered += 1;
        self.sacked_end = self.sacked_end.max(segment + 1);
        before
    }

    /// Marks a segment that is not selectively acknowledged, or its retransmission, as lost.
    pub(super) fn lose(&mut self, segment: u64) {
        let record = self.record_mut(segment);
        debug_assert!(!record.sacked, "a segment that arrived is not lost");
        let retransmitted = record.retransmitted;
        if std::mem::replace(&mut record.lost, true) {
            self.lost += u64::from(retransmitted);
            self.forget_retransmission(segment);
            return;
        }
        self.lost += 1;
        self.lost_out += 1;
        if !retransmitted {
            self.waiting.insert(segment);
        }
    }

    /// Removes all marks of loss.
    pub(super) fn unlose_all(&mut self) {
        for record in &mut self.records {
            record.lost = false;
        }
        self.lost_out = 0;
        self.waiting.clear();
    }

    /// Removes all selective acknowledgements: the receiver discarded the data (RFC 2018 section 8).
    pub(super) fn unsack_all(&mut self) {
        for record in &mut self.records {
            record.sacked = false;
        }
        self.sacked_out = 0;
        self.sacked_end = self.first;
    }

    /// The oldest lost segment whose retransmission is not out.
    pub(super) fn next_waiting(&self) -> Option<u64> {
        self.waiting.first().copied()
    }

    /// No segment is both lost and selectively acknowledged, and only what is out counts.
    pub(super) fn assert_counts(&self) {
        debug_assert!(self.sacked_out + self.lost_out <= self.out(), "more than is out");
        debug_assert!(self.retransmitted_out <= self.out(), "more retransmissions than segments");
        debug_assert!(self.waiting.len() <= self.lost_out as usize, "only lost segments wait");
    }

    /// Recounts all sums and checks them.
    #[cfg(test)]
    pub(super) fn check(&self) {
        let count = |of: fn(&&Record) -> bool| self.records.iter().filter(of).count() as u32;
        assert_eq!(count(|record| record.sacked && record.lost), 0, "it arrived and is lost");
        assert_eq!(self.sacked_out, count(|record| record.sacked));
        assert_eq!(self.lost_out, count(|record| record.lost));
        assert_eq!(self.retransmitted_out, count(|record| record.retransmitted));
        let waits =
            |segment: &u64| self.record(*segment).lost && !self.record(*segment).retransmitted;
        assert!((self.first..self.next()).filter(waits).eq(self.waiting.iter().copied()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_is_found_behind_any_number_that_have_arrived() {
        let mut board = Scoreboard::default();
        for _ in 0..100 {
            board.send(Instant::ZERO, 0, false);
        }
        for _ in 0..90 {
            board.acknowledge();
        }
        for _ in 100..200 {
            board.send(Instant::ZERO, 0, false);
        }
        for segment in [100, 190, 191, 192] {
            board.sack(segment);
        }
        assert_eq!(board.next_unsacked(0, 200), Some(90));
        assert_eq!(board.next_unsacked(100, 200), Some(101));
        assert_eq!(board.next_unsacked(190, 200), Some(193));
        assert_eq!(board.next_unsacked(190, 193), None);
        for segment in [193, 101] {
            board.lose(segment);
        }
        assert_eq!(board.next_waiting(), Some(101));
        board.resend(101, Instant::ZERO, 0, false);
        assert_eq!(board.next_waiting(), Some(193));
        board.sack(193);
        assert_eq!(board.next_waiting(), None);
        board.forget_retransmission(101);
        assert_eq!(board.next_waiting(), Some(101));
        board.check();
    }
}
