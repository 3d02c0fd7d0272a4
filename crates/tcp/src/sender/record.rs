//! What is noted of one segment that is out.

use wakeai_units::Instant;

/// What a segment that is out has been through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Marks(pub(super) u8);

impl Marks {
    /// Selectively acknowledged.
    pub(super) const SACKED: u8 = 1;
    /// Taken for lost.
    pub(super) const LOST: u8 = 2;
    /// A retransmission of it is out.
    pub(super) const RETRANSMITTED: u8 = 4;
    /// It was sent more than once, so its acknowledgement is ambiguous (Karn).
    pub(super) const SENT_AGAIN: u8 = 8;

    pub(super) fn sacked(self) -> bool {
        self.0 & Self::SACKED != 0
    }

    pub(super) fn lost(self) -> bool {
        self.0 & Self::LOST != 0
    }

    pub(super) fn retransmitted(self) -> bool {
        self.0 & Self::RETRANSMITTED != 0
    }

    pub(super) fn sent_again(self) -> bool {
        self.0 & Self::SENT_AGAIN != 0
    }
}

/// One segment.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Record {
    /// When it left last.
    pub(super) sent_at: Instant,
    /// The number of its last packet among those of the connection (it may wrap).
    pub(super) packet: u32,
    pub(super) marks: Marks,
}
