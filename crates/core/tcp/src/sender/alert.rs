//! The congestion state machine, which reacts to an acknowledgement that may show a loss or
//! reordering.

use wakeai_connection::CongestionState;
use wakeai_units::Instant;

use super::Sender;
use super::ack::Ack;
use super::counting::Counting;
use super::transmit::Retransmission;
use crate::segment::SackBlocks;

impl Sender {
    /// Moves between the states Open, Disorder, CWR, Recovery and Loss. Decides whether
    /// retransmissions may leave after this acknowledgement. As in the kernel, the end of the
    /// present reduction is handled first, and then the state that remains.
    pub(super) fn alert(&mut self, now: Instant, ack: &mut Ack) {
        self.output.retransmission = Retransmission::Nothing;
        if self.state == CongestionState::Open {
            self.episode.first_retransmission = None;
        } else if self.una >= self.episode.high {
            self.end_reduction();
        }
        let goes_on = match self.state {
            CongestionState::Recovery => self.go_on_in_recovery(now, ack),
            CongestionState::Loss => self.go_on_in_loss(now, ack) && self.look_for_losses(now, ack),
            CongestionState::Open | CongestionState::Disorder | CongestionState::Cwr => {
                self.look_for_losses(now, ack)
            }
        };
        if goes_on {
            self.output.retransmission = Retransmission::Lost;
        }
    }

    /// Ends the reduction where everything that was out when it began is acknowledged.
    fn end_reduction(&mut self) {
        match self.state {
            CongestionState::Cwr if self.una != self.episode.high => {
                self.change_state(CongestionState::Open);
            }
            CongestionState::Recovery => self.end_recovery(),
            _ => {}
        }
    }

    fn go_on_in_recovery(&mut self, now: Instant, ack: &mut Ack) -> bool {
        if ack.advanced && self.try_undo_partly() {
            return false;
        }
        if self.try_undo_by_dsack() {
            self.try_to_open();
        }
        self.find_losses(now, ack);
        if self.state != CongestionState::Recovery {
            // The reduction was undone, but segments are lost: another recovery begins.
            if self.board.lost_out() == 0 {
                return false;
            }
            self.enter_recovery();
        }
        true
    }

    /// Handles an acknowledgement in Loss. Returns `true` where the timeout was undone, or where
    /// retransmissions were lost as well. Losses are then handled as in the other states.
    fn go_on_in_loss(&mut self, now: Instant, ack: &mut Ack) -> bool {
        let retransmission = self.process_loss(ack);
        self.output.retransmission = retransmission;
        self.find_losses(now, ack);
        self.state == CongestionState::Open || ack.retransmission_lost
    }

    fn look_for_losses(&mut self, now: Instant, ack: &mut Ack) -> bool {
        if self.state <= CongestionState::Disorder {
            self.try_undo_by_dsack();
        }
        self.find_losses(now, ack);
        if self.board.lost_out() == 0 {
            self.try_to_open();
            return false;
        }
        self.enter_recovery();
        true
    }

    fn find_losses(&mut self, now: Instant, ack: &mut Ack) {
        if self.board.out() == 0 {
            return;
        }
        if !self.rack.is_enabled() {
            self.judge_by_count();
        } else if std::mem::take(&mut self.rack.advanced) {
            let retransmitted = self.board.retransmitted_out();
            let (_, undecided) = self.judge_by_time(now);
            ack.sets_timer &= !undecided;
            if self.board.retransmitted_out() < retransmitted {
                ack.retransmission_lost = true;
                self.counters.lost_retransmits +=
                    u64::from(retransmitted - self.board.retransmitted_out());
            }
        }
    }

    /// Changes to Open, or to Disorder where selectively acknowledged or retransmitted segments are
    /// still out.
    pub(super) fn try_to_open(&mut self) {
        if !self.any_retransmission_out() {
            self.episode.first_retransmission = None;
        }
        if self.state != CongestionState::Cwr {
            self.keep_open();
        }
    }

    pub(super) fn keep_open(&mut self) {
        let left = self.board.sacked_out() + self.board.lost_out() > 0;
        let next = if left || self.any_retransmission_out() {
            CongestionState::Disorder
        } else {
            CongestionState::Open
        };
        if next != self.state {
            self.change_state(next);
            self.episode.high = self.nxt;
        }
    }

    pub(super) fn any_retransmission_out(&self) -> bool {
        self.board.retransmitted_out() > 0
            || self.board.out() > 0 && self.board.record(self.board.first()).marks.sent_again()
    }

    /// The slow-start threshold that undoing a reduction would restore.
    pub(super) fn current_ssthresh(&self) -> u32 {
        let sock = &*self.algorithm;
        if self.is_reducing() {
            sock.snd_ssthresh
        } else {
            sock.snd_ssthresh.max(sock.snd_cwnd / 2 + sock.snd_cwnd / 4)
        }
    }

    /// Begins a reduction of the window.
    pub(super) fn begin_reduction(&mut self) {
        self.publish();
        self.episode.high = self.nxt;
        self.output.probe_end = None;
        let algorithm = &mut self.algorithm;
        algorithm.prior_cwnd = algorithm.snd_cwnd;
        algorithm.prr_delivered = 0;
        algorithm.prr_out = 0;
        algorithm.snd_ssthresh = algorithm.ssthresh();
    }

    pub(super) fn enter_recovery(&mut self) {
        self.episode.prior_ssthresh = 0;
        self.episode.restarted_timer = false;
        self.begin_undo();
        if !self.is_reducing() {
            self.episode.prior_ssthresh = self.current_ssthresh();
            self.begin_reduction();
        }
        self.change_state(CongestionState::Recovery);
    }

    /// Reduces the window because of congestion in the host's own queue.
    pub(super) fn enter_cwr(&mut self) {
        self.episode.prior_ssthresh = 0;
        if self.state < CongestionState::Cwr {
            self.clear_undo_marker();
            self.begin_reduction();
            self.change_state(CongestionState::Cwr);
        }
    }

    /// Handles the expiry of the retransmission timer. All segments then count as lost, except
    /// those that RACK (RFC 8985) finds too recent.
    pub(super) fn enter_loss(&mut self, now: Instant) {
        let was_recovering = self.state >= CongestionState::Recovery;
        self.lose_all(now);
        // The window is reduced only once per window of data.
        if self.state <= CongestionState::Disorder
            || self.una >= self.episode.high
            || (self.state == CongestionState::Loss && self.timeouts_in_a_row == 0)
        {
            self.episode.prior_ssthresh = self.current_ssthresh();
            self.publish();
            let algorithm = &mut self.algorithm;
            algorithm.prior_cwnd = algorithm.snd_cwnd;
            algorithm.snd_ssthresh = algorithm.ssthresh();
            self.begin_undo();
        }
        self.algorithm.snd_cwnd = self.board.in_flight() + 1;
        if self.state <= CongestionState::Disorder {
            self.rack.doubt_reordering(self.board.sacked_out());
        }
        self.change_state(CongestionState::Loss);
        self.episode.high = self.nxt;
        self.output.probe_end = None;
        // RFC 5682 section 3.1, step 1.
        self.episode.frto =
            self.config.undo_spurious && (!was_recovering || self.timeouts_in_a_row > 0);
    }

    fn lose_all(&mut self, now: Instant) {
        let first = self.board.first();
        if self.board.out() > 0 && self.board.record(first).marks.sacked() {
            // The receiver discarded data that it had selectively acknowledged (RFC 2018 section
            // 8).
            self.board.unsack_all();
            self.last_sacks = SackBlocks::NONE;
            self.counting = Counting::default();
        }
        let mut from = first;
        while let Some(segment) = self.board.next_unsacked(from, self.board.next()) {
            let sent_at = self.board.record(segment).sent_at;
            let is_recent = self.rack.is_enabled() && sent_at + self.rack.rtt() > now;
            if (segment == first || !is_recent) && self.board.lose(segment) {
                self.lost += 1;
            }
            from = segment + 1;
        }
    }
}
