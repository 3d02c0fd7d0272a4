//! The lab as a world: runs tasks and decides whether each was faithful.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use wakeai_scenario::result::{Lateness, Report};
use wakeai_world::{Outcome, Progress, Task, World};

use crate::driver::Misrouted;
use crate::error::{LabError, Lapse};
use crate::experiment::LabOptions;
use crate::run::{self, Bench, LabRun};

/// The runs of one command.
pub(crate) struct Lab<'a> {
    options: &'a LabOptions,
    bench: Bench<'a>,
    /// The directory of the agents' files, where records are kept.
    agents: Option<PathBuf>,
    /// The first run that was not faithful, and the bound that it exceeded.
    first: Mutex<Option<(String, Lapse)>>,
}

impl World for Lab<'_> {
    const NAME: &'static str = "lab";
    type Error = LabError;

    fn progress(&self) -> &dyn Progress {
        self.bench.progress
    }

    fn run(&self, task: Task<'_>) -> Result<Outcome, LabError> {
        let run = run::run(&self.bench, &task, &self.directory(&task))?;
        self.judge(&task.name, &run);
        let lateness = Some(self.lateness(&run));
        Ok(Outcome { lateness, ..run.outcome })
    }
}

impl<'a> Lab<'a> {
    /// A lab without runs yet.
    pub(crate) fn new(options: &'a LabOptions, bench: Bench<'a>, agents: Option<PathBuf>) -> Self {
        Self { options, bench, agents, first: Mutex::default() }
    }

    /// The report; an error with the report where a run was not faithful.
    pub(crate) fn judged(self, report: Report) -> Result<Report, LabError> {
        match self.first.into_inner().unwrap_or_else(PoisonError::into_inner) {
            None => Ok(report),
            Some((run, lapse)) => {
                Err(LabError::Unfaithful { run, lapse, report: Box::new(report) })
            }
        }
    }

    /// The directory of the agents' files of a run.
    fn directory(&self, task: &Task<'_>) -> PathBuf {
        let scratch = self.bench.scratch;
        match (task.place, &self.agents) {
            (None, _) => scratch.join("solo"),
            (Some((_, repeat)), Some(kept)) => {
                kept.join(format!("{}-{repeat}", task.condition.name()))
            }
            (Some((index, _)), None) => scratch.join(index.to_string()),
        }
    }

    /// Remembers the first unfaithful run, and notes what the user should know.
    fn judge(&self, name: &str, run: &LabRun) {
        let driver = &run.driver;
        let misrouted = driver.misrouted;
        tracing::info!(
            name,
            p50 = %driver.lateness.percentile(50.0),
            p99 = %driver.lateness.percentile(99.0),
            max = %driver.lateness.max(),
            ?misrouted,
            counters = ?driver.counters,
            "a run has ended"
        );
        for missing in &driver.missing {
            self.bench.progress.note(missing);
        }
        if misrouted != Misrouted::default() {
            self.bench.progress.note(&format!("{name}: packets went astray: {misrouted}"));
        }
        if run.lost > 0 {
            let lost = run.lost;
            self.bench.progress.note(&format!("{name}: the monitor lost {lost} records"));
        }
        if let Some((flow, late)) = run.late_starts.first() {
            let count = run.late_starts.len();
            let number = flow + 1;
            self.bench.progress.note(&format!(
                "{name}: {count} flows started late; flow {number} got its first data {late} \
                 after its start"
            ));
        }
        let waits = run.waits.percentile(99.0);
        if waits > self.options.waits_p99 && !run.has_helpers {
            self.bench.progress.note(&format!(
                "{name}: ordinary processes waited {waits} and longer for a processor (one time in \
                 100): there were neither agents nor proxies, which would have starved"
            ));
        }
        if let Some(lapse) = self.lapse(run) {
            let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
            first.get_or_insert_with(|| (name.to_owned(), lapse));
        }
    }

    /// The bound that a run exceeded, if any. The waits count only with agents or proxies: the work of senders and
    /// receivers is done by the kernel.
    fn lapse(&self, run: &LabRun) -> Option<Lapse> {
        let (lateness, options) = (&run.driver.lateness, self.options);
        let (p99, max) = (lateness.percentile(99.0), lateness.max());
        let (allowed_p99, allowed_max) = (options.lateness_p99, options.lateness_max);
        if p99 > allowed_p99 || max > allowed_max {
            let releases = lateness.count();
            return Some(Lapse::Late { releases, p99, max, allowed_p99, allowed_max });
        }
        let (p99, allowed) = (run.waits.percentile(99.0), options.waits_p99);
        (run.has_helpers && p99 > allowed).then_some(Lapse::Starved { p99, allowed })
    }

    fn lateness(&self, run: &LabRun) -> Lateness {
        let lateness = &run.driver.lateness;
        Lateness {
            releases: lateness.count(),
            p50_ms: lateness.percentile(50.0).as_millis_f64(),
            p99_ms: lateness.percentile(99.0).as_millis_f64(),
            max_ms: lateness.max().as_millis_f64(),
            faithful: self.lapse(run).is_none(),
            waits_p99_ms: run.waits.percentile(99.0).as_millis_f64(),
        }
    }
}
