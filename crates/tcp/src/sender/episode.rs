//! What is remembered of the congestion event that goes on.

/// The recovery or reduction that the connection is in, and what is needed to take it back.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Episode {
    /// `snd_nxt` when it began: it ends when this is acknowledged (RFC 6675's `RecoveryPoint`).
    pub(super) high: u64,
    /// `snd_una` when it began; `None`: it was taken back, or cannot be.
    pub(super) undo_marker: Option<u64>,
    /// Retransmissions of this episode that no D-SACK has shown to be needless yet; `None` before
    /// the first.
    pub(super) undo_retransmissions: Option<u32>,
    /// Our clock at the first retransmission.
    pub(super) first_retransmission: Option<u32>,
    /// The slow-start threshold before; 0 where it was given up.
    pub(super) prior_ssthresh: u32,
    /// In this recovery an acknowledgement has begun the retransmission timeout anew.
    pub(super) restarted_timer: bool,
    /// The timeout may have been spurious: new data tells (RFC 5682).
    pub(super) frto: bool,
}

impl Episode {
    /// A retransmission leaves.
    pub(super) fn count_retransmission(&mut self, stamp: u32) {
        self.first_retransmission.get_or_insert(stamp);
        self.undo_retransmissions = Some(self.undo_retransmissions.unwrap_or(0) + 1);
    }

    /// D-SACKs show so many retransmissions to have been needless.
    pub(super) fn discount_retransmissions(&mut self, needless: u32) {
        if let Some(count) = &mut self.undo_retransmissions {
            *count = count.saturating_sub(needless);
        }
    }
}
