//! Runs the simulator, and keeps the details that a report leaves out.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use wakeai_medium::{ContenderCounters, Counters};
use wakeai_results::figures::DurationHistogram;
use wakeai_results::result::Run;
use wakeai_scenario::{Experiment, StationGroup};
use wakeai_sim::{FlowDetail, Observer, SimOutcome};
use wakeai_units::Duration;
use wakeai_world::{Asked, Outcome, RunError, Task, World, session};

use crate::transfers::{StationTransfer, Transfers};

/// A run with its details.
#[derive(Clone, Debug)]
pub struct Detail<O = ()> {
    /// The run.
    pub run: Run,
    /// The medium's counters.
    pub(crate) counters: Counters,
    /// The details of each flow.
    pub(crate) flows: Vec<FlowDetail>,
    /// The queueing delays of all stations.
    pub(crate) queueing: DurationHistogram,
    /// The run's observer.
    pub(crate) observer: O,
}

impl Detail {
    /// The run's completions, timeouts and drops.
    pub fn transfers(&self) -> Transfers {
        let transfers = self.run.flows.iter().zip(&self.flows).map(|(result, detail)| {
            let simulated = result.simulated.unwrap_or_default();
            StationTransfer {
                completion_s: result.completion_s,
                open_s: detail.opened.map_or(0.0, Duration::as_secs_f64),
                syns: simulated.syn_timeouts + 1,
                timeouts: result.timeouts.unwrap_or(0),
                stall_s: simulated.longest_stall_s,
            }
        });
        let access_point_drops = self.counters.access_point.queue_drops;
        Transfers { flows: transfers.collect(), access_point_drops }
    }

    /// The share of the stations' data frames (or RTS, if they are used) that were not answered.
    pub fn failed_share(&self, rts: bool) -> f64 {
        let sum = |figure: fn(&ContenderCounters) -> u64| {
            self.counters.stations.iter().map(figure).sum::<u64>() as f64
        };
        if rts {
            sum(|c| c.rts_failures) / sum(|c| c.rts_attempts)
        } else {
            sum(|c| c.failures) / sum(|c| c.attempts)
        }
    }

    /// The number of frames that needed an answer, from stations and access point.
    pub fn attempts(&self) -> u64 {
        let all = self.counters.contenders();
        all.map(|contender| contender.attempts + contender.rts_attempts).sum()
    }
}

/// Makes all requested runs, `jobs` at once. `step` is the resolution of the flows' progress.
///
/// # Errors
///
/// A run fails.
pub(crate) fn run<O: Observer + Default + Send>(
    jobs: usize,
    asked: &Asked<'_>,
    step: Duration,
) -> Result<Vec<Detail<O>>, RunError> {
    let world = Detailed { step, details: Mutex::default() };
    let report = session::report(jobs, &world, asked, None)?;
    let details = world.details.into_inner().unwrap_or_else(PoisonError::into_inner);
    assert_eq!(details.len(), report.runs.len(), "every run has its details");
    // Both are ordered by condition, then by repeat.
    let both = report.runs.into_iter().zip(details.into_values());
    let detail = |(run, (counters, flows, queueing, observer))| Detail {
        run,
        counters,
        flows,
        queueing,
        observer,
    };
    Ok(both.map(detail).collect())
}

/// The details by condition (index) and repeat; solo runs have none.
type ByPlace<O> = BTreeMap<(usize, u32), (Counters, Vec<FlowDetail>, DurationHistogram, O)>;

struct Detailed<O> {
    step: Duration,
    details: Mutex<ByPlace<O>>,
}

impl<O: Observer + Default> World for Detailed<O> {
    const NAME: &'static str = "sim";
    type Error = RunError;

    fn run(&self, task: Task<'_>) -> Result<Outcome, RunError> {
        let job = wakeai_sim::Job {
            condition: task.condition,
            seed: task.seed,
            facts: &task.facts,
            sink: task.sink,
            progress: self.step,
        };
        let (outcome, observer) = wakeai_sim::simulate(&job, O::default())?;
        let SimOutcome { outcome, counters, flows } = outcome;
        if let Some(place) = task.place {
            let queueing = queueing_delays(&task.condition.experiment, &outcome.rtt);
            let mut details = self.details.lock().unwrap_or_else(PoisonError::into_inner);
            details.insert(place, (counters, flows, queueing, observer));
        }
        Ok(outcome)
    }
}

/// The round-trip time of a group's path without load, as it is at the start of a run.
pub(crate) fn path(experiment: &Experiment, group: &StationGroup) -> Duration {
    (experiment.wired.delay + group.wired_delay).saturating_mul(2)
}

/// The queueing delays of all stations together. `rtt` has the RTTs of each group.
fn queueing_delays(experiment: &Experiment, rtt: &[DurationHistogram]) -> DurationHistogram {
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
