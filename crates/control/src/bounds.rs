//! What a law decides.

use std::fmt;

use wakeai_units::{Rate, Segments};

/// Limits on what a station, or one connection of it, keeps in flight.
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
}

impl Bounds {
    /// Binds nothing: connections behave as plain CUBIC.
    pub const NONE: Self = Self { floor: Segments::ZERO, ceiling: Segments::MAX, pacing: None };

    /// A window held between `floor` and `ceiling` (a floor above the ceiling is lowered to it).
    pub fn window(floor: Segments, ceiling: Segments) -> Self {
        Self { floor: floor.min(ceiling), ceiling, pacing: None }
    }

    /// Whether nothing is bound.
    pub fn is_none(&self) -> bool {
        *self == Self::NONE
    }
}

impl fmt::Display for Bounds {
    /// `200..555`, `0..unbounded`, `1..2 at 3Mbit/s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.ceiling == Segments::MAX {
            write!(f, "{}..unbounded", self.floor)?;
        } else {
            write!(f, "{}..{}", self.floor, self.ceiling)?;
        }
        self.pacing.map_or(Ok(()), |rate| write!(f, " at {rate}"))
    }
}
