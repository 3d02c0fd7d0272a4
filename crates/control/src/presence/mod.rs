//! Who else is on this access point. `docs/concepts/presence.md` gives the message format and
//! what it does and does not protect from.
//!
//! [`Presence`] is one message, [`Codec`] writes, reads and authenticates it, [`PeerTable`] keeps
//! who is live, [`Challenges`] and [`Answers`] prove liveness, [`Schedule`] says when to send.

mod challenge;
mod codec;
mod counters;
mod endpoint;
mod schedule;
mod table;

pub use challenge::{Answers, Challenge, Challenges};
pub use codec::{Codec, DecodeError, MESSAGE_LEN, Presence};
pub use counters::PresenceCounters;
pub use endpoint::{Announcement, Endpoint, PeerChange};
use schedule::longest_interval;
pub use schedule::{AIR_PARTS, Schedule, airtime};
pub use table::{PeerTable, Verdict};

/// Random bytes that a station draws at each start: one incarnation of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BootId(pub [u8; 16]);
