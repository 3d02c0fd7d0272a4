//! Reservations: rates that the peers of a station leave free for it.
//!
//! Under DCF (802.11's distributed coordination function) all saturated stations get equal turns.
//! So a station gets more than an equal share only while the others are *unsaturated*: they do not
//! always have data to send. A station that needs a rate announces a request for this rate in its
//! presence messages. All stations decide in the same way which requests are [`admitted`]. In every
//! message the owner of an admitted reservation announces its claim: the share of the airtime that
//! the others have to leave free now ([`Reservation::claim`]). Each of the others limits its rate
//! to an equal part of the rest. `docs/concepts/reservations.md` has the formulas.
//!
//! The modules: `admission` decides which requests are admitted, `asking` makes this station's
//! request, `need` finds how much of it the applications use, `claim` controls this station's claim,
//! `air` measures the rate that the air carries, and `yielding` sets the bounds that leave rates
//! free.

mod admission;
mod air;
mod asking;
mod claim;
mod need;
mod yielding;

use admission::{admitted, taken};

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use wakeai_connection::Direction;
use wakeai_units::{Duration, Instant, Rate};

use crate::{
    Bounds, Observation, Reservation, ReservationLimit, ReservationState, Share, StationId,
};
use air::AirMeter;
use asking::Asking;
use claim::{ClaimControl, ClaimFigures};
use need::Need;

/// The reservations of this station and of its peers.
///
/// Order of calls at each tick (0.5 s): [`Reservations::on_tick`], then [`Reservations::for_law`],
/// then the law, then [`Reservations::bound`].
#[derive(Debug)]
pub(crate) struct Reservations {
    station: StationId,
    limit: Share,
    asking: Asking,
    need: Need,
    control: ClaimControl,
    air: AirMeter,
    received: BTreeMap<StationId, RememberedRequest>,
    admitted: BTreeSet<StationId>,
    pub(crate) state: ReservationState,
    /// The part of the sum of the peers' claims that this station already leaves free.
    claimed: Share,
}

/// A peer's reservation, and the time until which it is kept without a further message.
#[derive(Debug)]
struct RememberedRequest {
    asked: Reservation,
    until: Instant,
}

/// A silent peer keeps its reservation for this number of its message intervals. A peer is no
/// longer live after three silent intervals. But broadcasts are not retransmitted, and a
/// reservation must not end because three of them in a row collide.
const REMEMBERED_INTERVALS: u64 = 8;
/// The longest time for which a silent peer keeps its reservation.
const REMEMBERED_FOR: Duration = Duration::from_secs(30);
/// The sum of the claims that this station follows grows by at most this much per tick, so that a
/// single message does not take the airtime away at once.
const FOLLOWED_PER_TICK: Share = Share::from_percent(20);
/// An owner's claim counts up to this percentage of the share that the owner has reserved. The
/// percentage is above 100 because the others also have to leave airtime for the owner's
/// collisions.
const MOST_CLAIMED_PERCENT: u32 = 150;

impl Reservations {
    pub(crate) fn new(now: Instant, station: StationId, limit: Share) -> Self {
        Self {
            station,
            limit,
            asking: Asking::new(now),
            need: Need::default(),
            control: ClaimControl::default(),
            air: AirMeter::default(),
            received: BTreeMap::new(),
            admitted: BTreeSet::new(),
            state: ReservationState::None,
            claimed: Share::ZERO,
        }
    }

    /// Asks for `rate` from the next tick on. `None` ends the reservation.
    pub(crate) fn want(&mut self, rate: Option<Rate>) {
        self.asking.want(rate);
    }

    pub(crate) fn wanted(&self) -> Option<Rate> {
        self.asking.wanted
    }

    /// The request that this station announces, with the present claim.
    pub(crate) fn announced(&self) -> Option<Reservation> {
        let asked = self.asking.asked?;
        let ClaimControl { claim, short, .. } = self.control;
        Some(Reservation { claim, short, ..asked })
    }

    /// Whether the reservation of `peer` is admitted.
    pub(crate) fn admits(&self, peer: StationId) -> bool {
        self.admitted.contains(&peer)
    }

    /// Decides which reservations are admitted, and decides the claim of this station until the
    /// next tick. `interval` is the time between presence messages of this station. The result is
    /// true where this station's ticket or its admission has changed, so that the change has to be
    /// announced soon.
    pub(crate) fn on_tick(&mut self, now: Instant, seen: &Observation, interval: Duration) -> bool {
        let ticket = self.asking.asked.map(|asked| asked.ticket);
        let before = (ticket, self.state.is_admitted());
        self.air.on_tick(now, seen);
        self.receive(now, seen);
        self.asking.on_tick(now, seen, self.last_ticket());
        self.decide(seen);
        self.follow();
        self.claim(now, seen, interval);
        let ticket = self.asking.asked.map(|asked| asked.ticket);
        (ticket, self.state.is_admitted()) != before
    }

    fn claim(&mut self, now: Instant, seen: &Observation, interval: Duration) {
        let Some(asked) = self.asking.asked.filter(|_| self.state.is_admitted()) else {
            (self.need, self.control) = (Need::default(), ClaimControl::default());
            return;
        };
        self.control.on_tick(&ClaimFigures {
            needed: self.need.on_tick(now, asked.rate, seen),
            delivered: seen.up.mean_rate,
            whole: self.air.whole_for(self.air.own_weight(seen, Direction::Up)),
            left: self.air.left_by(seen, |peer| !self.admits(peer)),
            interval,
        });
    }

    fn receive(&mut self, now: Instant, seen: &Observation) {
        for peer in &seen.peers {
            let remembered = peer.interval.saturating_mul(REMEMBERED_INTERVALS).min(REMEMBERED_FOR);
            let left = remembered.saturating_sub(peer.age);
            match peer.announced.reservation {
                Some(asked) if left > Duration::ZERO => {
                    self.received
                        .insert(peer.station, RememberedRequest { asked, until: now + left });
                }
                _ => {
                    self.received.remove(&peer.station);
                }
            }
        }
        self.received.retain(|_, peer| peer.until >= now);
    }

    fn last_ticket(&self) -> u64 {
        self.received.values().map(|peer| peer.asked.ticket).max().unwrap_or(0)
    }

    fn decide(&mut self, seen: &Observation) {
        let own = self.asking.asked.map(|asked| (self.station, asked));
        let peers = self.received.iter().map(|(station, peer)| (*station, peer.asked));
        let all: Vec<(StationId, Reservation)> = peers.chain(own).collect();
        self.admitted = admitted(&all, self.limit);
        self.state = match (self.asking.state(seen), own) {
            (state, None) => state,
            (_, Some((_, asked))) if self.admitted.contains(&self.station) => {
                ReservationState::Admitted { share: asked.share }
            }
            (_, Some((_, asked))) => ReservationState::Refused {
                share: asked.share,
                taken: taken(&all, &self.admitted),
                limit: self.limit,
            },
        };
    }

    fn follow(&mut self) {
        let claims = self.received.iter().filter(|(station, _)| self.admits(**station));
        let claims = claims.map(|(_, peer)| peer.asked);
        let claims = claims.map(|of| of.claim.min(of.share.percent(MOST_CLAIMED_PERCENT)));
        let all = claims.fold(Share::ZERO, Share::plus).min(self.most_claimed());
        self.claimed = all.min(self.claimed.plus(FOLLOWED_PER_TICK));
    }

    /// The largest sum of claims that counts. The stations without a reservation keep three
    /// quarters of the airtime that cannot be reserved.
    fn most_claimed(&self) -> Share {
        Share::WHOLE.minus(Share::WHOLE.minus(self.limit).percent(75))
    }

    /// The observation for the law. While this station leaves airtime free, the law divides only
    /// the rest of the airtime. The owners have their claims and take no part of the rest, so they
    /// are removed from the observation. The observation is unchanged where
    /// this station leaves no airtime free, and where this station is itself an owner.
    pub(crate) fn for_law<'a>(&self, seen: &'a Observation) -> Cow<'a, Observation> {
        if self.claimed == Share::ZERO || self.state.is_admitted() {
            return Cow::Borrowed(seen);
        }
        let mut rest = seen.clone();
        let (owners, others): (Vec<_>, Vec<_>) =
            rest.peers.into_iter().partition(|peer| self.admits(peer.station));
        let owners = owners.iter().filter(|peer| peer.announced.is_active());
        let (count, rate) = owners.fold((0, Rate::ZERO), |(count, rate), owner| {
            let announced = &owner.announced;
            let moved = announced.up.rate.saturating_add(announced.down.rate);
            (count + 1, rate.saturating_add(moved))
        });
        rest.peers = others;
        rest.senders = rest.senders.saturating_sub(count).max(1);
        rest.total_rate = rest.total_rate.saturating_sub(rate);
        Cow::Owned(rest)
    }

    /// Changes the bounds of a law. A station without a reservation leaves the reserved rates of
    /// others free, and an owner is not bound below its own reservation.
    pub(crate) fn bound(
        &self,
        bounds: Bounds,
        seen: &Observation,
    ) -> (Bounds, Option<ReservationLimit>) {
        if self.state.is_admitted() {
            let claimed = self.claimed.plus(self.control.claim).min(self.most_claimed());
            let level = self.level(claimed, (seen, Direction::Up), false);
            let Some(asked) = self.asking.asked else { return (bounds, None) };
            let limit = ReservationLimit::Owns { rate: asked.rate };
            return (yielding::of_owner(bounds, asked.rate, level, seen), Some(limit));
        }
        let level = |direction| self.level(self.claimed, (seen, direction), true);
        let (up, down) = (level(Direction::Up), level(Direction::Down));
        let most = if seen.up.is_active() { up.or(down) } else { down.or(up) };
        let Some(most) = most else { return (bounds, None) };
        let limit = ReservationLimit::Yields { claimed: self.claimed, level: most };
        let bounds = up.map_or(bounds, |level| yielding::of_other(bounds, level, seen));
        (down.map_or(bounds, |level| yielding::of_receiver(bounds, level, seen)), Some(limit))
    }

    /// The largest rate in a direction that a station without a reservation may have while the owners
    /// have the share `claimed`, for this station's weight. `None` where the rate has no such limit, because
    /// nothing is claimed or the rate that the air carries is not known. `takes_part` is whether
    /// this station takes part in the division of the rest, as all but owners do.
    fn level(
        &self,
        claimed: Share,
        seen: (&Observation, Direction),
        takes_part: bool,
    ) -> Option<Rate> {
        if claimed == Share::ZERO {
            return None;
        }
        let rest = Share::WHOLE.minus(claimed);
        self.air.level(rest, seen, takes_part, |peer| !self.admits(peer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::{peer, traffic, uploads};
    use crate::{Announcement, OwnTraffic, PeerView};

    const INTERVAL: Duration = Duration::from_secs(1);

    /// The share that a station without a reservation leaves free after each of five ticks. Each
    /// entry of `claims` stands for one owner. The owner has reserved 40 % of the airtime, and the
    /// entry is its claim in percent.
    fn left(station: &mut Reservations, claims: &[u32]) -> [Share; 5] {
        let owners = (2..).zip(claims).map(|(id, claim)| {
            let asked = Reservation {
                rate: Rate::from_mbps(10),
                share: Share::from_percent(40),
                ticket: id,
                claim: Share::from_percent(*claim),
                short: true,
            };
            peer(id, Announcement { reservation: Some(asked), ..uploads(traffic(10)) })
        });
        let seen = Observation { peers: owners.collect(), ..Observation::default() };
        [(); 5].map(|()| {
            let _ = station.on_tick(Instant::ZERO, &seen, INTERVAL);
            station.claimed
        })
    }

    fn station() -> Reservations {
        Reservations::new(Instant::ZERO, StationId(1), Share::from_percent(80))
    }

    #[test]
    fn a_claim_is_followed_step_by_step_and_dropped_at_once() {
        let mut station = station();
        let followed = left(&mut station, &[50]);
        assert_eq!(followed, [20, 40, 50, 50, 50].map(Share::from_percent));
        assert_eq!(left(&mut station, &[5])[0], Share::from_percent(5));
    }

    #[test]
    fn a_station_that_receives_leaves_reserved_rates_free_by_its_receive_window() {
        let asked = Reservation {
            rate: Rate::from_mbps(10),
            share: Share::from_percent(40),
            ticket: 2,
            claim: Share::from_percent(40),
            short: true,
        };
        let owner = peer(2, Announcement { reservation: Some(asked), ..uploads(traffic(10)) });
        let (min, growth) = (Duration::from_millis(100), Duration::from_millis(20));
        let down = OwnTraffic {
            connections: vec![crate::observation::example()],
            rtt: Some(crate::RttView { current: min + growth, min, growth }),
            mean_rate: Rate::from_mbps(10),
            max_rate: Some(Rate::from_mbps(25)),
            ..OwnTraffic::default()
        };
        let seen = Observation { down, peers: vec![owner], ..Observation::default() };
        let mut station = station();
        for _ in 0..5 {
            let _ = station.on_tick(Instant::ZERO, &seen, INTERVAL);
        }
        let (bounds, limit) = station.bound(Bounds::NONE, &seen);
        let Some(ReservationLimit::Yields { level, .. }) = limit else { panic!("{limit:?}") };
        assert!(level < Rate::from_mbps(25), "{level}");
        let window = wakeai_units::Segments::in_flight(level, min + growth, seen.down.mss());
        assert_eq!(bounds, Bounds { receive: window, ..bounds });
        assert!(bounds.receive < wakeai_units::Segments::MAX);
    }

    #[test]
    fn an_owner_that_is_silent_for_30_s_loses_its_reservation() {
        let asked = Reservation {
            rate: Rate::from_mbps(10),
            share: Share::from_percent(40),
            ticket: 2,
            claim: Share::from_percent(40),
            short: true,
        };
        let admits_after = |secs| {
            let (age, interval) = (Duration::from_secs(secs), Duration::from_secs(60));
            let announced = Announcement { reservation: Some(asked), ..uploads(traffic(9)) };
            let owner = PeerView { interval, age, ..peer(2, announced) };
            let seen = Observation { peers: vec![owner], ..Observation::default() };
            let mut station = station();
            let _ = station.on_tick(Instant::ZERO, &seen, INTERVAL);
            station.admits(StationId(2))
        };
        assert!(admits_after(29));
        assert!(!admits_after(30));
    }

    #[test]
    fn claims_are_followed_up_to_a_limit() {
        // A single owner gets at most one and a half times its share. All owners together get at
        // most 85 %.
        assert_eq!(left(&mut station(), &[100])[4], Share::from_percent(60));
        assert_eq!(left(&mut station(), &[100, 100])[4], Share::from_percent(85));
    }
}
