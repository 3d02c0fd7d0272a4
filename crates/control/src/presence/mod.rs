//! Who else is on this access point. `docs/concepts/presence.md` gives the message format and
//! what it does and does not protect from.

mod counters;

pub use counters::PresenceCounters;
