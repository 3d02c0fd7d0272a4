//! Measures what a station reaches alone on the air: its goodput, and how long its packets take
//! meanwhile. The study of fairness among unequal terminals calls this goodput `Max_i` (section 3),
//! and the study of TCP-AV calls it the effective bandwidth.

mod meter;
mod round_trips;
mod stream;

pub use meter::{Goodput, Meter};
pub use round_trips::{Grade, RoundTrips};
pub use stream::{MOST_TIME, SoloStream, StreamDirection, StreamKey};
pub(crate) use stream::{OPENING_BYTES, RESULT_BYTES};

use serde::Serialize;

/// The result of one direction.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Leg {
    /// The goodput of one TCP connection.
    pub goodput_mbps: f64,
    /// The goodput of its slowest second.
    pub slowest_second_mbps: f64,
    /// The round trips during the transfer.
    pub rtt: RoundTrips,
    /// How much longer these round trips take than those without load.
    pub grade: Grade,
}

/// The result of the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SoloReport {
    /// The direction from the station.
    pub up: Leg,
    /// The direction to the station.
    pub down: Leg,
    /// Round trips without load.
    pub idle: RoundTrips,
}

/// The least share of the mean goodput that every second of TCP over a quiet channel reaches.
const STEADY: f64 = 0.7;

impl Leg {
    pub(crate) fn new(goodput: &Goodput, rtt: RoundTrips, idle: &RoundTrips) -> Self {
        Self {
            goodput_mbps: goodput.rate.as_mbps_f64(),
            slowest_second_mbps: goodput.slowest_second.as_mbps_f64(),
            rtt,
            grade: Grade::from_increase(rtt.median_ms - idle.median_ms),
        }
    }

    /// Whether every second delivered about as much as the others.
    pub fn is_steady(&self) -> bool {
        self.slowest_second_mbps >= STEADY * self.goodput_mbps
    }
}
