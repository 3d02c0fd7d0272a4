//! What a station reaches alone: its `Max_i` (the study of fairness among unequal terminals, section 3), which is the
//! effective bandwidth of the study of TCP-AV, and how long its packets take meanwhile.

mod meter;
mod round_trips;
mod stream;

pub use meter::{Goodput, Meter};
pub use round_trips::{Grade, RoundTrips};
pub use stream::{Direction, MOST_TIME, Stream, StreamKey};
pub(crate) use stream::{OPENING_BYTES, RESULT_BYTES};

use serde::Serialize;

/// One direction.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Leg {
    /// What one TCP connection delivered.
    pub goodput_mbps: f64,
    /// The slowest second of it.
    pub slowest_second_mbps: f64,
    /// The round trips meanwhile.
    pub rtt: RoundTrips,
    /// How much longer they take than idle ones.
    pub grade: Grade,
}

/// The result of the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SoloReport {
    /// From the station.
    pub up: Leg,
    /// To the station.
    pub down: Leg,
    /// Round trips without load.
    pub idle: RoundTrips,
}

/// A second with less than this share of the mean is a drop that TCP over a quiet channel does not show.
const STEADY: f64 = 0.7;

impl Leg {
    pub(crate) fn new(goodput: &Goodput, rtt: RoundTrips, idle: &RoundTrips) -> Self {
        Self {
            goodput_mbps: goodput.rate.as_mbps_f64(),
            slowest_second_mbps: goodput.slowest_second.as_mbps_f64(),
            rtt,
            grade: Grade::of(rtt.median_ms - idle.median_ms),
        }
    }

    /// Whether every second delivered about as much as the others.
    pub fn is_steady(&self) -> bool {
        self.slowest_second_mbps >= STEADY * self.goodput_mbps
    }
}
