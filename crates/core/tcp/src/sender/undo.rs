//! Undoing spurious reductions: Eifel (RFC 3522, RFC 4015), D-SACK (RFC 3708) and
//! F-RTO (RFC 5682).

use wakeai_connection::CongestionState;

use super::Sender;
use super::ack::Ack;
use super::stamped_before;
use super::transmit::Retransmission;

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

impl Sender {
    /// Begins an episode that can be undone.
    pub(super) fn begin_undo(&mut self) {
        let probe = u32::from(self.output.probe_end.is_some() && self.output.probe_repeats);
        let out = self.board.retransmitted_out() + probe;
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
            Some(first) => self.echoed != 0 && stamped_before(self.echoed, first),
            None => true, // nothing was sent again
        }
    }

    /// Whether the episode can be undone.
    fn is_undoable(&self) -> bool {
        self.config.undo_spurious && self.episode.undo_marker.is_some()
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
        self.check_reordering(self.board.first());
        if self.board.retransmitted_out() > 0 {
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
        self.timeouts_in_a_row = 0;
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
