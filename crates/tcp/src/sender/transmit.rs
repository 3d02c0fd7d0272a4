//! What leaves next.

use wakeai_units::Instant;

use super::{Phase, Sender};
use crate::segment::Segment;

/// What waits to leave, beside new data.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub(super) struct Output {
    pub(super) syn: bool,
    /// An acknowledgement without data.
    pub(super) ack: bool,
    /// Whatever the windows say.
    pub(super) forced: Option<Forced>,
    /// The host's queue was full: nothing until the next ACK or timeout.
    pub(super) blocked: bool,
    /// Whether lost segments may leave.
    pub(super) retransmission: Retransmission,
    /// `snd_nxt` when a tail loss probe left that is not answered.
    pub(super) probe_end: Option<u64>,
    /// It was a segment that had left before.
    pub(super) probe_repeats: bool,
}

/// What a timer sends, windows or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Forced {
    /// The oldest segment, after a timeout.
    Head,
    /// RFC 8985 section 7.3.
    TailLossProbe,
    /// An old acknowledgement, to which the peer answers with its window.
    WindowProbe,
}

/// Whether lost segments leave again upon what came last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Retransmission {
    #[default]
    Nothing,
    Lost,
    /// New data first: its fate tells whether the timeout was needless (F-RTO).
    AfterNew,
}

impl Sender {
    /// A segment that leaves now.
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

    /// No new data was there to send after a timeout: repair goes on as usual (RFC 5682 section
    /// 3.1, step 2.b).
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

    /// New data where the peer has room for some, whatever the congestion window says; otherwise
    /// the last segment again.
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

    /// The oldest segment that is lost and waits, where the window has room.
    fn send_lost(&mut self, now: Instant) -> Option<Segment> {
        let segment = self.board.next_waiting()?;
        self.may_send_again(now, segment).then(|| self.send_again(now, segment, false))
    }

    /// Whether the windows, pacing and the host's queue let a retransmission go.
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
