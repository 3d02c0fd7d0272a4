//! Handling of a segment of an established connection (RFC 9293 section 3.10.7.4, in the order of
//! Linux's `tcp_data_queue`).

use wakeai_units::Instant;

use super::Receiver;
use super::autotune::ReadProgress;
use super::delayed_ack::Situation;
use super::lifecycle::ReceiverPhase;
use crate::segment::{Segment, Timestamp};

/// Segments shorter than this do not open the window.
const WORTH_GROWING: u32 = 128;

impl Receiver {
    pub(super) fn arrive(&mut self, now: Instant, segment: &Segment) {
        if segment.flags.rst {
            self.close();
            return;
        }
        self.counters.data_segments += u64::from(segment.len > 0);
        if segment.flags.syn || !self.is_acceptable(segment) {
            self.answer_unacceptable(segment);
            return;
        }
        self.note_timestamps(now, segment);
        if segment.flags.ack {
            self.on_own_acknowledged(segment.ack);
        }
        if segment.end() > segment.seq {
            self.queue(now, segment);
            self.read(now);
            self.decide(now);
        }
    }

    /// Whether the segment lies in the window (RFC 9293 section 3.10.7.4, first) and its timestamp
    /// is not older than the echoed one (RFC 7323 section 5).
    fn is_acceptable(&self, segment: &Segment) -> bool {
        let in_window = segment.end() >= self.window.acknowledged
            && segment.seq <= self.window.edge().max(self.next);
        in_window && !self.is_old(segment)
    }

    fn is_old(&self, segment: &Segment) -> bool {
        let (Some(recent), Some(timestamp)) = (self.echo, segment.timestamp) else { return false };
        timestamp.value.wrapping_sub(recent).cast_signed() < 0
    }

    /// Answers an unacceptable segment (a probe of a closed window, or an old copy) at once. The
    /// answer states the next position that is expected.
    fn answer_unacceptable(&mut self, segment: &Segment) {
        self.counters.unacceptable += 1;
        if segment.end() > segment.seq && segment.seq < self.next && !segment.flags.syn {
            self.note_duplicate(segment.seq, segment.end().min(self.next));
        }
        self.acks.answer();
    }

    /// Records the segment's timestamps. The timestamp to echo is replaced only by a segment that
    /// begins at or before the position of the last ACK. So the sender's RTT includes the delay of
    /// the ACK, but no time in which a segment was missing (RFC 7323 section 4.3).
    fn note_timestamps(&mut self, now: Instant, segment: &Segment) {
        let (Some(_), Some(timestamp)) = (self.echo, segment.timestamp) else { return };
        if segment.seq <= self.window.acknowledged {
            self.echo = Some(timestamp.value);
        }
        let elapsed_ms = Timestamp::clock_ms(now).wrapping_sub(timestamp.echo);
        let full = u64::from(segment.len) >= self.acks.segment_size;
        self.autotune.on_echo(timestamp.echo, elapsed_ms, full, self.unread() == 0);
    }

    /// Stores data and a FIN. Even a closed window has room for a FIN without data.
    fn queue(&mut self, now: Instant, segment: &Segment) {
        let (start, end) = (segment.seq, segment.end());
        if end <= self.next {
            self.note_duplicate(start, end);
            self.acks.force();
        } else if start + u64::from(segment.len) > self.window.edge() {
            self.counters.unacceptable += 1;
            self.acks.become_quick(self.window.offered);
            self.acks.force();
        } else {
            if segment.flags.fin {
                self.fin = Some(end - 1);
            }
            if start <= self.next {
                self.take_in_order(now, segment);
            } else {
                self.take_out_of_order(start, end);
            }
        }
    }

    fn take_in_order(&mut self, now: Instant, segment: &Segment) {
        let (start, end) = (segment.seq, segment.end());
        let held_before = self.reassembly.first_below(end);
        let seen_before = (start < self.next).then_some((start, self.next));
        for (from, to) in [seen_before, held_before].into_iter().flatten() {
            self.counters.duplicates += 1;
            self.sacks.report_duplicate(from, to);
        }
        self.next = end;
        if segment.len > 0 {
            self.note_data(now, segment);
        }
        if !self.reassembly.is_empty() {
            self.close_gap(end);
        }
        if self.finished() && self.phase == ReceiverPhase::Established {
            self.phase = ReceiverPhase::CloseWait;
            self.acks.on_fin();
        }
    }

    /// Updates the values that depend on the pace and the size of data that arrived in order.
    fn note_data(&mut self, now: Instant, segment: &Segment) {
        let len = segment.len;
        if len == self.config.mss {
            self.window.note_full_segment();
        }
        let window = self.window.offered;
        self.acks.on_data(now, segment, window, self.handshake.timeout);
        self.autotune.on_data(now, self.next, window);
        if len >= WORTH_GROWING {
            self.grow_window(len);
        }
    }

    fn grow_window(&mut self, len: u32) {
        if self.window.grow(u64::from(len), self.held()) {
            self.acks.on_window_growth();
        }
    }

    /// Removes the stored data that is in order after `end`. Where this fills the last gap, the ACK
    /// leaves at once (RFC 5681 section 4.2).
    fn close_gap(&mut self, end: u64) {
        self.next = self.reassembly.advance(end);
        self.sacks.acknowledge(self.next);
        if self.reassembly.is_empty() {
            self.acks.force();
        }
    }

    fn take_out_of_order(&mut self, start: u64, end: u64) {
        self.counters.out_of_order += 1;
        self.acks.schedule();
        if self.sacks.is_full() && self.acks.is_compressing() {
            self.acks.force(); // before an unreported block is dropped
        }
        self.grow_window((end - start) as u32);
        let insertion = self.reassembly.insert(start, end);
        if let Some((from, to)) = insertion.duplicate {
            self.counters.duplicates += 1;
            self.sacks.report_duplicate(from, to);
        }
        self.sacks.report(insertion.merged);
        if self.config.is_linux() {
            self.window.set_space(self.autotune.with_gap(self.ahead()));
        }
    }

    fn note_duplicate(&mut self, start: u64, end: u64) {
        self.counters.duplicates += 1;
        self.sacks.report_duplicate(start, end);
        self.acks.become_quick(self.window.offered);
    }

    /// Lets the application read (`tcp_cleanup_rbuf`).
    pub(super) fn read(&mut self, now: Instant) {
        self.reader.on_data(now, self.unread());
        let taken = self.reader.take(now, self.unread());
        if taken == 0 {
            return;
        }
        self.read += taken;
        self.tune_buffer(now);
        let unacknowledged = self.next.saturating_sub(self.window.acknowledged);
        self.acks.on_read(unacknowledged, self.held() == 0);
        if !self.finished() && self.window_reopens() {
            self.acks.answer();
        }
        self.close_if_read(now);
    }

    fn tune_buffer(&mut self, now: Instant) {
        if !self.config.is_linux() {
            return;
        }
        let progress = ReadProgress { read: self.read, next: self.next, ahead: self.ahead() };
        if let Some(space) = self.autotune.on_read(now, progress) {
            self.window.set_space(space);
        }
    }

    /// Whether the sender knows only a small window, and the window could now be at least twice as
    /// large.
    fn window_reopens(&self) -> bool {
        let left = self.window.left(self.next);
        if 2 * left > self.window.space {
            return false;
        }
        let available = self.window.available(self.held(), self.acks.segment_size);
        available > 0 && available >= 2 * left
    }

    /// Decides whether the ACK leaves now or later (`__tcp_ack_snd_check`).
    fn decide(&mut self, now: Instant) {
        if self.acks.is_due() {
            return;
        }
        let moves = self.unread() == 0
            || self.window.available(self.held(), self.acks.segment_size) >= self.window.offered;
        let situation = Situation {
            next: self.next,
            unacknowledged: self.next.saturating_sub(self.window.acknowledged),
            window_moves: moves,
            gap: !self.reassembly.is_empty(),
            handshake_rtt: self.handshake.rtt,
            data_rtt: self.autotune.rtt(),
        };
        self.acks.decide(now, situation);
    }
}
