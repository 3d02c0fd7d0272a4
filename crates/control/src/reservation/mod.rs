//! Reservations: a station's rate that its peers leave free.
//!
//! Under DCF all saturated stations get equal turns, so no algorithm of one sender gets it more than
//! its share: the others have to stay *unsaturated*. A station that wants a rate says so in its
//! presence messages; all members decide alike who is [`admitted`]; each owner says with every
//! message how much of the air the others have to leave for it just now ([`Reservation::claim`]),
//! and each of the others holds its rate to an equal part of what is left. The formulas are in
//! `docs/concepts/reservations.md`.
//!
//! Inside: [`Share`] of the air, [`admitted`], the own request (`asking`), what an owner claims
//! (`claim`), what the air carries (`air`), and the bounds that follow (`yielding`).

mod admission;
mod air;
mod asking;
mod claim;
mod share;
mod yielding;

pub use admission::{admitted, taken};
pub use share::Share;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use wakeai_units::{Duration, Instant, Rate};

use crate::{Bounds, Narrator, Observation, StationId};
use air::Air;
use asking::Asking;
use claim::{ClaimControl, Felt};

/// A rate that a station asks its peers to leave free, as it announces it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// The rate.
    pub rate: Rate,
    /// Its part of the air: `rate / Max_i`, fixed when it is asked for.
    pub share: Share,
    /// The order of asking: one above every ticket that its owner had heard (Lamport's bakery).
    pub ticket: u64,
    /// The part of the air that the others have to leave now; zero while it is not admitted, and
    /// while its owner gets its rate anyway.
    pub claim: Share,
    /// Its owner has data and delivers less than the rate.
    pub short: bool,
}

/// What has become of a station's own request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Standing {
    /// Nothing is asked for.
    #[default]
    None,
    /// Nothing is sent, or the station has not listened long enough: nothing is announced yet.
    Waiting,
    /// Neither what the station reaches alone nor its PHY rate is known: no share can be told.
    Unmeasured,
    /// It does not fit beside those that came first.
    Refused {
        /// The part of the air that it would take.
        share: Share,
        /// What those before it have.
        taken: Share,
        /// The most that may be reserved in all.
        limit: Share,
    },
    /// The peers leave it free.
    Admitted {
        /// The part of the air that it takes.
        share: Share,
    },
}

impl Standing {
    /// Whether the peers leave it free.
    pub fn is_admitted(self) -> bool {
        matches!(self, Self::Admitted { .. })
    }
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => write!(f, "nothing is reserved"),
            Self::Waiting => write!(f, "waiting for something to send"),
            Self::Unmeasured => write!(
                f,
                "refused: neither what this station reaches alone (max) nor its PHY rate \
                 (link_rate) is known"
            ),
            Self::Refused { share, taken, limit } => write!(
                f,
                "refused: it takes {share} of the air, {taken} is taken, {limit} may be in all"
            ),
            Self::Admitted { share } => write!(f, "admitted with {share} of the air"),
        }
    }
}

/// A station's part in reservations: its own and its peers'.
///
/// Order of calls, each tick: [`Reservations::on_tick`], then [`Reservations::for_law`], the law,
/// and [`Reservations::bound`].
#[derive(Debug)]
pub(crate) struct Reservations {
    station: StationId,
    limit: Share,
    asking: Asking,
    control: ClaimControl,
    air: Air,
    heard: BTreeMap<StationId, Heard>,
    admitted: BTreeSet<StationId>,
    standing: Standing,
    /// What the peers claim together, as far as it is followed already.
    claimed: Share,
}

/// A peer's reservation.
#[derive(Debug)]
struct Heard {
    asked: Reservation,
    until: Instant,
}

/// A peer that is not heard keeps its reservation for so many of its intervals: broadcasts are not
/// repeated, and three that collide must not make room for others.
const REMEMBERED_INTERVALS: u64 = 8;
/// But no longer than this, whatever interval it announced: nobody leaves air free for one that has gone.
const REMEMBERED_FOR: Duration = Duration::from_secs(30);
/// The claim of others is followed by at most so much more per tick: whatever a member says, nobody
/// is pushed aside from one moment to the next.
const FOLLOWED_PER_TICK: Share = Share::from_percent(20);
/// An owner's claim is followed up to this multiple of its share, percent: collisions cost it air
/// that the others have to leave as well.
const MOST_CLAIMED_PERCENT: u32 = 150;

impl Reservations {
    pub(crate) fn new(now: Instant, station: StationId, limit: Share) -> Self {
        Self {
            station,
            limit,
            asking: Asking::new(now),
            control: ClaimControl::default(),
            air: Air::default(),
            heard: BTreeMap::new(),
            admitted: BTreeSet::new(),
            standing: Standing::None,
            claimed: Share::ZERO,
        }
    }

    /// From now on this rate is wanted; `None`: none.
    pub(crate) fn want(&mut self, rate: Option<Rate>) {
        self.asking.want(rate);
    }

    pub(crate) fn wanted(&self) -> Option<Rate> {
        self.asking.wanted()
    }

    pub(crate) fn standing(&self) -> Standing {
        self.standing
    }

    /// What this station announces.
    pub(crate) fn announced(&self) -> Option<Reservation> {
        let asked = self.asking.asked()?;
        let claim = self.control.claim();
        Some(Reservation { claim, short: self.control.is_short(), ..asked })
    }

    /// Whether that peer's reservation is admitted, as seen from here.
    pub(crate) fn admits(&self, peer: StationId) -> bool {
        self.admitted.contains(&peer)
    }

    /// Decides who is admitted, and what this station claims until the next tick. `interval` is the
    /// time between its presence messages. Says whether its peers should hear of it soon.
    pub(crate) fn on_tick(&mut self, now: Instant, seen: &Observation, interval: Duration) -> bool {
        let ticket = self.asking.asked().map(|asked| asked.ticket);
        let before = (ticket, self.standing.is_admitted());
        self.air.on_tick(now, seen);
        self.hear(now, seen);
        self.asking.on_tick(now, seen, self.last_ticket());
        self.decide(seen);
        self.follow();
        self.claim(seen, interval);
        let ticket = self.asking.asked().map(|asked| asked.ticket);
        (ticket, self.standing.is_admitted()) != before
    }

    fn claim(&mut self, seen: &Observation, interval: Duration) {
        let Some(asked) = self.asking.asked().filter(|_| self.standing.is_admitted()) else {
            self.control = ClaimControl::default();
            return;
        };
        self.control.on_tick(&Felt {
            rate: asked.rate,
            delivered: seen.mean_rate,
            whole: self.air.whole_for(self.air.own_weight(seen)),
            left: self.air.left_by(seen, |peer| !self.admits(peer)),
            interval,
        });
    }

    fn hear(&mut self, now: Instant, seen: &Observation) {
        for peer in &seen.peers {
            let remembered = peer.interval.saturating_mul(REMEMBERED_INTERVALS).min(REMEMBERED_FOR);
            let left = remembered.saturating_sub(peer.age);
            match peer.reservation {
                Some(asked) if left > Duration::ZERO => {
                    self.heard.insert(peer.station, Heard { asked, until: now + left });
                }
                _ => {
                    self.heard.remove(&peer.station);
                }
            }
        }
        self.heard.retain(|_, heard| heard.until >= now);
    }

    fn last_ticket(&self) -> u64 {
        self.heard.values().map(|heard| heard.asked.ticket).max().unwrap_or(0)
    }

    fn decide(&mut self, seen: &Observation) {
        let own = self.asking.asked().map(|asked| (self.station, asked));
        let peers = self.heard.iter().map(|(station, heard)| (*station, heard.asked));
        let all: Vec<(StationId, Reservation)> = peers.chain(own).collect();
        self.admitted = admitted(&all, self.limit);
        self.standing = match (self.asking.state(seen), own) {
            (standing, None) => standing,
            (_, Some((_, asked))) if self.admitted.contains(&self.station) => {
                Standing::Admitted { share: asked.share }
            }
            (_, Some((_, asked))) => Standing::Refused {
                share: asked.share,
                taken: taken(&all, &self.admitted),
                limit: self.limit,
            },
        };
    }

    fn follow(&mut self) {
        let claims = self.heard.iter().filter(|(station, _)| self.admits(**station));
        let claims = claims.map(|(_, heard)| heard.asked);
        let claims = claims.map(|of| of.claim.min(of.share.percent(MOST_CLAIMED_PERCENT)));
        let all = claims.fold(Share::ZERO, Share::plus).min(self.most_claimed());
        self.claimed = all.min(self.claimed.plus(FOLLOWED_PER_TICK));
    }

    /// Three quarters of what nobody may reserve stay with the others, whatever is claimed.
    fn most_claimed(&self) -> Share {
        Share::WHOLE.minus(Share::WHOLE.minus(self.limit).percent(75))
    }

    /// What a law is to see: who has a reservation is not among those that share the rest.
    pub(crate) fn for_law<'a>(&self, seen: &'a Observation) -> Cow<'a, Observation> {
        if self.claimed == Share::ZERO || self.standing.is_admitted() {
            return Cow::Borrowed(seen);
        }
        let mut rest = seen.clone();
        let (owners, others): (Vec<_>, Vec<_>) =
            rest.peers.into_iter().partition(|peer| self.admits(peer.station));
        let owners = owners.iter().filter(|peer| peer.sending);
        let (count, rate) = owners.fold((0, Rate::ZERO), |(count, rate), owner| {
            (count + 1, rate.saturating_add(owner.delivery_rate))
        });
        rest.peers = others;
        rest.senders = rest.senders.saturating_sub(count).max(1);
        rest.total_rate = rest.total_rate.saturating_sub(rate);
        Cow::Owned(rest)
    }

    /// The bounds of a law, made to leave free what is reserved, and the own reservation whole.
    pub(crate) fn bound(
        &self,
        bounds: Bounds,
        seen: &Observation,
        narrator: &mut dyn Narrator,
    ) -> Bounds {
        if self.standing.is_admitted() {
            let claimed = self.claimed.plus(self.control.claim()).min(self.most_claimed());
            let level = self.level(claimed, seen, false);
            let Some(asked) = self.asking.asked() else { return bounds };
            return yielding::of_owner(bounds, asked.rate, level, seen, narrator);
        }
        match self.level(self.claimed, seen, true) {
            Some(level) => yielding::of_other(bounds, self.claimed, level, seen, narrator),
            None => bounds,
        }
    }

    /// The most that this station may send where `claimed` is to be left free.
    fn level(&self, claimed: Share, seen: &Observation, takes_part: bool) -> Option<Rate> {
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
    use crate::PeerView;
    use crate::observation::peer;

    const INTERVAL: Duration = Duration::from_secs(1);

    /// What a station without a reservation leaves after each of five ticks in which each of these
    /// owners has 40 % of the air and claims so much.
    fn left(station: &mut Reservations, claims: &[u32]) -> [Share; 5] {
        let owners = (2..).zip(claims).map(|(id, claim)| {
            let asked = Reservation {
                rate: Rate::from_mbps(10),
                share: Share::from_percent(40),
                ticket: id,
                claim: Share::from_percent(*claim),
                short: true,
            };
            PeerView { reservation: Some(asked), ..peer(StationId(id), 10) }
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
    fn a_claim_is_followed_step_by_step_and_given_up_at_once() {
        let mut station = station();
        let followed = left(&mut station, &[50]);
        assert_eq!(followed, [20, 40, 50, 50, 50].map(Share::from_percent));
        assert_eq!(left(&mut station, &[5])[0], Share::from_percent(5));
    }

    #[test]
    fn nothing_is_left_for_an_owner_that_was_silent_for_half_a_minute() {
        let asked = Reservation {
            rate: Rate::from_mbps(10),
            share: Share::from_percent(40),
            ticket: 2,
            claim: Share::from_percent(40),
            short: true,
        };
        let admits_after = |secs| {
            let (age, interval) = (Duration::from_secs(secs), Duration::from_secs(60));
            let owner =
                PeerView { age, interval, reservation: Some(asked), ..peer(StationId(2), 9) };
            let seen = Observation { peers: vec![owner], ..Observation::default() };
            let mut station = station();
            let _ = station.on_tick(Instant::ZERO, &seen, INTERVAL);
            station.admits(StationId(2))
        };
        assert!(admits_after(29));
        assert!(!admits_after(30));
    }

    #[test]
    fn whatever_is_claimed_only_so_much_is_followed() {
        // One owner: half as much again as its share. All: a part of the air stays with the others.
        assert_eq!(left(&mut station(), &[100])[4], Share::from_percent(60));
        assert_eq!(left(&mut station(), &[100, 100])[4], Share::from_percent(85));
    }
}
