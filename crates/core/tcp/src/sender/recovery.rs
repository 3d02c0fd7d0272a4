//! The congestion state machine: what follows from losses and timeouts, and how a reduction that was spurious is
//! undone: by Eifel (RFC 3522, RFC 4015), by D-SACK (RFC 3708) and by F-RTO (RFC 5682). The window during a
//! recovery (PRR, RFC 6937) is computed by the algorithm; its counts begin here.

use wakeai_connection::CongestionState;
use wakeai_units::Instant;

use super::acknowledgement::Ack;
use super::{Retransmission, Sender};

/// The recovery or reduction that the connection is in, and the state that is needed to undo it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Episode {
    /// `snd_nxt` at the start of the episode. The episode ends when this position is acknowledged
    /// (RFC 6675's `RecoveryPoint`).
    pub(super) high: u64,
    /// `snd_una` at the start of the episode; `None` where the reduction was undone or cannot be
    /// undone.
    pub(super) undo_marker: Option<u64>,
    /// Retransmissions of this episode that no D-SACK has shown to be spurious; `None` before the
    /// first.
    pub(super) undo_retransmissions: Option<u32>,
    /// The timestamp clock at the first retransmission.
    pub(super) first_retransmission: Option<u32>,
    /// The slow-start threshold before the episode; 0 where it is not to be restored.
    pub(super) prior_ssthresh: u32,
    /// Whether an acknowledgement has restarted the retransmission timeout in this recovery.
    pub(super) restarted_timer: bool,
    /// Whether the timeout may have been spurious, which new data will show (RFC 5682).
    pub(super) frto: bool,
}

impl Episode {
    /// Counts a retransmission.
    pub(super) fn count_retransmission(&mut self, stamp: u32) {
        self.first_retransmission.get_or_insert(stamp);
        self.undo_retransmissions = Some(self.undo_retransmissions.unwrap_or(0) + 1);
    }

    /// Subtracts retransmissions that D-SACKs showed to be spurious.
    pub(super) fn discount_retransmissions(&mut self, needless: u32) {
        if let Some(count) = &mut self.undo_retransmissions {
            *count = count.saturating_sub(needless);
        }
    }
}

/// The state machine.
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
            if self.board.lost_out == 0 {
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
        if self.board.lost_out == 0 {
            self.try_to_open();
            return false;
        }
        self.enter_recovery();
        true
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
        let left = self.board.sacked_out + self.board.lost_out > 0;
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
        self.board.retransmitted_out > 0
            || self.board.out() > 0 && self.board.record(self.board.first).sent_again
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
        self.tail_probe.end = None;
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
            || (self.state == CongestionState::Loss && self.rto.in_a_row == 0)
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
            self.rack.doubt_reordering(self.board.sacked_out);
        }
        self.change_state(CongestionState::Loss);
        self.episode.high = self.nxt;
        self.tail_probe.end = None;
        // RFC 5682 section 3.1, step 1.
        self.episode.frto = self.config.is_linux() && (!was_recovering || self.rto.in_a_row > 0);
    }
}

/// Undoing.
impl Sender {
    /// Begins an episode that can be undone.
    pub(super) fn begin_undo(&mut self) {
        let probe = u32::from(self.tail_probe.end.is_some() && self.tail_probe.repeats);
        let out = self.board.retransmitted_out + probe;
        self.episode.undo_retransmissions = (out > 0).then_some(out);
        self.episode.undo_marker = Some(self.una);
        self.algorithm.undo_marker = (self.una as u32).max(1);
    }

    pub(super) fn clear_undo_marker(&mut self) {
        self.episode.undo_marker = None;
        self.algorithm.undo_marker = 0;
    }

    /// Whether the acknowledgement answers a segment from before the first retransmission (Eifel).
    fn answers_original(&self) -> bool {
        match self.episode.first_retransmission {
            Some(first) => self.timestamps.answers_before(first),
            None => true, // nothing was sent again
        }
    }

    /// Whether the episode can be undone. The classic sender does not undo spurious reductions.
    fn is_undoable(&self) -> bool {
        self.config.is_linux() && self.episode.undo_marker.is_some()
    }

    /// The proof that the reduction was spurious, if there is one.
    fn may_undo(&self) -> Option<Proof> {
        if !self.is_undoable() {
            return None;
        }
        if self.episode.undo_retransmissions == Some(0) {
            return Some(Proof::Dsack);
        }
        self.answers_original().then_some(Proof::Timestamps)
    }

    fn undo(&mut self, proof: Proof) {
        match proof {
            Proof::Timestamps => self.counters.undone_by_timestamps += 1,
            Proof::Dsack => self.counters.undone_by_dsack += 1,
            Proof::NewData => self.counters.undone_by_frto += 1,
        }
        if self.episode.prior_ssthresh != 0 {
            self.publish();
            let algorithm = &mut self.algorithm;
            algorithm.snd_cwnd = algorithm.undo_cwnd();
            algorithm.snd_ssthresh = algorithm.snd_ssthresh.max(self.episode.prior_ssthresh);
        }
        self.clear_undo_marker();
        self.rack.advanced = true; // the segments that are out are judged again
    }

    /// Ends Recovery or Loss. Undoes the reduction where it was spurious.
    pub(super) fn end_recovery(&mut self) {
        if let Some(proof) = self.may_undo() {
            self.undo(proof);
        } else {
            self.rack.count_recovery();
        }
        self.change_state(CongestionState::Open);
    }

    /// Undoes the reduction where D-SACKs showed all retransmissions to be spurious.
    pub(super) fn try_undo_by_dsack(&mut self) -> bool {
        let needless = self.is_undoable() && self.episode.undo_retransmissions == Some(0);
        if needless {
            self.rack.discount_recovery();
            self.undo(Proof::Dsack);
        }
        needless
    }

    /// Undoes a Recovery at a partial acknowledgement that answers the first transmission, because
    /// that transmission was late and not lost. While retransmissions are still out, the Recovery
    /// goes on and the result is `true`: new data may leave, but nothing is retransmitted.
    pub(super) fn try_undo_partly(&mut self) -> bool {
        if !self.is_undoable() || !self.answers_original() {
            return false;
        }
        self.check_reordering(self.board.first);
        if self.board.retransmitted_out > 0 {
            return true;
        }
        if !self.any_retransmission_out() {
            self.episode.first_retransmission = None;
        }
        self.board.unlose_all();
        self.undo(Proof::Timestamps);
        self.keep_open();
        false
    }

    /// Undoes a spurious timeout.
    fn undo_loss(&mut self, proof: Proof) {
        self.board.unlose_all();
        self.undo(proof);
        self.rto.in_a_row = 0;
        self.change_state(CongestionState::Open);
    }

    /// Handles an acknowledgement after a timeout. Returns which segments may then leave (RFC 5682
    /// section 3.1, the SACK-enhanced version).
    pub(super) fn process_loss(&mut self, ack: &Ack) -> Retransmission {
        let recovered = self.una >= self.episode.high;
        if ack.advanced
            && let Some(proof) = self.may_undo()
        {
            self.undo_loss(proof);
            return Retransmission::Nothing;
        }
        if self.episode.frto {
            // Step 3.b: a segment that was never retransmitted is acknowledged.
            if ack.original_delivered {
                self.undo_loss(Proof::NewData);
                return Retransmission::Nothing;
            }
            if self.nxt > self.episode.high {
                if ack.sacked || ack.is_duplicate() {
                    self.episode.frto = false; // step 3.a
                }
            } else if ack.advanced && !recovered {
                self.episode.high = self.nxt;
                if self.has_new_data() {
                    return Retransmission::AfterNew; // step 2.b
                }
                self.episode.frto = false;
            }
        }
        if recovered {
            self.end_recovery();
            return Retransmission::Nothing;
        }
        Retransmission::Lost
    }
}

/// The proof that a reduction was spurious.
#[derive(Clone, Copy, Debug)]
enum Proof {
    /// An echoed timestamp from before the retransmission.
    Timestamps,
    /// D-SACKs for all retransmissions.
    Dsack,
    /// An acknowledgement of data that was never retransmitted.
    NewData,
}
