//! Loss detection by counting (RFC 6675), for the classic sender.

use wakeai_connection::CongestionState;
use wakeai_units::Instant;

use super::Sender;
use crate::segment::Segment;

/// A segment is lost when this many segments above it have arrived (RFC 6675's `DupThresh`).
const THRESHOLD: usize = 3;

/// The highest segments that were selectively acknowledged, and the segment up to which losses are
/// judged.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counting {
    /// The numbers of these segments plus one, the highest first; 0 where there is none.
    highest: [u64; THRESHOLD],
    judged: u64,
    /// Segments below this number are no longer retransmitted on suspicion.
    suspected: u64,
    /// The end of the recovery in which the rescue retransmission was sent.
    rescued: u64,
}

impl Counting {
    /// Counts a segment that is selectively acknowledged for the first time.
    pub(super) fn sack(&mut self, segment: u64) {
        let mut value = segment + 1;
        for place in &mut self.highest {
            if value > *place {
                std::mem::swap(place, &mut value);
            }
        }
    }
}

impl Sender {
    /// Applies RFC 6675's `IsLost` to all segments that are out: a segment is lost when [`THRESHOLD`]
    /// segments above it have arrived.
    pub(super) fn judge_by_count(&mut self) {
        let end = self.counting.highest[THRESHOLD - 1].saturating_sub(1);
        let mut from = self.counting.judged.max(self.board.first());
        while let Some(segment) = self.board.next_unsacked(from, end) {
            if !self.board.record(segment).marks.lost() {
                self.lost += u64::from(self.board.lose(segment));
            }
            from = segment + 1;
        }
        self.counting.judged = self.counting.judged.max(end);
    }

    /// Retransmits a segment that may be lost, where a recovery has neither a lost segment to
    /// retransmit nor new data to send. These are rules 3 and 4 of RFC 6675's `NextSeg`.
    pub(super) fn send_supposed(&mut self, now: Instant) -> Option<Segment> {
        let is_free =
            self.state == CongestionState::Recovery && self.stream.next_piece(self.nxt).is_none();
        if self.rack.is_enabled() || !is_free || self.board.next_waiting().is_some() {
            return None;
        }
        let suspect = self.next_suspect();
        let segment = suspect.or_else(|| self.next_rescue())?;
        if !self.may_send_again(now, segment) {
            return None;
        }
        if suspect.is_some() {
            self.counting.suspected = segment + 1;
        } else {
            self.counting.rescued = self.episode.high;
        }
        Some(self.send_again(now, segment, false))
    }

    /// Rule 3: the first segment that was sent once and has not arrived, while a later segment has
    /// arrived.
    fn next_suspect(&mut self) -> Option<u64> {
        let end = self.board.sacked_end();
        let mut from = self.counting.suspected.max(self.board.first());
        while let Some(segment) = self.board.next_unsacked(from, end) {
            if !self.board.record(segment).marks.sent_again() {
                return Some(segment);
            }
            from = segment + 1;
            self.counting.suspected = from;
        }
        None
    }

    /// Rule 4: the last segment, once per recovery.
    fn next_rescue(&self) -> Option<u64> {
        let last = self.board.next() - 1;
        let is_spent = self.counting.rescued == self.episode.high;
        let marks = self.board.record(last).marks;
        (!is_spent && !marks.sacked() && !marks.sent_again()).then_some(last)
    }
}
