//! The live peers.

use std::collections::BTreeMap;

use wakeai_units::Instant;

use super::{BootId, Presence};
use crate::{PeerView, StationId};

/// A peer is gone after this many of its announced intervals without a message…
const LIVE_INTERVALS: u64 = 3;
/// … but until this many a next message of the same incarnation brings it back without proof:
/// where 40 stations contend, a third of all broadcasts is lost.
const DORMANT_INTERVALS: u64 = 12;

/// What the table did with an authentic message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Of a live peer: taken in.
    Updated,
    /// A peer is live from now on (new, or back after it had aged out).
    Joined,
    /// A known peer has a new incarnation, which replaces this one.
    Restarted(BootId),
    /// A sequence number that is not above the last one.
    Replayed,
    /// Of an incarnation that has not proved to be live.
    Unproven,
    /// There is no room for one more.
    Full,
}

struct Peer {
    boot: BootId,
    sequence: u64,
    heard: Instant,
    last: Presence,
    live: bool,
}

impl Peer {
    fn silent_for(&self, now: Instant, intervals: u64) -> bool {
        now.saturating_since(self.heard) > self.last.interval.saturating_mul(intervals)
    }
}

/// Peers by station id, at most a fixed number.
///
/// Order of calls: [`PeerTable::expire`], then [`PeerTable::hear`] for each message.
pub struct PeerTable {
    limit: usize,
    peers: BTreeMap<StationId, Peer>,
}

impl PeerTable {
    /// A table for at most `limit` peers.
    pub fn new(limit: usize) -> Self {
        Self { limit, peers: BTreeMap::new() }
    }

    /// Takes an authentic message of this access point. `proven` says whether it proves its
    /// incarnation to be live; a message of the incarnation at hand needs no proof.
    pub fn hear(&mut self, now: Instant, message: Presence, proven: bool) -> Verdict {
        let full = self.peers.len() >= self.limit;
        let Some(peer) = self.peers.get_mut(&message.station) else {
            return match (proven, full) {
                (false, _) => Verdict::Unproven,
                (true, true) => Verdict::Full,
                (true, false) => {
                    self.insert(now, message);
                    Verdict::Joined
                }
            };
        };
        if peer.boot == message.boot {
            if message.sequence <= peer.sequence {
                return Verdict::Replayed;
            }
            let was_live = peer.live;
            self.insert(now, message);
            return if was_live { Verdict::Updated } else { Verdict::Joined };
        }
        if !proven {
            return Verdict::Unproven;
        }
        let old = peer.boot;
        self.insert(now, message);
        Verdict::Restarted(old)
    }

    fn insert(&mut self, now: Instant, message: Presence) {
        let peer = Peer {
            boot: message.boot,
            sequence: message.sequence,
            heard: now,
            last: message,
            live: true,
        };
        self.peers.insert(peer.last.station, peer);
    }

    /// Ages the table. `left` hears who is no longer live, `dropped` which incarnations are
    /// forgotten, so that only a new proof brings them back.
    pub fn expire(
        &mut self,
        now: Instant,
        mut left: impl FnMut(StationId),
        mut dropped: impl FnMut(BootId),
    ) {
        self.peers.retain(|id, peer| {
            if peer.live && peer.silent_for(now, LIVE_INTERVALS) {
                peer.live = false;
                left(*id);
            }
            let keep = !peer.silent_for(now, DORMANT_INTERVALS);
            if !keep {
                dropped(peer.boot);
            }
            keep
        });
    }

    /// The live peers, by id.
    pub fn live(&self, now: Instant) -> impl Iterator<Item = PeerView> {
        self.peers.values().filter(|peer| peer.live).map(move |peer| PeerView {
            station: peer.last.station,
            interval: peer.last.interval,
            sending: peer.last.sending,
            delivery_rate: peer.last.delivery_rate,
            max_rate: peer.last.max_rate,
            link_rate: peer.last.link_rate,
            min_rtt: peer.last.min_rtt,
            growth: peer.last.growth,
            age: now.saturating_since(peer.heard),
        })
    }

    /// All that are remembered, live or lately so.
    pub fn len(&self) -> usize {
        self.peers.len()
    }

    /// Whether nobody is remembered.
    pub fn is_empty(&self) -> bool {
        self.peers.is_empty()
    }
}
