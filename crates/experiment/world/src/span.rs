//! The times of a run: its beginning, the end of the warm-up, the middle and the end, and what counts.

use wakeai_scenario::Experiment;
use wakeai_units::{Duration, Instant};

/// The times of a run.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// The run's time zero.
    pub origin: Instant,
    /// The end of the warmup, from which on the figures count.
    pub warm: Instant,
    /// The end of the scenario's duration.
    pub end: Instant,
}

impl Span {
    /// The times of a run of `experiment` that begins at `origin`.
    pub fn new(origin: Instant, experiment: &Experiment) -> Self {
        let (warm, end) = (origin + experiment.warmup, origin + experiment.duration);
        Self { origin, warm, end }
    }

    /// The middle of the time that counts for the figures.
    pub(crate) fn middle(&self) -> Instant {
        let half = self.end.saturating_since(self.warm).as_nanos() / 2;
        self.warm + Duration::from_nanos(half)
    }

    /// The time since the run's time zero; zero for earlier times.
    pub fn since(&self, at: Instant) -> Duration {
        at.saturating_since(self.origin)
    }

    /// The scenario's duration.
    pub fn length(&self) -> Duration {
        self.since(self.end)
    }

    /// Whether `at` lies in the run.
    pub fn contains(&self, at: Instant) -> bool {
        (self.origin..=self.end).contains(&at)
    }

    /// Whether an event at `at` counts for the figures.
    pub fn counts(&self, at: Instant) -> bool {
        (self.warm..=self.end).contains(&at)
    }

    /// The part of `amount` that arrives between `since` and the end of the run, if it arrives at a constant
    /// rate between `from` and `to`. What has no length counts as a whole where `to` is in that time.
    pub(crate) fn part(&self, amount: u64, (from, to): (Instant, Instant), since: Instant) -> u64 {
        let length = to.saturating_since(from).as_nanos();
        if length == 0 {
            return if (since..=self.end).contains(&to) { amount } else { 0 };
        }
        let common = to.min(self.end).saturating_since(from.max(since)).as_nanos();
        let part = u128::from(amount) * u128::from(common) / u128::from(length);
        u64::try_from(part).unwrap_or(amount).min(amount)
    }
}
