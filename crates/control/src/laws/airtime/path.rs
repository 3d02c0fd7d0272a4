//! The path without queues, as far as a station and its peers can tell together.

use wakeai_units::Duration;

use crate::{PeerView, RttView};

/// A station and two peers are the fewest whose middle says something.
const ENOUGH: usize = 3;

/// The RTT of a tick, and what of it is queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Path {
    /// Without queues.
    pub(super) min: Duration,
    /// What queues add.
    pub(super) growth: Duration,
    /// Both.
    pub(super) current: Duration,
}

impl Path {
    /// A station that began to send in a queue of others takes it for the path: its minimum is too high,
    /// and the growth that it sees too low. Most of what grows is the access point's queue, which
    /// is the same for all, so who sees less than the middle of what all see has the rest in its
    /// minimum.
    pub(super) fn of(rtt: RttView, peers: &[PeerView]) -> Self {
        let common = common_growth(peers, Some(rtt.growth)).unwrap_or(rtt.growth);
        let min = rtt.min.min(rtt.current.saturating_sub(common).max(rtt.min / 4));
        Self { min, growth: rtt.current.saturating_sub(min), current: rtt.current }
    }
}

/// The middle of the growths that senders see; `None` where too few tell theirs.
pub(crate) fn common_growth(peers: &[PeerView], own: Option<Duration>) -> Option<Duration> {
    let tell = |peer: &&PeerView| {
        peer.sending && peer.min_rtt.is_some() && peer.delivery_rate > wakeai_units::Rate::ZERO
    };
    let mut all: Vec<Duration> = peers.iter().filter(tell).map(|peer| peer.growth).collect();
    all.extend(own);
    if all.len() < ENOUGH {
        return None;
    }
    let middle = all.len() / 2;
    Some(*all.select_nth_unstable(middle).1)
}
