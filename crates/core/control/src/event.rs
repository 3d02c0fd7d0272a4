//! The events of a controller: decisions with their reasons, and changes among the peers.

use std::fmt;

use wakeai_units::{Duration, Instant, Rate};

use crate::common::Difference;
use crate::{Bounds, CommonLaw, PeerLaw, ReservationState, Share, StationId, Turn};

/// The phase of the law `airtime`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The path is long and has no queue yet, so the window may double in each round trip.
    Opening,
    /// The window is the station's share of the airtime, as a rate, times the sum of the path's RTT
    /// without queues and the target queueing delay.
    Steady,
    /// The window is larger than in `Steady`, to find unused airtime. The phase begins when the
    /// queueing delay is below half of its target, and ends when the delay is above its target.
    Probing,
    /// The station sends less than its share for some ticks, to measure the RTT of its path without
    /// queues.
    Draining,
    /// Stations without agents fill the access point's queue. A station with bounds would get
    /// nearly nothing beside them, so the law sets no bounds, except a floor in the first five
    /// seconds.
    Released,
}

impl Phase {
    /// Every phase.
    pub const ALL: [Self; 5] =
        [Self::Opening, Self::Steady, Self::Probing, Self::Draining, Self::Released];
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

/// A reason for the bounds of a tick. A law decides once per tick (0.5 s).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
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
    /// The law `airtime` gives the station a share of the airtime, with a short queue.
    Airtime {
        /// The number of stations that send.
        senders: u32,
        /// The rate that this station delivers.
        rate: Rate,
        /// The rate that this station delivers with its share of the airtime.
        share: Rate,
        /// The queueing delay.
        growth: Duration,
        /// The target queueing delay.
        target: Duration,
        /// The law's phase.
        phase: Phase,
    },
    /// This station leaves airtime free for the reservations of others.
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
    Reserved {
        /// The reserved rate.
        rate: Rate,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ByHand => write!(f, "set by hand"),
            Self::Airtime { senders, rate, share, growth, target, phase } => write!(
                f,
                "{phase}; sending stations: {senders}; delivery rate {rate:#}, share {share:#}; \
                 queueing delay {} ms, target {} ms",
                growth.as_millis(),
                target.as_millis(),
            ),
            Self::Yields { claimed, level } => {
                write!(f, "{claimed} of the air left free for reservations: at most {level:#}")
            }
            Self::Reserved { rate } => write!(f, "{rate:#} reserved"),
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

/// A change among the live peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerChange {
    /// A peer has joined: it is live from now on. Either it has proved that its messages are new
    /// and not recordings, or it had left and has sent again before it was removed from the table.
    Joined(StationId),
    /// A peer has left: it was silent for more than three of its message intervals, or for more
    /// than 300 s.
    Left(StationId),
    /// A peer has restarted: its messages have another boot id.
    Restarted(StationId),
    /// A message of a peer has shown that the peer holds something else than this station, although
    /// both have to hold the same.
    HoldsOther {
        /// The peer.
        station: StationId,
        /// What this station holds.
        own: CommonLaw,
        /// What the peer holds.
        theirs: PeerLaw,
    },
    /// A peer that held something else now holds the same as this station.
    HoldsSame(StationId),
}

impl fmt::Display for PeerChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Joined(station) => write!(f, "peer {station} joined"),
            Self::Left(station) => write!(f, "peer {station} left"),
            Self::Restarted(station) => write!(f, "peer {station} restarted"),
            Self::HoldsOther { station, theirs: PeerLaw::Holds(theirs), own } => {
                write!(f, "peer {station} holds another law: ")?;
                for (index, Difference { what, own, theirs }) in
                    own.differences(theirs).iter().enumerate()
                {
                    let comma = if index == 0 { "" } else { ", " };
                    write!(f, "{comma}{} is {theirs} there and {own} here", what.key())?;
                }
                Ok(())
            }
            Self::HoldsOther { station, .. } => {
                write!(f, "peer {station} announces no law: its agent is of an earlier version")
            }
            Self::HoldsSame(station) => write!(f, "peer {station} holds the same law now"),
        }
    }
}

/// An event of a [`Controller`](crate::Controller).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The law has decided on bounds.
    Bounds {
        /// The time of the tick.
        at: Instant,
        /// The law's name.
        law: &'static str,
        /// The decision of the law.
        bounds: Bounds,
        /// The reasons for the decision.
        reasons: Vec<Reason>,
    },
    /// The state of this station's reservation changed.
    Reservation {
        /// The time.
        at: Instant,
        /// The rate that this station asks for; `None` where it has ended the reservation.
        rate: Option<Rate>,
        /// The state of the reservation.
        state: ReservationState,
    },
    /// This station's request for a turn changed.
    Turn {
        /// The time.
        at: Instant,
        /// The request; `None` where the station's transfers have ended.
        turn: Option<Turn>,
    },
    /// The live peers changed.
    Peer {
        /// The time.
        at: Instant,
        /// The change.
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
            Self::Turn { at, turn: Some(turn) } => write!(f, "{at} transfers: this station {turn}"),
            Self::Turn { at, turn: None } => write!(f, "{at} transfers: ended"),
            Self::Peer { at, change } => write!(f, "{at} {change}"),
        }
    }
}
