//! Events of a controller: decisions with their reasons, and changes among the peers.

use std::fmt;

use wakeai_units::{Duration, Instant, Rate};

use crate::{Bounds, ReservationState, Share, StationId};

/// What the law `airtime` is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// There is no queue yet: the window may double in each round trip.
    Opening,
    /// The window holds the path and the target queue.
    Steady,
    /// The queue is empty: the window grows a little in each round trip.
    Probing,
    /// The station sends less than its share for some ticks, to measure the RTT of the empty path.
    Draining,
    /// Stations without agents fill the queue, so nothing is bound.
    Released,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Opening => "opening",
            Self::Steady => "steady",
            Self::Probing => "probing",
            Self::Draining => "draining",
            Self::Released => "released",
        })
    }
}

/// Why a law gave its bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The bounds were set by hand.
    ByHand,
    /// Nothing is being sent, so nothing is bound.
    Idle,
    /// Each bound is the smaller of two candidates (Shimada et al., §3.2 step 6).
    Candidates {
        /// Stations sending.
        senders: u32,
        /// Queueing delay; `None` without an RTT sample.
        growth: Option<Duration>,
        /// By the number of stations; `None` while the rate or the RTT is unknown.
        by_senders: Option<Bounds>,
        /// By the queueing delay.
        by_growth: Bounds,
    },
    /// A share of the airtime and a short queue.
    Airtime {
        /// Stations sending.
        senders: u32,
        /// The rate that this station delivers.
        rate: Rate,
        /// The rate that its share of the airtime gives.
        share: Rate,
        /// Queueing delay.
        growth: Duration,
        /// The queueing delay that the law aims at.
        target: Duration,
        /// What the law is doing.
        phase: Phase,
    },
    /// This station leaves airtime free for the reservations of others.
    Yields {
        /// The share of the airtime that they claim.
        claimed: Share,
        /// The rate that this station may send at most.
        level: Rate,
    },
    /// The law does not bind this station below its own reservation.
    Reserved {
        /// The rate.
        rate: Rate,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ByHand => write!(f, "set by hand"),
            Self::Airtime { senders, rate, share, growth, target, phase } => write!(
                f,
                "{phase}; {senders} sending; delivers {rate:#}, share {share:#}; \
                 queueing delay {} ms, target {} ms",
                growth.as_millis(),
                target.as_millis(),
            ),
            Self::Yields { claimed, level } => {
                write!(f, "{claimed} of the air left free for reservations: at most {level:#}")
            }
            Self::Reserved { rate } => write!(f, "{rate:#} reserved"),
            Self::Idle => write!(f, "nothing is being sent"),
            Self::Candidates { senders, growth, by_senders, by_growth } => {
                match by_senders {
                    Some(bounds) => write!(f, "{senders} sending: {bounds}")?,
                    None => write!(f, "{senders} sending: rate or RTT unknown")?,
                }
                match growth {
                    Some(growth) => {
                        write!(f, "; queueing delay {} ms: {by_growth}", growth.as_millis())
                    }
                    None => write!(f, "; no RTT yet: {by_growth}"),
                }
            }
        }
    }
}

/// A change among the live peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerChange {
    /// A peer has proved to be live.
    Joined(StationId),
    /// A peer was silent for three of its intervals.
    Left(StationId),
    /// A peer has restarted: it has another boot id.
    Restarted(StationId),
}

impl fmt::Display for PeerChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Joined(station) => write!(f, "peer {station} joined"),
            Self::Left(station) => write!(f, "peer {station} left"),
            Self::Restarted(station) => write!(f, "peer {station} restarted"),
        }
    }
}

/// Something that happened in a [`Controller`](crate::Controller).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A law decided.
    Bounds {
        /// The tick.
        at: Instant,
        /// Which law.
        law: &'static str,
        /// What it decided.
        bounds: Bounds,
        /// Why.
        reasons: Vec<Reason>,
    },
    /// The state of this station's reservation changed.
    Reservation {
        /// When.
        at: Instant,
        /// The rate that is asked for; `None` where the reservation was given up.
        rate: Option<Rate>,
        /// Its state.
        state: ReservationState,
    },
    /// The live peers changed.
    Peer {
        /// When.
        at: Instant,
        /// How.
        change: PeerChange,
    },
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bounds { at, law, bounds, reasons } => {
                write!(f, "{at} {law}: {bounds} (")?;
                for (index, reason) in reasons.iter().enumerate() {
                    write!(f, "{}{reason}", if index == 0 { "" } else { "; " })?;
                }
                write!(f, ")")
            }
            Self::Reservation { at, rate: Some(rate), state } => {
                write!(f, "{at} reservation of {rate:#}: {state}")
            }
            Self::Reservation { at, rate: None, .. } => write!(f, "{at} reservation given up"),
            Self::Peer { at, change } => write!(f, "{at} {change}"),
        }
    }
}
