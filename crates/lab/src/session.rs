//! The lab as a world: runs one after another, each judged by its lateness and its waits.

use std::cell::RefCell;
use std::path::PathBuf;

use wakeai_scenario::result::{Lateness, Report};
use wakeai_world::session::Planned;
use wakeai_world::{Outcome, Task, World};

use crate::driver::Strays;
use crate::error::{LabError, Lapse};
use crate::options::LabOptions;
use crate::run::{self, Bench};

/// The runs of one command.
pub(crate) struct Lab<'a> {
    options: &'a LabOptions,
    bench: Bench<'a>,
    /// Where the agents' files of a run go that are kept.
    agents: Option<PathBuf>,
    /// The first run that was not faithful, and in what.
    first: RefCell<Option<(String, Lapse)>>,
}

impl World for Lab<'_> {
    const NAME: &'static str = "lab";
    type Error = LabError;

    fn planned(&self, runs: &[Planned<'_>]) {
        self.bench.progress.runs(runs.len());
    }

    fn run(&self, task: Task<'_>) -> Result<Outcome, LabError> {
        let progress = self.bench.progress;
        progress.run_begins(&task.name, task.condition.scenario.duration);
        let outcome = run::run(&self.bench, &task, &self.directory(&task))?;
        progress.run_ends();
        self.judge(&task.name, &outcome);
        let lateness = self.lateness(&outcome);
        Ok(Outcome {
            stations: outcome.expanded.stations,
            end: outcome.end,
            flows: outcome.flows,
            rtt: outcome.rtt,
            errors: outcome.errors,
            lateness: Some(lateness),
            drops: None,
        })
    }
}

impl<'a> Lab<'a> {
    /// A lab without runs yet; agents' files go into `agents` where they are kept.
    pub(crate) fn new(options: &'a LabOptions, bench: Bench<'a>, agents: Option<PathBuf>) -> Self {
        Self { options, bench, agents, first: RefCell::new(None) }
    }

    /// The report, unless a run was not faithful.
    pub(crate) fn judged(self, report: Report) -> Result<Report, LabError> {
        match self.first.into_inner() {
            None => Ok(report),
            Some((run, lapse)) => {
                Err(LabError::Unfaithful { run, lapse, report: Box::new(report) })
            }
        }
    }

    /// Where the agents' files go.
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

    /// Remembers the first unfaithful run, and says what else the user should know.
    fn judge(&self, name: &str, outcome: &run::Outcome) {
        let driver = &outcome.driver;
        let strays = driver.strays;
        tracing::info!(
            run = name,
            p50 = %driver.lateness.quantile(0.5),
            p99 = %driver.lateness.quantile(0.99),
            max = %driver.lateness.max(),
            ?strays,
            counters = ?driver.counters,
            "a run has ended"
        );
        for lack in &driver.lacks {
            self.bench.progress.note(lack);
        }
        if strays != Strays::default() {
            self.bench.progress.note(&format!("{name}: packets went astray: {strays}"));
        }
        if outcome.lost > 0 {
            let lost = outcome.lost;
            self.bench.progress.note(&format!("{name}: the monitor lost {lost} records"));
        }
        if let Some((flow, late)) = outcome.stragglers.first() {
            let count = outcome.stragglers.len();
            let number = flow + 1;
            self.bench.progress.note(&format!(
                "{name}: {count} flows started late; flow {number} got its first data {late} \
                 after its start"
            ));
        }
        let waits = outcome.waits.quantile(0.99);
        if waits > self.options.waits_p99 && !outcome.has_helpers {
            self.bench.progress.note(&format!(
                "{name}: ordinary processes waited {waits} and longer for a processor (one time in \
                 100): there were neither agents nor proxies, which would have starved"
            ));
        }
        if let Some(lapse) = self.lapse(outcome) {
            self.first.borrow_mut().get_or_insert_with(|| (name.to_owned(), lapse));
        }
    }

    /// In what a run was not faithful. Without agents and proxies nobody decides late: what senders and
    /// receivers do, the kernel does for them.
    fn lapse(&self, outcome: &run::Outcome) -> Option<Lapse> {
        let (lateness, options) = (&outcome.driver.lateness, self.options);
        let (p99, max) = (lateness.quantile(0.99), lateness.max());
        let (allowed_p99, allowed_max) = (options.lateness_p99, options.lateness_max);
        if p99 > allowed_p99 || max > allowed_max {
            let releases = lateness.count();
            return Some(Lapse::Late { releases, p99, max, allowed_p99, allowed_max });
        }
        let (p99, allowed) = (outcome.waits.quantile(0.99), options.waits_p99);
        (outcome.has_helpers && p99 > allowed).then_some(Lapse::Starved { p99, allowed })
    }

    fn lateness(&self, outcome: &run::Outcome) -> Lateness {
        let lateness = &outcome.driver.lateness;
        Lateness {
            releases: lateness.count(),
            p50_ms: lateness.quantile(0.5).as_millis_f64(),
            p99_ms: lateness.quantile(0.99).as_millis_f64(),
            max_ms: lateness.max().as_millis_f64(),
            faithful: self.lapse(outcome).is_none(),
            waits_p99_ms: outcome.waits.quantile(0.99).as_millis_f64(),
        }
    }
}
