//! Taking back reductions that were needless: Eifel (RFC 3522, RFC 4015), D-SACK (RFC 3708) and
//! F-RTO (RFC 5682).

use wakeai_connection::CongestionState;

use super::Sender;
use super::ack::Ack;
use super::stamped_before;
use super::transmit::Retransmission;

impl Sender {
    /// From here on a reduction can be taken back.
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

    /// Whether the acknowledgement answers what was sent before the first retransmission (Eifel).
    fn answers_original(&self) -> bool {
        match self.episode.first_retransmission {
            Some(first) => self.echoed != 0 && stamped_before(self.echoed, first),
            None => true, // nothing was sent again
        }
    }

    fn may_undo(&self) -> Option<Proof> {
        if !self.config.undo_spurious || self.episode.undo_marker.is_none() {
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
        self.rack.advanced = true; // what is out is judged anew
    }

    /// Recovery or Loss is over: for nothing, or for good.
    pub(super) fn end_recovery(&mut self) {
        if let Some(proof) = self.may_undo() {
            self.undo(proof);
        } else {
            self.rack.count_recovery();
        }
        self.change_state(CongestionState::Open);
    }

    /// All retransmissions were needless.
    pub(super) fn try_undo_by_dsack(&mut self) -> bool {
        let needless = self.config.undo_spurious
            && self.episode.undo_marker.is_some()
            && self.episode.undo_retransmissions == Some(0);
        if needless {
            self.rack.discount_recovery();
            self.undo(Proof::Dsack);
        }
        needless
    }

    /// In Recovery, a part is acknowledged, and by an answer to the first transmission: it was
    /// late, not lost. Says whether this acknowledgement is done with: retransmissions are still
    /// out, so new data may leave but nothing more is repaired.
    pub(super) fn try_undo_partly(&mut self) -> bool {
        let late = self.config.undo_spurious
            && self.episode.undo_marker.is_some()
            && self.answers_original();
        if !late {
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

    /// A timeout turns out to have been needless.
    fn undo_loss(&mut self, proof: Proof) {
        self.board.unlose_all();
        self.undo(proof);
        self.timeouts_in_a_row = 0;
        self.change_state(CongestionState::Open);
    }

    /// What an acknowledgement means after a timeout, and what may be sent upon it (RFC 5682
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
            // Step 3.b: something that was not sent again is acknowledged.
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

/// How a reduction was shown to be needless.
#[derive(Clone, Copy, Debug)]
enum Proof {
    /// An echoed timestamp from before the retransmission.
    Timestamps,
    /// D-SACKs for all retransmissions.
    Dsack,
    /// An acknowledgement of what was never sent again.
    NewData,
}
