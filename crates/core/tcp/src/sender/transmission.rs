//! The choice of the next segment, its emission with the bookkeeping of each, the peer's window, and pacing.

use wakeai_connection::EventKind;
use wakeai_units::{Duration, Instant};

use super::lifecycle::OWN_WINDOW;
use super::stream::Piece;
use super::timers::{LOCAL_RETRY, TimerKind};
use super::{Forced, Retransmission, Sender, SenderPhase, microseconds};
use crate::segment::{Flags, Segment, Timestamp};

impl Sender {
    /// Returns the next segment that may leave now.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Segment> {
        self.pacing.waits = false;
        match self.phase {
            SenderPhase::Opening => return self.output.syn.then(|| self.send_syn(now)),
            SenderPhase::Established => {}
            SenderPhase::Closed => return self.output.ack.then(|| self.send_ack(now)),
            SenderPhase::Idle | SenderPhase::Failed => return None,
        }
        if self.output.ack {
            return Some(self.send_ack(now));
        }
        if let Some(forced) = self.output.forced.take()
            && let Some(segment) = self.send_forced(now, forced)
        {
            return Some(segment);
        }
        if self.output.blocked {
            return None;
        }
        match self.output.retransmission {
            Retransmission::Nothing => self.send_new(now),
            Retransmission::Lost => self
                .send_lost(now)
                .or_else(|| self.send_new(now))
                .or_else(|| self.send_supposed(now)),
            Retransmission::AfterNew => self.send_new(now).or_else(|| self.send_after_new(now)),
        }
    }

    /// Retransmits after a timeout where no new data could be sent (RFC 5682 section 3.1, step
    /// 2.b).
    fn send_after_new(&mut self, now: Instant) -> Option<Segment> {
        if self.nxt > self.episode.high {
            return None;
        }
        self.episode.frto = false;
        self.output.retransmission = Retransmission::Lost;
        self.send_lost(now)
    }

    fn send_forced(&mut self, now: Instant, forced: Forced) -> Option<Segment> {
        match forced {
            Forced::Head => {
                let head = self.board.first;
                let gone = self.board.out() > 0 && !self.waits_in_host(head);
                gone.then(|| self.send_again(now, head, false))
            }
            Forced::TailLossProbe => self.send_tail_loss_probe(now),
            Forced::WindowProbe => {
                self.counters.window_probes += 1;
                Some(self.control(now, self.una - 1))
            }
        }
    }

    /// The tail loss probe. It is new data, regardless of the congestion window, where the peer has
    /// room for it. Otherwise it is the last segment again.
    fn send_tail_loss_probe(&mut self, now: Instant) -> Option<Segment> {
        if self.board.out() == 0 {
            return None;
        }
        let new = self.sendable_piece();
        let full = self.host_queue.is_full(self.algorithm.sk_pacing_rate, 0);
        if full || new.is_none() && self.waits_in_host(self.board.next() - 1) {
            self.rearm_timeout(now);
            return None;
        }
        let sent = match new {
            Some(piece) => self.send_piece(now, piece),
            None => self.send_again(now, self.board.next() - 1, true),
        };
        self.note_probe(now, new.is_none());
        Some(sent)
    }

    /// The oldest lost segment that waits for retransmission, where the window has room.
    fn send_lost(&mut self, now: Instant) -> Option<Segment> {
        let segment = self.board.next_waiting()?;
        self.may_send_again(now, segment).then(|| self.send_again(now, segment, false))
    }

    /// Whether the windows, pacing and the host's queue admit a retransmission.
    pub(super) fn may_send_again(&mut self, now: Instant, segment: u64) -> bool {
        self.board.in_flight() < self.algorithm.snd_cwnd
            && !self.waits_in_host(segment)
            && self.may_send(now, 1)
    }

    fn send_new(&mut self, now: Instant) -> Option<Segment> {
        let Some(piece) = self.sendable_piece() else {
            self.wait_for_window(now);
            return None;
        };
        self.reconsider_window(now);
        if self.board.in_flight() >= self.algorithm.snd_cwnd {
            self.validate_window();
            return None;
        }
        if !self.may_send(now, 0) || !self.begin_packet(now) {
            return None;
        }
        let segment = self.send_piece(now, piece);
        self.validate_window();
        Some(segment)
    }
}

/// Emission.
impl Sender {
    /// Whether pacing and the host's queue admit a segment. The queue may hold twice as much where
    /// `doublings` is 1. It always admits two segments of a connection.
    pub(super) fn may_send(&mut self, now: Instant, doublings: u32) -> bool {
        let sock = &*self.algorithm;
        if sock.sk_pacing_status != 0 && !self.pacing.may_send(now) {
            return false;
        }
        let rate = self.algorithm.sk_pacing_rate;
        self.board.out() <= 1 || !self.host_queue.is_full(rate, doublings)
    }

    /// Whether the last packet of a segment is still in the host's queue. Linux then sends no other
    /// copy.
    pub(super) fn waits_in_host(&self, segment: u64) -> bool {
        self.host_queue.holds(self.board.record(segment).packet)
    }

    /// The next new segment, where the peer's window and the send buffer have room for it. A
    /// segment that is not full waits while data is outstanding, unless it carries the FIN (RFC
    /// 9293 section 3.7.4, Nagle).
    pub(super) fn sendable_piece(&self) -> Option<Piece> {
        let piece = self.stream.next_piece(self.nxt)?;
        let data_end = piece.seq + u64::from(piece.len);
        let fits = piece.end() <= self.peer_window.end(self.una)
            && data_end <= self.una + self.stream.buffer;
        let held_back = self.stream.is_partial(piece) && self.board.out() > 0;
        (fits && !held_back).then_some(piece)
    }

    /// Whether new data waits, and the peer has room for a part of it.
    pub(super) fn has_new_data(&self) -> bool {
        self.stream.next_piece(self.nxt).is_some() && self.peer_window.end(self.una) > self.nxt
    }

    /// Whether the peer has room for all of the next segment.
    pub(super) fn window_takes_more(&self) -> bool {
        let end = self.stream.next_piece(self.nxt).map(Piece::end);
        end.is_none_or(|end| end <= self.peer_window.end(self.una))
    }

    /// Arms the timer of the window probe where no data is outstanding and the peer's window has no
    /// room for the next segment.
    pub(super) fn wait_for_window(&mut self, now: Instant) {
        if self.board.out() == 0 && !self.timer.is_armed() && !self.window_takes_more() {
            self.arm_persist(now);
        }
    }

    /// Records whether the congestion window limits the sender. Only then may the congestion window
    /// grow (RFC 7661; the kernel's `tcp_cwnd_validate`).
    pub(super) fn validate_window(&mut self) {
        let out = self.board.out();
        let sock = &mut *self.algorithm;
        let limited = self.board.in_flight() >= sock.snd_cwnd;
        let new_round = self.una >= self.usage_round_end;
        if new_round || limited || sock.is_cwnd_limited == 0 && out > sock.max_packets_out {
            sock.is_cwnd_limited = u32::from(limited);
            sock.max_packets_out = out;
            self.usage_round_end = self.nxt;
        }
    }

    /// The first transmission of a segment.
    pub(super) fn send_piece(&mut self, now: Instant, piece: Piece) -> Segment {
        self.before_sending(now);
        let was_idle = self.board.out() == 0;
        let pushed = self.stream.is_last_written(piece) || self.packet.pushes_at(piece.end());
        self.rate.send(now, None, self.board.delivered);
        let number = self.board.send(now, self.host_queue.entered, pushed);
        self.nxt = piece.end();
        if piece.fin {
            self.stream.mark_fin(number);
        }
        let segment = self.emit(now, piece, pushed);
        let scheduled = self.schedule_probe(now, false);
        if !scheduled && (was_idle || self.timer.is(TimerKind::TailLoss)) {
            self.rearm_timeout(now);
        }
        segment
    }

    /// Sends a segment again. With `probe` it is sent as a tail loss probe, and not because it was
    /// found to be lost.
    pub(super) fn send_again(&mut self, now: Instant, number: u64, probe: bool) -> Segment {
        self.before_sending(now);
        self.rate.send(now, Some(number - self.board.first), self.board.delivered);
        self.board.resend(number, now, self.host_queue.entered, probe);
        self.rack.resend(now, number);
        self.counting.resend(number, self.board.next());
        if !probe {
            self.episode.count_retransmission(Timestamp::clock_ms(now));
        }
        self.counters.retransmits += 1;
        let piece = self.stream.piece(number);
        self.events.push_back(EventKind::Retransmit);
        // In Linux two more events in a recovery restart the timeout. One is the retransmission of
        // the oldest outstanding segment. The other is a selective acknowledgement of segments that
        // were sent before this retransmission. By RFC 6298 section 5.1 neither event restarts the
        // timeout; RFC 6675 section 6 allows both ways.
        if self.config.is_linux()
            && number == self.board.first
            && !self.timer.is(TimerKind::Reordering)
        {
            self.timer.set(TimerKind::Retransmission, now + self.rto.timeout);
        }
        let pushed = self.board.record(number).pushed;
        self.emit(now, piece, pushed)
    }

    /// Lets the congestion control reconsider its window before the first segment after a pause.
    pub(super) fn reconsider_window(&mut self, now: Instant) {
        if self.board.out() == 0 {
            self.publish_at(now);
            self.algorithm.before_sending();
        }
    }

    fn before_sending(&mut self, now: Instant) {
        if self.board.in_flight() == 0 {
            self.publish_at(now);
            self.algorithm.after_idle();
        }
        self.algorithm.last_sent_us = microseconds(now);
    }

    fn publish_at(&mut self, now: Instant) {
        self.advance(now);
        self.algorithm.rto_us = self.rto.timeout.as_micros().min(u64::from(u32::MAX)) as u32;
        self.publish();
    }

    fn emit(&mut self, now: Instant, piece: Piece, pushed: bool) -> Segment {
        if self.is_reducing() {
            self.algorithm.prr_out += 1;
        }
        let rate = self.algorithm.sk_pacing_rate;
        if self.algorithm.sk_pacing_status != 0 {
            self.pacing.send(now, piece.len, rate, self.counters.segments_sent);
        }
        self.counters.segments_sent += 1;
        let mut segment = self.control(now, piece.seq);
        segment.len = piece.len;
        segment.flags.fin = piece.fin;
        segment.flags.psh = pushed;
        self.host_queue.enter(segment.packet_len());
        segment
    }

    /// A segment without data.
    pub(super) fn control(&self, now: Instant, seq: u64) -> Segment {
        Segment {
            seq,
            ack: self.peer_next,
            flags: Flags::ACK,
            window: OWN_WINDOW,
            timestamp: Some(self.timestamps.outgoing(now)),
            ..Segment::default()
        }
    }

    pub(super) fn send_ack(&mut self, now: Instant) -> Segment {
        self.output.ack = false;
        let segment = self.control(now, self.nxt);
        self.host_queue.enter(segment.packet_len());
        segment
    }

    /// Takes back the segment that was emitted last, because it did not leave the host. Returns
    /// whether the segment carried data.
    pub(super) fn take_back(&mut self, now: Instant, segment: &Segment) -> bool {
        if segment.end() == segment.seq || self.board.out() == 0 {
            return false;
        }
        if self.is_reducing() {
            self.algorithm.prr_out = self.algorithm.prr_out.saturating_sub(1);
        }
        self.pacing.unsend();
        let last = self.board.next() - 1;
        if self.stream.piece(last).seq == segment.seq && !self.board.record(last).sent_again {
            self.take_back_new(now, segment);
        } else {
            self.take_back_again(now, self.stream.segment_from(segment.seq));
        }
        true
    }

    fn take_back_new(&mut self, now: Instant, segment: &Segment) {
        self.board.unsend();
        self.rate.unsend();
        self.nxt = segment.seq;
        if segment.flags.fin {
            self.stream.fin = None;
        }
        self.counters.segments_sent -= 1;
        if self.tail_probe.end == Some(segment.end()) {
            self.tail_probe.end = None;
        }
        if self.board.out() == 0 {
            self.timer.clear();
            self.arm_persist(now);
        }
    }

    fn take_back_again(&mut self, now: Instant, number: u64) {
        if !self.board.is_out(number) {
            return;
        }
        self.board.forget_retransmission(number);
        if number == self.board.first && self.timer.is(TimerKind::Retransmission) {
            self.timer.set(TimerKind::Retransmission, now + LOCAL_RETRY);
        }
    }
}

/// The last window that the peer announced.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PeerWindow {
    bytes: u64,
    /// The largest window that was ever announced.
    pub(super) largest: u64,
}

impl PeerWindow {
    /// The position up to which data may be sent.
    pub(super) fn end(self, una: u64) -> u64 {
        una + self.bytes
    }

    /// The bytes that the peer has announced.
    pub(super) fn bytes(self) -> u64 {
        self.bytes
    }

    /// Takes the window of an acknowledgement that is not older than `una`, and returns whether the
    /// window has changed. A later acknowledgement may have overtaken a repeated one. So the window
    /// of a repeated acknowledgement counts only where it is larger, or zero. (RFC 9293 section
    /// 3.10.7.4 orders them by the peer's sequence number, which is constant here.)
    pub(super) fn update(&mut self, advances: bool, bytes: u64) -> bool {
        let changed = self.bytes != bytes;
        if !advances && bytes < self.bytes && bytes != 0 {
            return false;
        }
        self.bytes = bytes;
        self.largest = self.largest.max(bytes);
        debug_assert!(self.bytes <= self.largest);
        changed
    }
}

/// The number of segments at the start of a connection that are not paced. It is the first window,
/// as in Linux.
const UNPACED: u64 = 10;

/// The time at which the next segment may leave.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pacing {
    next_at: Instant,
    /// `next_at` before the last segment. It is restored where that segment does not leave.
    before: Instant,
    /// Whether a segment waits for `next_at`.
    waits: bool,
}

impl Pacing {
    /// Whether a segment may leave now; if not, [`Self::next_timeout`] gives the time.
    pub(super) fn may_send(&mut self, now: Instant) -> bool {
        self.waits = now < self.next_at;
        !self.waits
    }

    /// Counts a segment of `len` bytes, the `count`-th of the connection. Where it leaves late, the
    /// wait for the next segment is shorter, by at most half of a segment's time.
    pub(super) fn send(&mut self, now: Instant, len: u32, bytes_per_s: u64, count: u64) {
        self.before = self.next_at;
        let late = now.saturating_since(self.next_at);
        self.next_at = self.next_at.max(now);
        if bytes_per_s == 0 || bytes_per_s == u64::MAX || count < UNPACED {
            return;
        }
        let takes = Duration::from_nanos((u64::from(len) * 1_000_000_000).div_ceil(bytes_per_s));
        self.next_at += takes - late.min(takes / 2);
        debug_assert!(self.next_at >= self.before, "a segment takes time");
    }

    /// The earliest departure of the next segment.
    pub(super) fn next_at(&self) -> Instant {
        self.next_at
    }

    /// Takes back the last segment, which did not leave.
    pub(super) fn unsend(&mut self) {
        self.next_at = self.before;
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.waits.then_some(self.next_at)
    }
}
