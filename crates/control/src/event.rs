//! Narration: why a bound is what it is, and what became of the peers.

use std::fmt;

use wakeai_units::{Duration, Instant, Rate};

use crate::{Bounds, StationId};

/// Where a law says why. A log, a trace and a test read the same.
pub trait Narrator {
    /// Takes one reason for the bounds of this tick.
    fn narrate(&mut self, reason: Reason);
}

/// A narrator that nobody listens to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Narrator for Silent {
    fn narrate(&mut self, _reason: Reason) {}
}

impl Narrator for Vec<Reason> {
    fn narrate(&mut self, reason: Reason) {
        self.push(reason);
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
    /// The smaller of two candidates each (001 §3.2 step 6).
    Candidates {
        /// Stations sending.
        senders: u32,
        /// RTT growth.
        growth: Option<Duration>,
        /// By the number of stations; `None` while the rate or the RTT is unknown.
        by_senders: Option<Bounds>,
        /// By RTT growth.
        by_growth: Bounds,
    },
    /// A share of the air and a short queue.
    Airtime {
        /// Stations sending.
        senders: u32,
        /// What this station delivers.
        rate: Rate,
        /// RTT growth.
        growth: Duration,
        /// The growth that is aimed at.
        target: Duration,
        /// Probe.
        probe: Option<u32>,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ByHand => write!(f, "set by hand"),
            Self::Airtime { senders, rate, growth, target, probe } => write!(
                f,
                "{senders} sending, {rate}, growth {} of {} ms, {probe:?}",
                growth.as_millis(),
                target.as_millis(),
            ),
            Self::Idle => write!(f, "nothing is being sent"),
            Self::Candidates { senders, growth, by_senders, by_growth } => {
                match by_senders {
                    Some(bounds) => write!(f, "{senders} sending: {bounds}")?,
                    None => write!(f, "{senders} sending: rate or RTT unknown")?,
                }
                match growth {
                    Some(growth) => {
                        write!(f, "; RTT growth {} ms: {by_growth}", growth.as_millis())
                    }
                    None => write!(f, "; no RTT yet: {by_growth}"),
                }
            }
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
    /// A peer was heard and is known to be live.
    PeerJoined {
        /// When.
        at: Instant,
        /// Who.
        station: StationId,
    },
    /// A peer was silent for three of its intervals.
    PeerLeft {
        /// When.
        at: Instant,
        /// Who.
        station: StationId,
    },
    /// A peer has started anew (another boot id).
    PeerRestarted {
        /// When.
        at: Instant,
        /// Who.
        station: StationId,
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
            Self::PeerJoined { at, station } => write!(f, "{at} peer {station} joined"),
            Self::PeerLeft { at, station } => write!(f, "{at} peer {station} left"),
            Self::PeerRestarted { at, station } => write!(f, "{at} peer {station} restarted"),
        }
    }
}
