//! The simulator as a world.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use wakeai_scenario::result::Report;
use wakeai_scenario::{ResolvedCondition, Scenario, StationGroup};
use wakeai_units::Duration;
use wakeai_world::session::{self, Planned};
use wakeai_world::{Asked, Outcome, Recorder, RunSink, Task, World};

use crate::capture::Capture;
use crate::error::SimError;
use crate::simulation::Reached;
use crate::{Job, SimOutcome, simulate_until};

/// Hears how far the runs are; several at once.
pub trait Progress: Sync {
    /// All runs that are to come, solo runs included, by how long they last at the most.
    fn runs(&self, lengths: &[Duration]) {
        let _ = lengths;
    }
    /// A run has begun: its place among all, and what it is called.
    fn begins(&self, run: usize, name: &str) {
        let _ = (run, name);
    }
    /// A run has come so far.
    fn reached(&self, run: usize, elapsed: Duration) {
        let _ = (run, elapsed);
    }
    /// A run has ended.
    fn ends(&self, run: usize) {
        let _ = run;
    }
    /// Whether the user wants the runs to end; asked as often.
    fn is_interrupted(&self) -> bool {
        false
    }
    /// Something that the user should know.
    fn note(&self, text: &str) {
        let _ = text;
    }
}

/// Hears nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {}

/// How a scenario is simulated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimOptions {
    /// The seed of the first repeat.
    pub seed: u64,
    /// How often each condition is run.
    pub repeat: u32,
    /// The conditions to run, by name; empty: all.
    pub conditions: Vec<String>,
    /// Runs at once.
    pub jobs: usize,
}

impl Default for SimOptions {
    /// Seed 1, one repeat, all conditions, one run at a time.
    fn default() -> Self {
        Self { seed: 1, repeat: 1, conditions: Vec::new(), jobs: 1 }
    }
}

/// Simulates `scenario` and reports it. `recorder` makes the records' files, where they are wanted.
///
/// # Errors
///
/// [`SimError`]; [`SimError::exit_status`] is what the command exits with.
pub fn run(
    options: &SimOptions,
    scenario: &Scenario,
    recorder: impl FnOnce(&Asked<'_>, &str) -> Result<Option<Recorder>, SimError>,
    progress: &dyn Progress,
) -> Result<Report, SimError> {
    let asked = Asked {
        scenario,
        conditions: wakeai_world::chosen(scenario, &options.conditions)?,
        seed: options.seed,
        repeat: options.repeat,
    };
    for text in unmodelled(&asked.conditions) {
        progress.note(&text);
    }
    for text in wakeai_world::unheard(&asked.conditions) {
        progress.note(&text);
    }
    let recorder = recorder(&asked, Simulator::NAME)?;
    session::report_on(options.jobs.max(1), &Simulator { progress }, &asked, recorder)
}

/// The keys that this world leaves out, and why, in words: each once.
fn unmodelled(conditions: &[ResolvedCondition]) -> BTreeSet<String> {
    let groups = conditions.iter().flat_map(|condition| &condition.scenario.stations);
    let words = |group: &StationGroup| {
        format!(
            "stations.{}.proxy = true: the simulator has the leg over the air alone, and nothing \
             of what is before the proxy",
            group.name
        )
    };
    groups.filter(|group| group.proxy).map(words).collect()
}

/// Simulates one task after another, and several at once.
struct Simulator<'a> {
    progress: &'a dyn Progress,
}

impl World for Simulator<'_> {
    const NAME: &'static str = "sim";
    type Error = SimError;

    fn planned(&self, runs: &[Planned<'_>]) {
        let lengths = runs.iter().map(|run| run.condition.scenario.duration);
        self.progress.runs(&lengths.collect::<Vec<_>>());
    }

    fn run(&self, task: Task<'_>) -> Result<Outcome, SimError> {
        let number = task.number;
        self.progress.begins(number, &task.name);
        let captures = task.sink.as_ref().map(RunSink::captures).transpose()?.flatten();
        let job = Job {
            condition: task.condition,
            seed: task.seed,
            facts: &task.facts,
            sink: task.sink,
            progress: Duration::ZERO,
        };
        let mut reached = |elapsed| {
            self.progress.reached(number, elapsed);
            self.go_on()
        };
        if reached(Duration::ZERO).is_break() {
            return Err(SimError::Interrupted);
        }
        let outcome = match captures {
            Some(captures) => captured(&job, Capture::new(captures), &mut reached)?,
            None => simulate_until(&job, (), &mut reached)?.0,
        };
        self.progress.ends(number);
        Ok(outcome.outcome)
    }
}

impl Simulator<'_> {
    fn go_on(&self) -> ControlFlow<()> {
        if self.progress.is_interrupted() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

fn captured(
    job: &Job<'_>,
    capture: Capture,
    reached: &mut Reached<'_>,
) -> Result<SimOutcome, SimError> {
    let (outcome, capture) = simulate_until(job, capture, reached)?;
    capture.finish()?;
    Ok(outcome)
}
