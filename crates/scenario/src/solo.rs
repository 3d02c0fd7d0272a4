//! What one station reaches alone: which runs find it, and whom each speaks for.

use crate::expand::Direction;
use crate::{ResolvedCondition, Scenario};

/// One station and direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StationDirection {
    /// Index into [`Expanded::stations`](crate::Expanded::stations).
    pub station: usize,
    /// Which way.
    pub direction: Direction,
}

/// A run of one endless flow of one station alone.
#[derive(Clone, Debug)]
pub struct SoloRun {
    /// What to run: one condition without law, one endless flow (the only one).
    pub scenario: Scenario,
    /// Whose `Max` it finds.
    pub applies_to: Vec<StationDirection>,
}

/// The solo runs of a condition.
pub fn solo_plan(condition: &ResolvedCondition) -> Vec<SoloRun> {
    let _ = condition;
    Vec::new()
}
