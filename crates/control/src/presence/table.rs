//! The table of peers, as their presence messages describe them.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use wakeai_units::{Duration, Instant};

use super::{BootId, Presence};
use crate::{PeerView, StationId};

/// A peer is no longer live after a silence of more than this many of its announced intervals.
const LIVE_INTERVALS: u64 = 3;
/// A peer is removed from the table after a silence of more than this many of its intervals.
/// Between `LIVE_INTERVALS` and this limit the peer is dormant: the next message of the same
/// incarnation (the station has not restarted) makes it live again without a new proof. This is
/// needed because broadcasts are not retransmitted, and many of them collide where many stations
/// contend.
const DORMANT_INTERVALS: u64 = 12;
/// The upper limit of both silences, whatever interval the peer announces. A member of the group
/// can invent stations with long intervals. This limit removes them from the table.
const DORMANT_FOR: Duration = Duration::from_secs(300);

/// The effect of an authentic message on the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The message has updated a live peer.
    Updated,
    /// The peer is live from now on. It is new, or it was dormant.
    Joined,
    /// The peer has restarted. The boot id names the earlier incarnation, which the new incarnation
    /// has replaced.
    Restarted(BootId),
    /// The sequence number of the message is not above the number of an earlier message.
    Replayed,
    /// The incarnation of the message has not proved to be live.
    Unproven,
    /// The message is of a new peer, and the table is full.
    Full,
}

struct Peer {
    heard: Instant,
    last: Presence,
    live: bool,
    /// The sequence number of the peer's last query to the fleet; zero before the first query.
    queried: u64,
}

impl Peer {
    fn silent_for(&self, now: Instant, intervals: u64) -> bool {
        let span = self.last.interval.saturating_mul(intervals).min(DORMANT_FOR);
        now.saturating_since(self.heard) > span
    }
}

/// The live and the dormant peers, by station id. Their number has a limit.
///
/// Order of calls: [`PeerTable::expire`] at each tick. For each message, [`PeerTable::expire_one`]
/// and then [`PeerTable::hear`] or [`PeerTable::query`].
pub(crate) struct PeerTable {
    limit: usize,
    peers: BTreeMap<StationId, Peer>,
}

impl PeerTable {
    /// A table for at most `limit` peers.
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, peers: BTreeMap::new() }
    }

    /// Takes an authentic message of this access point. `proven` says whether the message proves
    /// that its incarnation is live. The message of an incarnation in the table needs no proof.
    pub(crate) fn hear(&mut self, now: Instant, message: Presence, proven: bool) -> Verdict {
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
        if peer.last.boot == message.boot {
            if message.sequence <= peer.last.sequence {
                return Verdict::Replayed;
            }
            let (was_live, queried) = (peer.live, peer.queried);
            *peer = Peer { heard: now, last: message, live: true, queried };
            return if was_live { Verdict::Updated } else { Verdict::Joined };
        }
        if !proven {
            return Verdict::Unproven;
        }
        let old = peer.last.boot;
        self.insert(now, message);
        Verdict::Restarted(old)
    }

    /// Takes a query of the incarnation `boot` of `station`. The result is [`Verdict::Updated`]
    /// where the query is new and the incarnation is in the table. A query does not make a dormant
    /// peer live.
    pub(crate) fn query(&mut self, station: StationId, boot: BootId, sequence: u64) -> Verdict {
        let peer = self.peers.get_mut(&station).filter(|peer| peer.last.boot == boot);
        let Some(peer) = peer else { return Verdict::Unproven };
        if sequence <= peer.last.sequence.max(peer.queried) {
            return Verdict::Replayed;
        }
        peer.queried = sequence;
        Verdict::Updated
    }

    fn insert(&mut self, now: Instant, message: Presence) {
        let peer = Peer { heard: now, last: message, live: true, queried: 0 };
        self.peers.insert(peer.last.station, peer);
    }

    /// Removes silent peers. Calls `left` for each peer that is no longer live, and `dropped` for
    /// each incarnation that is removed. A removed incarnation needs a new proof to come back.
    pub(crate) fn expire(
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
                dropped(peer.last.boot);
            }
            keep
        });
    }

    /// Removes `station` where it is due to be removed. Calls `left` and `dropped` as
    /// [`PeerTable::expire`] does. A dormant peer stays, because the message that is about to be
    /// read makes it live again.
    pub(crate) fn expire_one(
        &mut self,
        now: Instant,
        station: StationId,
        left: impl FnOnce(StationId),
        dropped: impl FnOnce(BootId),
    ) {
        let Entry::Occupied(entry) = self.peers.entry(station) else { return };
        if !entry.get().silent_for(now, DORMANT_INTERVALS) {
            return;
        }
        let peer = entry.remove();
        if peer.live {
            left(station);
        }
        dropped(peer.last.boot);
    }

    /// The live peers, in the order of their ids.
    pub(crate) fn live(&self, now: Instant) -> impl Iterator<Item = PeerView> {
        self.peers.values().filter(|peer| peer.live).map(move |peer| PeerView {
            station: peer.last.station,
            interval: peer.last.interval,
            age: now.saturating_since(peer.heard),
            announced: peer.last.announced,
        })
    }

    /// The number of peers in the table, live and dormant.
    pub(crate) fn len(&self) -> usize {
        self.peers.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Announcement;
    use crate::presence::Challenge;

    fn message(station: u64, boot: u8, sequence: u64, interval_ms: u64) -> Presence {
        Presence {
            bssid: [0; 6],
            station: StationId(station),
            boot: BootId([boot; 16]),
            sequence,
            interval: Duration::from_millis(interval_ms),
            announced: Announcement::default(),
            unix_time: None,
            challenge: Challenge(1),
            answers: Vec::new(),
        }
    }

    #[derive(Clone, Debug)]
    enum Op {
        Hear { station: u64, boot: u8, sequence: u64, interval_ms: u64, proven: bool },
        Wait { millis: u64 },
        Expire,
        ExpireOne { station: u64 },
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            4 => (0_u64..5, 0_u8..3, 0_u64..20, 500_u64..2_000, any::<bool>()).prop_map(
                |(station, boot, sequence, interval_ms, proven)| {
                    Op::Hear { station, boot, sequence, interval_ms, proven }
                },
            ),
            2 => (0_u64..8_000).prop_map(|millis| Op::Wait { millis }),
            1 => Just(Op::Expire),
            1 => (0_u64..5).prop_map(|station| Op::ExpireOne { station }),
        ]
    }

    /// A simple model of the table.
    #[derive(Default)]
    struct Model {
        /// Each peer's station, boot, sequence number, time of the last message (ms), interval
        /// (ms), and whether it is live.
        known: Vec<(u64, u8, u64, u64, u64, bool)>,
    }

    impl Model {
        fn expire(&mut self, now: u64) {
            for peer in &mut self.known {
                peer.5 &= now - peer.3 <= 3 * peer.4;
            }
            self.known.retain(|peer| now - peer.3 <= 12 * peer.4);
        }

        fn expire_one(&mut self, now: u64, station: u64) {
            self.known.retain(|peer| peer.0 != station || now - peer.3 <= 12 * peer.4);
        }

        fn live(&self) -> Vec<u64> {
            let mut live: Vec<u64> =
                self.known.iter().filter(|peer| peer.5).map(|peer| peer.0).collect();
            live.sort_unstable();
            live
        }
    }

    proptest! {
        #[test]
        fn the_table_does_what_its_model_does(ops in proptest::collection::vec(op(), 0..200)) {
            const LIMIT: usize = 3;
            let (mut table, mut model, mut now) = (PeerTable::new(LIMIT), Model::default(), 0);
            for op in ops {
                let at = Instant::ZERO + Duration::from_millis(now);
                match op {
                    Op::Wait { millis } => now += millis,
                    Op::Expire => {
                        table.expire(at, |_| {}, |_| {});
                        model.expire(now);
                    }
                    Op::ExpireOne { station } => {
                        table.expire_one(at, StationId(station), |_| {}, |_| {});
                        model.expire_one(now, station);
                    }
                    Op::Hear { station, boot, sequence, interval_ms, proven } => {
                        let found = model.known.iter().position(|peer| peer.0 == station);
                        let same = found.map(|at| model.known[at].1 == boot);
                        let expected = match (found, same) {
                            (Some(at), Some(true)) if sequence <= model.known[at].2 => {
                                Verdict::Replayed
                            }
                            (Some(at), Some(true)) if model.known[at].5 => Verdict::Updated,
                            (Some(_), Some(true)) => Verdict::Joined,
                            _ if !proven => Verdict::Unproven,
                            (Some(at), _) => Verdict::Restarted(BootId([model.known[at].1; 16])),
                            (None, _) if model.known.len() >= LIMIT => Verdict::Full,
                            (None, _) => Verdict::Joined,
                        };
                        let message = message(station, boot, sequence, interval_ms);
                        prop_assert_eq!(table.hear(at, message, proven), expected);
                        let taken = !matches!(
                            expected,
                            Verdict::Replayed | Verdict::Unproven | Verdict::Full
                        );
                        if taken {
                            model.known.retain(|peer| peer.0 != station);
                            model.known.push((station, boot, sequence, now, interval_ms, true));
                        }
                    }
                }
                let at = Instant::ZERO + Duration::from_millis(now);
                let live: Vec<u64> = table.live(at).map(|peer| peer.station.0).collect();
                prop_assert_eq!(live, model.live());
                prop_assert!(table.len() <= LIMIT && table.len() == model.known.len());
            }
        }
    }

    #[test]
    fn a_query_counts_once_and_only_of_an_incarnation_in_the_table() {
        let mut table = PeerTable::new(10);
        let query = |table: &mut PeerTable, boot: u8, sequence: u64| {
            table.query(StationId(1), BootId([boot; 16]), sequence)
        };
        assert_eq!(query(&mut table, 1, 5), Verdict::Unproven);
        table.hear(Instant::ZERO, message(1, 1, 5, 1_000), true);
        assert_eq!(query(&mut table, 2, 9), Verdict::Unproven, "another incarnation");
        assert_eq!(query(&mut table, 1, 5), Verdict::Replayed, "not newer than its last message");
        assert_eq!(query(&mut table, 1, 7), Verdict::Updated);
        assert_eq!(query(&mut table, 1, 7), Verdict::Replayed);
        // A presence message counts although a query with a later number came first.
        let now = Instant::ZERO;
        assert_eq!(table.hear(now, message(1, 1, 6, 1_000), true), Verdict::Updated);
        assert_eq!(query(&mut table, 1, 7), Verdict::Replayed);
        assert_eq!(query(&mut table, 1, 8), Verdict::Updated);
    }

    #[test]
    fn a_peer_leaves_after_3_intervals_and_is_removed_after_12() {
        let mut table = PeerTable::new(10);
        table.hear(Instant::ZERO, message(1, 1, 1, 1_000), true);
        let mut at = |millis: u64| {
            let (mut left, mut dropped) = (0, 0);
            let now = Instant::ZERO + Duration::from_millis(millis);
            table.expire(now, |_| left += 1, |_| dropped += 1);
            (left, dropped)
        };
        assert_eq!(at(3_000), (0, 0));
        assert_eq!(at(3_001), (1, 0));
        assert_eq!(at(12_000), (0, 0));
        assert_eq!(at(12_001), (0, 1));
        assert_eq!(table.len(), 0);
    }
}
