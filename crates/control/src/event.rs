//! Narration: why a bound is what it is, and what became of the peers.

use std::fmt;

use wakeai_units::{Duration, Instant, Rate};

use crate::reservation::{Share, Standing};
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

/// What the law `airtime` is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Nothing has queued yet: up to the double in a round trip.
    Opening,
    /// The window holds what is delivered and the queue that is aimed at.
    Steady,
    /// The queue is empty: a little more each round trip.
    Probing,
    /// Less than the share for a moment, so that the path shows without queues.
    Draining,
    /// The queue is not ours: stations without agents fill it, and nothing is bound.
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
        /// What its part of the air would deliver.
        share: Rate,
        /// RTT growth.
        growth: Duration,
        /// The growth that is aimed at.
        target: Duration,
        /// What the law is about.
        phase: Phase,
    },
    /// The air that others have reserved is left free.
    Yields {
        /// The part of the air that they claim.
        claimed: Share,
        /// The most that this station sends.
        level: Rate,
    },
    /// This station's own reservation is not bound.
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
                "{phase}; {senders} sending; {:.2} Mbit/s, share {:.2} Mbit/s; RTT growth {} ms, \
                 aim {} ms",
                rate.as_mbps_f64(),
                share.as_mbps_f64(),
                growth.as_millis(),
                target.as_millis(),
            ),
            Self::Yields { claimed, level } => write!(
                f,
                "{claimed} of the air left free for reservations: at most {:.2} Mbit/s",
                level.as_mbps_f64(),
            ),
            Self::Reserved { rate } => {
                write!(f, "{:.2} Mbit/s are reserved", rate.as_mbps_f64())
            }
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
    /// Something has become of this station's reservation.
    Reservation {
        /// When.
        at: Instant,
        /// The rate that is asked for; `None`: none any more.
        rate: Option<Rate>,
        /// What has become of it.
        standing: Standing,
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
            Self::Reservation { at, rate: Some(rate), standing } => {
                write!(f, "{at} reservation of {:.2} Mbit/s: {standing}", rate.as_mbps_f64())
            }
            Self::Reservation { at, rate: None, .. } => write!(f, "{at} reservation given up"),
            Self::PeerJoined { at, station } => write!(f, "{at} peer {station} joined"),
            Self::PeerLeft { at, station } => write!(f, "{at} peer {station} left"),
            Self::PeerRestarted { at, station } => write!(f, "{at} peer {station} restarted"),
        }
    }
}
