//! The time that an exchange has.

use wakeai_units::{Duration, Instant};

use super::frames::Limits;
use super::link::Link;

/// The time of an exchange within a TXOP.
#[derive(Clone, Copy)]
pub(crate) struct Turn {
    pub(crate) start: Instant,
    pub(crate) txop_end: Instant,
    /// Whether this is the first exchange of the TXOP. The first one may be protected and have any
    /// length; a further one must fit into the rest of the TXOP (10.23.2.9).
    pub(crate) first: bool,
}

impl Turn {
    /// The limits of the data frame, which starts after the RTS and CTS of the first exchange.
    pub(crate) fn limits(&self, station: &Link) -> Limits {
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
