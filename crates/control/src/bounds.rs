//! What a law decides.

use std::fmt;

use wakeai_units::{Bytes, Rate, Segments};

/// Limits on what a station, or one connection of it, keeps in flight, and its share of the host's queue.
///
/// For a station as a whole they are shared out by [`divide`](crate::divide). `floor` is never
/// above `ceiling`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The congestion window is not below this many segments; zero binds nothing.
    pub floor: Segments,
    /// The congestion window is not above this many segments; [`Segments::MAX`] binds nothing.
    pub ceiling: Segments,
    /// Data leaves no faster than this.
    pub pacing: Option<Rate>,
    /// So much may wait in the host's queue where TCP small queues would let less in, such as an
    /// aggregate where it would be two packets; zero: as Linux has it. Takes effect only under a ceiling
    /// and where nothing paces.
    pub small_queue: Bytes,
}

impl Bounds {
    /// Binds nothing: connections behave as plain CUBIC.
    pub const NONE: Self = Self {
        floor: Segments::ZERO,
        ceiling: Segments::MAX,
        pacing: None,
        small_queue: Bytes::ZERO,
    };

    /// A window held between `floor` and `ceiling` (a floor above the ceiling is lowered to it).
    pub fn window(floor: Segments, ceiling: Segments) -> Self {
        Self { floor: floor.min(ceiling), ceiling, ..Self::NONE }
    }

    /// Whether nothing is bound.
    pub fn is_none(&self) -> bool {
        *self == Self::NONE
    }
}

impl fmt::Display for Bounds {
    /// `200..555`, `0..unbounded`, `1..2 at 3Mbit/s`, `9..30, 65.535kB in the host's queue`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.ceiling == Segments::MAX {
            write!(f, "{}..unbounded", self.floor)?;
        } else {
            write!(f, "{}..{}", self.floor, self.ceiling)?;
        }
        if let Some(rate) = self.pacing {
            write!(f, " at {rate}")?;
        }
        if self.small_queue > Bytes::ZERO {
            write!(f, ", {} in the host's queue", self.small_queue)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_bound_is_not_told() {
        let window = Bounds::window(Segments::new(9), Segments::new(30));
        let small_queue = Bytes::new(65_535);
        let pacing = Some(Rate::from_mbps(3));
        let all = Bounds { pacing, small_queue, ..window };
        assert_eq!(Bounds::NONE.to_string(), "0..unbounded");
        assert_eq!(window.to_string(), "9..30");
        assert_eq!(all.to_string(), "9..30 at 3Mbit/s, 65.535kB in the host's queue");
    }
}
