//! The queueing delay of a run: of each RTT sample the part above the path of its own station.

use wakeai_results::figures::DurationHistogram;
use wakeai_scenario::{Experiment, StationGroup};
use wakeai_units::Duration;

/// The round-trip time of a group's path without load, as it is at the start of a run.
pub(crate) fn path(experiment: &Experiment, group: &StationGroup) -> Duration {
    (experiment.wired.delay + group.wired_delay).saturating_mul(2)
}

/// The queueing delays of all stations together. `rtt` has the RTTs of each group.
pub(crate) fn pooled(experiment: &Experiment, rtt: &[DurationHistogram]) -> DurationHistogram {
    let mut pooled = DurationHistogram::default();
    for (group, rtt) in experiment.stations.iter().zip(rtt) {
        pooled.merge_above(rtt, path(experiment, group));
    }
    pooled
}

/// The 95th percentile, ms; not a number without samples.
pub(crate) fn p95_ms(delays: &DurationHistogram) -> f64 {
    delays.percentile(95.0).map_or(f64::NAN, Duration::as_millis_f64)
}
