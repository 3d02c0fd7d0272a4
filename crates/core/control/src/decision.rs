//! The decision of a tick. Narration, status, metrics and the fleet's table are views of it.

use std::fmt;

use strum::VariantArray as _;
use wakeai_connection::Direction;
use wakeai_units::{Duration, Instant, Rate};

use crate::{Bounds, LawName, Observation, Share};

/// The phase of the law `airtime`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display, strum::VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum Phase {
    /// The path is long and has no queue yet, so the window may double in each round trip.
    Opening,
    /// The window is the station's share of the airtime, as a rate, times the sum of the path's RTT
    /// without queues and the target queueing delay.
    Steady,
    /// The window is larger than in `Steady`, to find unused airtime. The phase begins when the
    /// queueing delay is below half of its target, and ends when the delay is above its target.
    Probing,
    /// The station moves less than its share for some ticks, to measure the RTT of its path without
    /// queues, or to see whether strangers take what it leaves.
    Draining,
    /// Stations without agents fill the access point's queue. A station with bounds would get
    /// nearly nothing beside them, so the law sets no bounds, except a floor in the first five
    /// seconds.
    Released,
}

impl Phase {
    /// Every phase.
    pub const ALL: &'static [Self] = Self::VARIANTS;
}

/// What a law's bounds follow from. A law decides once per tick (0.5 s).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Basis {
    /// The bounds were set by hand.
    ByHand,
    /// The station sends nothing, or its RTT is not known yet. The law sets the bounds for a
    /// connection that begins before the next tick.
    Idle,
    /// Each bound is the smaller of two candidates (Shimada et al., §3.2 step 6).
    Candidates {
        /// The number of stations that send.
        senders: u32,
        /// The queueing delay; `None` without an RTT sample.
        growth: Option<Duration>,
        /// The candidate by the number of stations; `None` while the aggregate goodput or the RTT
        /// is unknown.
        by_senders: Option<Bounds>,
        /// The candidate by the queueing delay (`growth`).
        by_growth: Bounds,
    },
    /// The law `airtime` gives the station a share of the airtime, with a short queue. Each direction
    /// in which the station is active has a state.
    Airtime {
        /// What the station sends.
        up: Option<AirtimeState>,
        /// What the station receives.
        down: Option<AirtimeState>,
    },
}

/// The state of the law `airtime` in one direction, at a tick at which the station is active in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AirtimeState {
    /// The number of stations that send.
    pub senders: u32,
    /// The rate that this station delivers.
    pub rate: Rate,
    /// The rate that this station delivers in this direction with its share of the airtime.
    pub share: Rate,
    /// The queueing delay.
    pub growth: Duration,
    /// The target queueing delay.
    pub target: Duration,
    /// The law's phase.
    pub phase: Phase,
}

/// What reservations have changed in the bounds of a law.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display)]
pub enum ReservationLimit {
    /// This station leaves airtime free for the reservations of others.
    #[strum(to_string = "{claimed} of the air left free for reservations: at most {level:#}")]
    Yields {
        /// The share of the airtime that this station leaves free. It follows the sum of the
        /// owners' claims, but grows by at most 20 % of the airtime per tick. An owner's claim is
        /// the share that the other stations have to leave free now
        /// ([`Reservation::claim`](crate::Reservation::claim)).
        claimed: Share,
        /// The largest rate at which this station may send.
        level: Rate,
    },
    /// The law does not bound this station below its own reservation.
    #[strum(to_string = "{rate:#} reserved")]
    Owns {
        /// The reserved rate.
        rate: Rate,
    },
}

/// The decision of a controller at a tick.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The time of the tick.
    pub at: Instant,
    /// The law.
    pub law: LawName,
    /// The bounds until the next tick, for the station as a whole.
    pub bounds: Bounds,
    /// The station's share of the airtime as a rate, which `docs/reference/figures.md` defines.
    /// `None` while it is not known.
    pub share: Option<Rate>,
    /// What the law's bounds follow from.
    pub basis: Basis,
    /// What reservations have changed in the law's bounds; `None` where they change nothing.
    pub reservation: Option<ReservationLimit>,
}

impl Decision {
    /// The decision that is in force before the first tick: no bounds.
    pub(crate) fn none(at: Instant, law: LawName) -> Self {
        let (bounds, basis) = (Bounds::NONE, Basis::Idle);
        Self { at, law, bounds, share: None, basis, reservation: None }
    }

    pub(crate) fn new(
        at: Instant,
        law: LawName,
        seen: &Observation,
        (bounds, basis): (Bounds, Basis),
        reservation: Option<ReservationLimit>,
    ) -> Self {
        let share = match &basis {
            Basis::Airtime { up, down } => up.or(*down).map(|state| state.share),
            _ => seen.up.max_rate.map(|alone| alone / u64::from(seen.senders.max(1))),
        };
        Self { at, law, bounds, share, basis, reservation }
    }

    /// The state of the law `airtime` in a direction; `None` with another law, and while the station
    /// moves nothing in this direction.
    pub fn airtime(&self, direction: Direction) -> Option<AirtimeState> {
        match (&self.basis, direction) {
            (Basis::Airtime { up, .. }, Direction::Up) => *up,
            (Basis::Airtime { down, .. }, Direction::Down) => *down,
            _ => None,
        }
    }

    /// What the bounds follow from, in words.
    pub fn reasons(&self) -> Vec<String> {
        let limit = self.reservation.iter().map(ToString::to_string);
        std::iter::once(self.basis.to_string()).chain(limit).collect()
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ({})", self.law.as_str(), self.bounds, self.reasons().join("; "))
    }
}

impl fmt::Display for Basis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ByHand => write!(f, "set by hand"),
            Self::Airtime { up, down } => {
                if let Some(state) = up {
                    write!(f, "{state}")?;
                }
                if up.is_some() && down.is_some() {
                    write!(f, "; ")?;
                }
                down.map_or(Ok(()), |state| write!(f, "receiving: {state}"))
            }
            Self::Idle => write!(f, "nothing is being sent, or no RTT is known yet"),
            Self::Candidates { senders, growth, by_senders, by_growth } => {
                match by_senders {
                    Some(bounds) => write!(f, "by sending stations ({senders}): {bounds}")?,
                    None => write!(f, "by sending stations ({senders}): rate or RTT unknown")?,
                }
                match growth {
                    Some(growth) => {
                        write!(f, "; by queueing delay ({} ms): {by_growth}", growth.as_millis())
                    }
                    None => write!(f, "; by queueing delay (no RTT yet): {by_growth}"),
                }
            }
        }
    }
}

impl fmt::Display for AirtimeState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { senders, rate, share, growth, target, phase } = self;
        write!(
            f,
            "{phase}; sending stations: {senders}; delivery rate {rate:#}, share {share:#}; queueing \
             delay {} ms, target {} ms",
            growth.as_millis(),
            target.as_millis(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decision(basis: Basis) -> Decision {
        let max_rate = Some(Rate::from_mbps(20));
        let up = crate::OwnTraffic { max_rate, ..crate::OwnTraffic::default() };
        let seen = Observation { up, senders: 4, ..Observation::default() };
        Decision::new(Instant::ZERO, LawName::Airtime, &seen, (Bounds::NONE, basis), None)
    }

    #[test]
    fn the_share_is_that_of_the_law_and_without_one_the_rate_alone_over_the_senders() {
        assert_eq!(decision(Basis::Idle).share, Some(Rate::from_mbps(5)));
        let state = AirtimeState {
            senders: 4,
            rate: Rate::from_mbps(3),
            share: Rate::from_mbps(8),
            growth: Duration::ZERO,
            target: Duration::from_millis(9),
            phase: Phase::Steady,
        };
        let of = |up, down| decision(Basis::Airtime { up, down });
        for by_law in [of(Some(state), None), of(None, Some(state))] {
            assert_eq!(by_law.share, Some(Rate::from_mbps(8)));
        }
        let by_law = of(None, Some(state));
        assert_eq!(by_law.airtime(Direction::Down), Some(state));
        assert_eq!(by_law.airtime(Direction::Up), None);
    }
}
