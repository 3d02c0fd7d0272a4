//! The events of a controller: decisions, and changes among the peers.

use std::fmt;

use wakeai_units::{Instant, Rate};

use crate::common::Difference;
use crate::{CommonLaw, Decision, PeerLaw, ReservationState, StationId, Turn};

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
    Decision(Decision),
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
            Self::Decision(decision) => write!(f, "{} {decision}", decision.at),
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
