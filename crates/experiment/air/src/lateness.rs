//! How late the events of a run were.

use wakeai_results::figures::DurationHistogram;
use wakeai_units::Duration;

/// The distribution of delays: how long after its due time each event happened.
#[derive(Clone, Debug, Default)]
pub struct Lateness {
    times: DurationHistogram,
    /// The largest delay, which is not rounded.
    pub max: Duration,
}

impl Lateness {
    /// Adds one delay.
    pub fn record(&mut self, late: Duration) {
        self.times.record(late);
        self.max = self.max.max(late);
    }

    /// The number of delays.
    pub fn count(&self) -> u64 {
        self.times.count()
    }

    /// A percentile in whole microseconds; zero without delays.
    pub fn percentile(&self, percent: f64) -> Duration {
        self.times.percentile(percent).unwrap_or(Duration::ZERO)
    }
}
