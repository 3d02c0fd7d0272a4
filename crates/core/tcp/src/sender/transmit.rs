//! The choice of the next segment, the peer's window, and pacing.

use wakeai_units::{Duration, Instant};

use super::{Phase, Sender};
use crate::segment::Segment;

/// The output, besides new data, that waits to be sent.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub(super) struct Output {
    pub(super) syn: bool,
    /// An acknowledgement without data.
    pub(super) ack: bool,
    /// A segment that is sent regardless of the windows.
    pub(super) forced: Option<Forced>,
    /// Whether the host's queue was full. Nothing then leaves until the next ACK or timeout.
    pub(super) blocked: bool,
    /// Whether lost segments may leave.
    pub(super) retransmission: Retransmission,
    /// `snd_nxt` when the unanswered tail loss probe was sent.
    pub(super) probe_end: Option<u64>,
    /// Whether that probe was a retransmission.
    pub(super) probe_repeats: bool,
}

/// A segment that a timer sends regardless of the windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Forced {
    /// The oldest segment, after a timeout.
    Head,
    /// The tail loss probe (RFC 8985 section 7.3).
    TailLossProbe,
    /// A segment with an old sequence number, which the peer answers with its window.
    WindowProbe,
}

/// Whether lost segments are retransmitted after the last acknowledgement or timeout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Retransmission {
    #[default]
    Nothing,
    Lost,
    /// Lost segments are retransmitted after new data. The acknowledgement of the new data shows
    /// whether the timeout was spurious (F-RTO).
    AfterNew,
}

impl Sender {
    /// Returns the next segment that may leave now.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Segment> {
        self.pacing.stop_waiting();
        match self.phase {
            Phase::Opening => return self.output.syn.then(|| self.send_syn(now)),
            Phase::Established => {}
            Phase::Closed => return self.output.ack.then(|| self.send_ack(now)),
            Phase::Idle | Phase::Failed => return None,
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
                let head = self.board.first();
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
        if !self.may_send(now, 0) {
            return None;
        }
        let segment = self.send_piece(now, piece);
        self.validate_window();
        Some(segment)
    }
}

/// The last window that the peer announced.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PeerWindow {
    bytes: u64,
    largest: u64,
}

impl PeerWindow {
    /// The position up to which data may be sent.
    pub(super) fn end(self, una: u64) -> u64 {
        una + self.bytes
    }

    /// The largest window that was ever announced.
    pub(super) fn largest(self) -> u64 {
        self.largest
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
    }

    /// Takes back the last segment, which did not leave.
    pub(super) fn unsend(&mut self) {
        self.next_at = self.before;
    }

    pub(super) fn stop_waiting(&mut self) {
        self.waits = false;
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.waits.then_some(self.next_at)
    }
}
