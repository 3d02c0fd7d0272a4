//! Selective acknowledgements (RFC 2018, RFC 2883).

use wakeai_units::Instant;

use super::Sender;
use super::ack::Ack;
use super::stamped_before;
use crate::segment::Segment;

impl Sender {
    /// Enters the blocks of an acknowledgement into the scoreboard.
    pub(super) fn take_sacks(&mut self, now: Instant, segment: &Segment, ack: &mut Ack) {
        let blocks = segment.sack.as_slice();
        let Some(&first) = blocks.first() else { return };
        let below_highest = self.board.sacked_end();
        let within_second = blocks.get(1).is_some_and(|b| b.0 <= first.0 && first.1 <= b.1);
        if first.1 <= segment.ack || within_second {
            self.take_dsack(first, ack);
        }
        for &block in blocks {
            self.take_block(now, block, below_highest, ack);
        }
        if ack.dsack {
            self.forget_needless(first.1);
        }
        self.last_sacks = segment.sack;
        if let Some(reordered) = ack.reordered {
            self.check_reordering(reordered);
        }
    }

    fn take_block(
        &mut self,
        now: Instant,
        (start, end): (u64, u64),
        below_highest: u64,
        ack: &mut Ack,
    ) {
        if end <= self.una || end > self.nxt || start >= end {
            return;
        }
        let until = self.stream.segment_until(end);
        // Most blocks are those of the previous acknowledgement, longer by a segment.
        let known = self.last_sacks.iter().find(|block| block.0 <= start && start < block.1);
        let mut from = match known {
            Some(block) => self.stream.segment_until(block.1),
            None => self.stream.segment_from(start),
        };
        while let Some(segment) = self.board.next_unsacked(from, until) {
            self.take_sack(now, segment, below_highest, ack);
            from = segment + 1;
        }
    }

    fn take_sack(&mut self, now: Instant, segment: u64, below_highest: u64, ack: &mut Ack) {
        let record = self.board.sack(segment);
        ack.sacked = true;
        self.delivered += 1;
        self.counting.sack(segment);
        if !record.marks.sent_again() {
            if segment < below_highest {
                ack.see_reordered(segment);
            }
            ack.original_delivered |= self.stream.piece(segment).end() <= self.episode.high;
            ack.sample_sack(record.sent_at);
        } else if self.is_answer_to_earlier(record.sent_at) {
            return;
        }
        self.rack.deliver(now, segment, record, self.rtt.least_us());
    }

    /// Whether the acknowledgement echoes a timestamp from before `sent_at`. It then answers an
    /// earlier transmission.
    pub(super) fn is_answer_to_earlier(&self, sent_at: Instant) -> bool {
        self.echoed != 0 && stamped_before(self.echoed, super::stamp(sent_at))
    }

    /// Handles a D-SACK, which reports that the receiver got the positions of the block twice (RFC
    /// 2883).
    fn take_dsack(&mut self, (start, end): (u64, u64), ack: &mut Ack) {
        if start >= end || end - start > self.peer_window.largest() {
            return;
        }
        let mss = u64::from(self.config.mss);
        let copies = (end - start).div_ceil(mss) as u32;
        if self.counters.dsacks + u64::from(copies) > self.counters.retransmits {
            return; // the network copied it
        }
        self.counters.dsacks += u64::from(copies);
        let of_probe = copies == 1 && self.output.probe_end == Some(end);
        ack.dsack = true;
        ack.dsack_of_probe |= of_probe;
        ack.too_narrow |= self.rack.reordering_seen && !of_probe;
        self.delivered += u64::from(copies);
        if self.episode.undo_marker.is_some_and(|marker| end > marker) {
            self.episode.discount_retransmissions(copies);
        }
    }

    /// Stops counting the retransmission that ends at the position `end` as outstanding, because
    /// both copies have arrived.
    fn forget_needless(&mut self, end: u64) {
        let last = self.stream.segment_until(end).saturating_sub(1);
        if (self.board.first()..self.board.next()).contains(&last) {
            let marks = self.board.record(last).marks;
            if marks.sacked() && marks.retransmitted() {
                self.board.forget_retransmission(last);
            }
        }
    }
}
