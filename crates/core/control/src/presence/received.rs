//! A presence message that was authenticated and read.

use super::marks::Marks;
use super::{BootId, Challenge, Presence};
use crate::StationId;

/// A presence message, and beside it what every receiver looks at.
///
/// A simulation keeps a message until all stations have read it. While many stations become acquainted, most
/// messages come from incarnations that have not yet proved to be live. Their receivers look at nothing but the
/// head, so the heads of all kept messages remain in the processor's cache.
#[derive(Clone, Debug)]
pub(super) struct Received {
    pub(super) head: Head,
    pub(super) message: Presence,
}

/// Fields of a [`Presence`], and marks of its answers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    pub(super) bssid: [u8; 6],
    pub(super) station: StationId,
    pub(super) boot: BootId,
    pub(super) sequence: u64,
    pub(super) challenge: Challenge,
    pub(super) marks: Marks,
}

impl Received {
    pub(super) fn new(message: Presence) -> Self {
        let Presence { bssid, station, boot, sequence, challenge, .. } = message;
        let marks = Marks::of(&message.answers);
        let head = Head { bssid, station, boot, sequence, challenge, marks };
        Self { head, message }
    }
}
