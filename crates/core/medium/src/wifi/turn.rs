//! The time that an exchange (a data frame with its control frames) has.

use wakeai_units::{Duration, Instant};

use super::frames::Limits;
use super::link::StationLink;

/// The time of an exchange within a TXOP, which is the time of one access.
#[derive(Clone, Copy)]
pub(crate) struct Turn {
    pub(crate) start: Instant,
    pub(crate) txop_end: Instant,
    /// Whether this is the first exchange of the TXOP. The first exchange may be protected and may
    /// have any length. A further exchange must fit into the rest of the TXOP (10.23.2.9).
    pub(crate) first: bool,
}

impl Turn {
    /// The limits of the data frame. In the first exchange the data frame starts after RTS and CTS.
    pub(crate) fn limits(&self, station: &StationLink) -> Limits {
        if self.txop_end == self.start {
            return station.limits;
        }
        let lead = if self.first { station.lead } else { Duration::ZERO };
        station.limits_within(self.txop_end.saturating_since(self.start + lead))
    }

    /// Whether an exchange that ends at `end` may take place.
    pub(crate) fn admits(&self, end: Instant) -> bool {
        self.first || end <= self.txop_end
    }
}
