//! The times of a run.

use wakeai_units::{Duration, Instant};

/// When a run begins, when its figures do, and when it ends at the latest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    /// The run's time zero.
    pub(crate) origin: Instant,
    /// The end of the warmup.
    pub(crate) warm: Instant,
    /// The end of the scenario's duration.
    pub(crate) end: Instant,
}

impl Span {
    pub(crate) fn new(origin: Instant, warmup: Duration, duration: Duration) -> Self {
        Self { origin, warm: origin + warmup, end: origin + duration }
    }

    /// The run's own time.
    pub(crate) fn since(&self, at: Instant) -> Duration {
        at.saturating_since(self.origin)
    }
}
