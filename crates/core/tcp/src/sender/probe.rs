//! Probes for the loss of a flight's tail (tail loss probe, TLP, RFC 8985 section 7) and probes of
//! a closed window.

use wakeai_connection::{CongestionState, Signal};
use wakeai_units::{Duration, Instant};

use super::Sender;
use super::ack::Ack;
use super::timers::{SLACK, TimerKind};
use super::transmit::Forced;

impl Sender {
    /// Arms the tail loss timer where a probe may be sent, and returns whether it did. The timer
    /// expires in two RTTs. For a single segment it takes longer, because the acknowledgement of a
    /// single segment may be delayed. It never expires later than the retransmission timeout. With
    /// `anew` that timeout counts from now, and otherwise from the transmission of the oldest
    /// segment.
    pub(super) fn schedule_probe(&mut self, now: Instant, anew: bool) -> bool {
        let may_probe = matches!(self.state, CongestionState::Open | CongestionState::Cwr);
        if !self.rack.is_enabled() || !may_probe || self.board.out() == 0 {
            return false;
        }
        let smoothed = Duration::from_micros(u64::from(self.rtt.smoothed_us()));
        let patience = if smoothed.is_zero() {
            self.config.initial_timeout
        } else if self.board.out() == 1 {
            smoothed * 2 + self.config.min_timeout
        } else {
            smoothed * 2 + SLACK
        };
        let timeout_at = if anew { now + self.timeout } else { self.head_times_out_at() };
        let mut at = now + patience;
        if timeout_at > now {
            at = at.min(timeout_at);
        }
        self.timer.set(TimerKind::TailLoss, at);
        true
    }

    /// Sends a probe (new data or the last segment) that makes the peer acknowledge the end of what
    /// was sent. Only one probe is out at a time.
    pub(super) fn handle_tail_loss_timeout(&mut self, now: Instant) {
        if self.output.probe_end.is_none() {
            self.output.forced = Some(Forced::TailLossProbe);
        } else {
            self.rearm_timeout(now);
        }
    }

    /// Notes that a probe was sent.
    pub(super) fn note_probe(&mut self, now: Instant, repeats: bool) {
        self.counters.tail_loss_probes += 1;
        self.output.probe_repeats = repeats;
        self.output.probe_end = Some(self.nxt);
        self.timer.clear();
        self.rearm_timeout(now);
    }

    /// Handles an acknowledgement of the probe (RFC 8985 section 7.4). Where the probe has repaired
    /// a loss, the window is reduced.
    pub(super) fn judge_probe(&mut self, acknowledged: u64, ack: &Ack) {
        let Some(end) = self.output.probe_end else { return };
        if acknowledged < end {
            return;
        }
        if !self.output.probe_repeats || ack.dsack_of_probe {
            self.output.probe_end = None;
        } else if acknowledged > end {
            self.counters.tail_losses += 1;
            self.begin_reduction();
            self.change_state_upon(CongestionState::Cwr, Some(Signal::TailLossProbe));
            self.keep_open();
        } else if ack.is_duplicate() && !ack.sacked {
            self.output.probe_end = None; // both copies arrived
        }
    }

    /// Arms the timer of the next window probe.
    pub(super) fn arm_persist(&mut self, now: Instant) {
        let base = self.timeout.max(self.config.min_timeout);
        let wait = base.saturating_mul(1 << self.timer.persist_backoff.min(32));
        self.timer.set(TimerKind::Persist, now + wait.min(self.config.max_timeout));
    }

    /// Handles an acknowledgement that arrives while no data is outstanding.
    pub(super) fn restart_persist(&mut self, now: Instant) {
        if !self.timer.is(TimerKind::Persist) {
            return;
        }
        if self.window_takes_more() {
            self.timer.persist_backoff = 0;
            self.timer.clear();
        } else {
            self.arm_persist(now);
        }
    }

    pub(super) fn handle_persist_timeout(&mut self, now: Instant) {
        self.timer.clear();
        if self.board.out() > 0
            || !self.has_new_data() && self.stream.next_piece(self.nxt).is_none()
        {
            self.timer.window_probes = 0;
            self.timer.persist_backoff = 0;
            return;
        }
        if self.timer.window_probes >= self.config.retries {
            self.fail();
        } else if !self.window_takes_more() {
            self.output.forced = Some(Forced::WindowProbe);
            self.timer.window_probes += 1;
            self.timer.persist_backoff += 1;
            self.arm_persist(now);
        }
    }
}
