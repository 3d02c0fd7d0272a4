//! The table of peers, as their presence messages describe them.

use wakeai_units::{Duration, Instant, Rate};

use super::received::Received;
use super::{BootId, LAW_EVERY, Presence};
use crate::common::PeerLaw;
use crate::places::Places;
use crate::{Announcement, PeerView, StationId, Traffic};

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

/// What has become of a silent peer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Gone {
    /// The peer is no longer live.
    Left(StationId),
    /// The incarnation was removed. It needs a new proof to come back.
    Dropped(BootId),
}

#[derive(Clone, Copy)]
struct Peer {
    station: StationId,
    boot: BootId,
    /// The sequence number of the peer's last message.
    sequence: u64,
    /// The sequence number of the peer's last query to the fleet; zero before the first query.
    queried: u64,
    heard: Instant,
    interval: Duration,
    announced: Announcement,
    law: PeerLaw,
    live: bool,
    /// Whether the peer has announced a reservation since it came into the table.
    has_reserved: bool,
}

impl Peer {
    /// The peer after a message, with `before` what was known of the station.
    fn of(now: Instant, message: &Presence, longest: Duration, before: Option<&Self>) -> Self {
        let announced = message.announced;
        let same = before.filter(|before| before.boot == message.boot);
        let law = match message.law {
            Some(law) => PeerLaw::Holds(law),
            None if must_have_a_law(message) => PeerLaw::Unannounced,
            None => same.map_or(PeerLaw::Unknown, |before| before.law),
        };
        Self {
            station: message.station,
            boot: message.boot,
            sequence: message.sequence,
            queried: same.map_or(0, |before| before.queried),
            heard: now,
            interval: message.interval.min(longest),
            announced,
            law,
            live: true,
            has_reserved: announced.reservation.is_some()
                || before.is_some_and(|before| before.has_reserved),
        }
    }

    /// The last time at which the peer has been silent for no more than `intervals` of its intervals.
    fn until(&self, intervals: u64) -> Instant {
        let silence = self.interval.saturating_mul(intervals).min(DORMANT_FOR);
        Instant::from_nanos(self.heard.as_nanos().saturating_add(silence.as_nanos()))
    }

    fn silent_for(&self, now: Instant, intervals: u64) -> bool {
        now > self.until(intervals)
    }

    /// The last time at which silence changes nothing.
    fn lasts_until(&self) -> Instant {
        self.until(if self.live { LIVE_INTERVALS } else { DORMANT_INTERVALS })
    }

    /// Whether the peer is live and takes part in what stations decide about each other: it is active or
    /// has just been, or it has asked for a rate. A reservation that has ended counts, too, because the end
    /// is something that others have to notice.
    fn is_active(&self) -> bool {
        let moves = |traffic: &Traffic| traffic.active || traffic.rate > Rate::ZERO;
        let moves = moves(&self.announced.up) || moves(&self.announced.down);
        self.live && (moves || self.has_reserved)
    }

    fn view(&self, now: Instant) -> PeerView {
        PeerView {
            station: self.station,
            interval: self.interval,
            age: now.saturating_since(self.heard),
            announced: self.announced,
            law: self.law,
        }
    }
}

/// Whether an agent that announces its law would have done so in this message.
fn must_have_a_law(message: &Presence) -> bool {
    message.has_room_for_a_law() || message.sequence.is_multiple_of(LAW_EVERY)
}

/// The live and the dormant peers, by station id. Their number has a limit.
///
/// A message and a tick cost little however many peers there are: a tick looks at the peers that have
/// changed and at those that are active, and at all of them only where silence may have ended one.
///
/// Order of calls: [`PeerTable::expire`] and then [`PeerTable::update_active`] at each tick. For each
/// message, [`PeerTable::expire_one`] and then [`PeerTable::hear`] or [`PeerTable::query`].
pub(crate) struct PeerTable {
    limit: usize,
    /// The places of the peers in `peers`.
    places: Places,
    /// The same places, in the order of the peers' ids.
    order: Vec<(StationId, u32)>,
    peers: Vec<Peer>,
    /// The last time at which the silence of the peer with this place changes nothing. It is kept
    /// apart, because all of them are read where one may have passed.
    last: Vec<Instant>,
    /// The places in `peers` that are free.
    free: Vec<u32>,
    /// The number of live peers.
    pub(crate) live: usize,
    /// A time until which no peer has been silent for too long.
    lasts_until: Instant,
    /// The peers that were or are active, and have changed since the last tick.
    changed: Vec<StationId>,
    /// The time of the last call of [`PeerTable::update_active`].
    updated_at: Instant,
    /// The station whose law the last message has changed, with what was known before and is known now.
    pub(crate) law_changed: Option<(StationId, PeerLaw, PeerLaw)>,
}

impl PeerTable {
    /// A table for at most `limit` peers.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            places: Places::default(),
            order: Vec::new(),
            peers: Vec::new(),
            last: Vec::new(),
            free: Vec::new(),
            live: 0,
            lasts_until: Instant::MAX,
            changed: Vec::new(),
            updated_at: Instant::ZERO,
            law_changed: None,
        }
    }

    fn find(&self, station: StationId) -> Result<usize, usize> {
        self.order.binary_search_by_key(&station, |(station, _)| *station)
    }

    /// The place of a peer.
    pub(crate) fn place(&self, station: StationId) -> Option<usize> {
        self.places.find(station, |place| self.peers[place].station)
    }

    /// Takes an authentic message of this access point. Its interval is believed up to `longest`. `proven`
    /// says whether the message proves that its incarnation is live. It is asked only where needed: the
    /// message of an incarnation in the table needs no proof.
    pub(super) fn hear(
        &mut self,
        now: Instant,
        received: &Received,
        longest: impl FnOnce() -> Duration,
        proven: impl FnOnce() -> bool,
    ) -> Verdict {
        let Received { head, message, .. } = received;
        let Some(place) = self.place(head.station) else {
            return match (proven(), self.order.len() >= self.limit) {
                (false, _) => Verdict::Unproven,
                (true, true) => Verdict::Full,
                (true, false) => {
                    self.insert(now, message, longest());
                    Verdict::Joined
                }
            };
        };
        let Peer { boot, sequence, live, .. } = self.peers[place];
        if boot == head.boot {
            if head.sequence <= sequence {
                return Verdict::Replayed;
            }
            self.replace(now, message, longest(), place);
            return if live { Verdict::Updated } else { Verdict::Joined };
        }
        if !proven() {
            return Verdict::Unproven;
        }
        self.replace(now, message, longest(), place);
        Verdict::Restarted(boot)
    }

    /// Takes a query of the incarnation `boot` of `station`. The result is [`Verdict::Updated`]
    /// where the query is new and the incarnation is in the table. A query does not make a dormant
    /// peer live.
    pub(crate) fn query(&mut self, station: StationId, boot: BootId, sequence: u64) -> Verdict {
        let peer = self.place(station).map(|place| &mut self.peers[place]);
        let Some(peer) = peer.filter(|peer| peer.boot == boot) else { return Verdict::Unproven };
        if sequence <= peer.sequence.max(peer.queried) {
            return Verdict::Replayed;
        }
        peer.queried = sequence;
        Verdict::Updated
    }

    fn insert(&mut self, now: Instant, message: &Presence, longest: Duration) {
        let peer = Peer::of(now, message, longest, None);
        let place = self.free.pop().unwrap_or_else(|| {
            self.peers.push(peer);
            self.last.push(Instant::MAX);
            (self.peers.len() - 1) as u32 // far fewer than 2^32 peers have room
        });
        self.peers[place as usize] = peer;
        self.places.add(message.station, place as usize, |place| self.peers[place].station);
        let at = self.find(message.station).unwrap_or_else(|at| at);
        self.order.insert(at, (message.station, place));
        self.live += 1;
        self.note(message.station, place as usize, false, PeerLaw::Unknown);
    }

    /// Replaces what is known of the peer at `place` by what its message says.
    fn replace(&mut self, now: Instant, message: &Presence, longest: Duration, place: usize) {
        let peer = &mut self.peers[place];
        let (was_active, held) = (peer.is_active(), peer.law);
        self.live += usize::from(!peer.live);
        *peer = Peer::of(now, message, longest, Some(peer));
        self.note(message.station, place, was_active, held);
    }

    /// Notes what a message of `station` has changed. Before it, the peer was active or not, and held
    /// the law `held`.
    fn note(&mut self, station: StationId, place: usize, was_active: bool, held: PeerLaw) {
        let peer = &self.peers[place];
        if peer.law != held {
            self.law_changed = Some((station, held, peer.law));
        }
        if was_active || peer.is_active() {
            self.changed.push(station);
        }
        self.last[place] = peer.lasts_until();
        self.lasts_until = self.lasts_until.min(self.last[place]);
        self.assert_counts();
    }

    /// Removes silent peers. Calls `gone` for each peer that is no longer live, and for each
    /// incarnation that is removed.
    pub(crate) fn expire(&mut self, now: Instant, mut gone: impl FnMut(Gone)) {
        if now <= self.lasts_until {
            return;
        }
        self.lasts_until = self.last.iter().copied().min().unwrap_or(Instant::MAX);
        if now <= self.lasts_until {
            return;
        }
        let mut order = std::mem::take(&mut self.order);
        order.retain(|(_, place)| {
            now <= self.last[*place as usize] || self.lapse(now, *place, &mut gone)
        });
        debug_assert!(order.is_sorted_by(|one, next| one.0 < next.0), "not in the order of ids");
        self.order = order;
        self.lasts_until = self.last.iter().copied().min().unwrap_or(Instant::MAX);
        self.assert_counts();
    }

    /// Removes `station` where it is due to be removed. Calls `gone` as [`PeerTable::expire`] does. A
    /// dormant peer stays, because the message that is about to be read makes it live again.
    pub(crate) fn expire_one(
        &mut self,
        now: Instant,
        station: StationId,
        mut gone: impl FnMut(Gone),
    ) {
        if now <= self.lasts_until {
            return;
        }
        let due = self.place(station).filter(|place| now > self.last[*place]);
        if let Some(place) = due.filter(|at| self.peers[*at].silent_for(now, DORMANT_INTERVALS)) {
            self.lapse(now, place as u32, &mut gone);
            let at = self.find(station).expect("both have the same peers");
            self.order.remove(at);
            self.assert_counts();
        }
    }

    /// Takes a peer that has been silent for too long out of the live ones, and out of the table where
    /// it has been silent for longer. Returns whether it stays in the table.
    fn lapse(&mut self, now: Instant, place: u32, gone: &mut impl FnMut(Gone)) -> bool {
        let peer = &mut self.peers[place as usize];
        if peer.is_active() {
            self.changed.push(peer.station);
        }
        if std::mem::take(&mut peer.live) {
            self.live -= 1;
            gone(Gone::Left(peer.station));
        }
        let stays = !peer.silent_for(now, DORMANT_INTERVALS);
        self.last[place as usize] = if stays {
            peer.lasts_until()
        } else {
            self.free.push(place);
            self.places.remove(peer.station, place as usize);
            gone(Gone::Dropped(peer.boot));
            Instant::MAX
        };
        stays
    }

    /// Every place is that of one peer, or free.
    fn assert_counts(&self) {
        debug_assert_eq!(self.order.len() + self.free.len(), self.peers.len());
        debug_assert!(self.live <= self.order.len() && self.order.len() <= self.limit);
    }

    /// Brings `active` up to date: the live peers that send or have asked for a rate, in the order of
    /// their ids. `active` is what the call before left there.
    pub(crate) fn update_active(&mut self, now: Instant, active: &mut Vec<PeerView>) {
        let more = now.saturating_since(self.updated_at);
        self.updated_at = now;
        for peer in active.iter_mut() {
            peer.age = peer.age.saturating_add(more);
        }
        for station in std::mem::take(&mut self.changed) {
            let known = active.binary_search_by_key(&station, |peer| peer.station);
            let peer = self.place(station).map(|place| &self.peers[place]);
            let view = peer.filter(|peer| peer.is_active());
            match (known, view.map(|peer| peer.view(now))) {
                (Ok(at), Some(view)) => active[at] = view,
                (Err(at), Some(view)) => active.insert(at, view),
                (Ok(at), None) => {
                    active.remove(at);
                }
                (Err(_), None) => {}
            }
        }
    }

    /// The live peers, in the order of their ids.
    pub(crate) fn live(&self, now: Instant) -> impl Iterator<Item = PeerView> {
        let all = self.order.iter().map(|(_, place)| &self.peers[*place as usize]);
        all.filter(|peer| peer.live).map(move |peer| peer.view(now))
    }

    /// The number of peers in the table, live and dormant.
    pub(crate) fn len(&self) -> usize {
        self.order.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Announcement;
    use crate::observation::uploads;
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
            law: None,
            answers: Vec::new(),
        }
    }

    /// Takes a message that proves at time zero that its sender is live.
    fn hear(table: &mut PeerTable, message: &Presence) -> Verdict {
        table.hear(Instant::ZERO, &Received::new(message.clone()), || Duration::MAX, || true)
    }

    #[derive(Clone, Debug)]
    enum Op {
        Hear { station: u64, boot: u8, sequence: u64, interval_ms: u64, proven: bool, sends: bool },
        Wait { millis: u64 },
        Expire,
        ExpireOne { station: u64 },
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            4 => (0_u64..5, 0_u8..3, 0_u64..20, 500_u64..2_000, any::<bool>(), any::<bool>()).prop_map(
                |(station, boot, sequence, interval_ms, proven, sends)| {
                    Op::Hear { station, boot, sequence, interval_ms, proven, sends }
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
            let mut active = Vec::new();
            for op in ops {
                let at = Instant::ZERO + Duration::from_millis(now);
                match op {
                    Op::Wait { millis } => now += millis,
                    Op::Expire => {
                        table.expire(at, |_| {});
                        model.expire(now);
                        table.update_active(at, &mut active);
                        let sending = table.live(at).filter(|peer| peer.announced.up.active);
                        prop_assert_eq!(&active, &sending.collect::<Vec<_>>());
                    }
                    Op::ExpireOne { station } => {
                        table.expire_one(at, StationId(station), |_| {});
                        model.expire_one(now, station);
                    }
                    Op::Hear { station, boot, sequence, interval_ms, proven, sends } => {
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
                        let mut message = message(station, boot, sequence, interval_ms);
                        message.announced.up.active = sends;
                        let received = Received::new(message);
                        let verdict = table.hear(at, &received, || Duration::MAX, || proven);
                        prop_assert_eq!(verdict, expected);
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
                prop_assert_eq!(table.live, model.live().len());
            }
        }
    }

    #[test]
    fn a_peer_whose_reservation_has_ended_stays_active_and_one_that_stopped_does_not() {
        let asked = crate::Reservation {
            rate: Rate::from_mbps(1),
            share: crate::Share::from_percent(1),
            ticket: 1,
            claim: crate::Share::ZERO,
            short: false,
        };
        let says = [
            uploads(Traffic { active: true, ..Traffic::default() }),
            uploads(Traffic { rate: Rate::from_mbps(1), ..Traffic::default() }),
            Announcement::default(),
            Announcement { reservation: Some(asked), ..Announcement::default() },
            Announcement::default(),
        ];
        let (mut table, mut active) = (PeerTable::new(10), Vec::new());
        let counts = (1..).zip(says).map(|(sequence, announced)| {
            let message = Presence { announced, ..message(1, 1, sequence, 1_000) };
            hear(&mut table, &message);
            table.update_active(Instant::ZERO, &mut active);
            active.len()
        });
        assert_eq!(counts.collect::<Vec<_>>(), [1, 1, 0, 1, 1]);
    }

    #[test]
    fn a_query_counts_once_and_only_of_an_incarnation_in_the_table() {
        let mut table = PeerTable::new(10);
        let query = |table: &mut PeerTable, boot: u8, sequence: u64| {
            table.query(StationId(1), BootId([boot; 16]), sequence)
        };
        assert_eq!(query(&mut table, 1, 5), Verdict::Unproven);
        hear(&mut table, &message(1, 1, 5, 1_000));
        assert_eq!(query(&mut table, 2, 9), Verdict::Unproven, "another incarnation");
        assert_eq!(query(&mut table, 1, 5), Verdict::Replayed, "not newer than its last message");
        assert_eq!(query(&mut table, 1, 7), Verdict::Updated);
        assert_eq!(query(&mut table, 1, 7), Verdict::Replayed);
        // A presence message counts although a query with a later number came first.
        assert_eq!(hear(&mut table, &message(1, 1, 6, 1_000)), Verdict::Updated);
        assert_eq!(query(&mut table, 1, 7), Verdict::Replayed);
        assert_eq!(query(&mut table, 1, 8), Verdict::Updated);
    }

    #[test]
    fn a_peer_leaves_after_3_intervals_and_is_removed_after_12() {
        let mut table = PeerTable::new(10);
        hear(&mut table, &message(1, 1, 1, 1_000));
        let mut at = |millis: u64| {
            let (mut left, mut dropped) = (0, 0);
            let now = Instant::ZERO + Duration::from_millis(millis);
            table.expire(now, |gone| match gone {
                Gone::Left(_) => left += 1,
                Gone::Dropped(_) => dropped += 1,
            });
            (left, dropped)
        };
        assert_eq!(at(3_000), (0, 0));
        assert_eq!(at(3_001), (1, 0));
        assert_eq!(at(12_000), (0, 0));
        assert_eq!(at(12_001), (0, 1));
        assert_eq!(table.len(), 0);
    }
}
