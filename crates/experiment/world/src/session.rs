//! Makes all runs of a command: the runs of the conditions, and before them the solo runs, which
//! measure what each station reaches alone.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use wakeai_results::result::{
    FailedRun, Max, MaxFrom, MeasuredFlow, Outcome, Report, Run, given_maxima,
};
use wakeai_scenario::{ResolvedCondition, solo_lengths};
use wakeai_units::Duration;

use crate::VERSION;
use crate::agent::{StationFacts, facts};
use crate::asked::{Asked, Made, Progress, RunError, Silent};
use crate::recorder::{Recorder, RunSink};
use crate::steps::{ALONE, Step, Steps};

/// An implementation that runs scenarios: the simulator or the lab.
pub trait World {
    /// The name of the world in a result.
    const NAME: &'static str;
    /// The error of a run that failed.
    type Error: From<RunError> + std::fmt::Display;

    /// The error of a run that failed after the runs of `made`. A world that does not define it gives the runs
    /// up.
    fn after(error: Self::Error, _made: Made) -> Self::Error {
        error
    }

    /// The progress of the runs.
    fn progress(&self) -> &dyn Progress {
        &Silent
    }

    /// Runs `task`.
    ///
    /// # Errors
    ///
    /// The run has failed. The session then returns no report.
    fn run(&self, task: Task<'_>) -> Result<Outcome, Self::Error>;
}

/// One run.
#[derive(Debug)]
pub struct Task<'a> {
    /// The run's index among all runs.
    pub number: usize,
    /// The run's name in messages.
    pub name: String,
    /// The condition that is run.
    pub condition: &'a ResolvedCondition,
    /// The index of the condition and the number of the repeat; `None` for a solo run.
    pub place: Option<(usize, u32)>,
    /// The seed of this repeat.
    pub seed: u64,
    /// The facts for the configurations of the stations' agents; empty for a solo run.
    pub facts: Vec<StationFacts>,
    /// The handle through which the run writes its records, if any are kept.
    pub sink: Option<RunSink>,
}

impl Task<'_> {
    /// Reports that the run has reached the time `elapsed`; returns `Break` if the user wants the
    /// run to end.
    pub fn reached(&self, progress: &dyn Progress, elapsed: Duration) -> ControlFlow<()> {
        progress.reached(self.number, elapsed);
        if progress.is_interrupted() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// Makes all runs, up to `jobs` at a time. The report does not depend on `jobs`.
///
/// # Errors
///
/// The error of the earliest run that fails, or of records that cannot be written.
pub fn report<W: World + Sync>(
    jobs: usize,
    world: &W,
    asked: &Asked<'_>,
    recorder: Option<Recorder>,
) -> Result<Report, W::Error>
where
    W::Error: Send,
{
    let session = Session::new(world, asked, recorder);
    std::thread::scope(|scope| {
        for _ in 1..jobs {
            scope.spawn(|| session.work());
        }
        session.work();
    });
    session.finish()
}

/// Runs one station alone and returns its goodput in Mbit/s. `condition` is that of a
/// [`SoloRun`](wakeai_scenario::SoloRun).
///
/// # Errors
///
/// The run has failed.
pub fn alone<W: World>(
    world: &W,
    condition: &ResolvedCondition,
    seed: u64,
) -> Result<f64, W::Error> {
    let shortest = solo_lengths(&condition.experiment).next();
    world.progress().runs(&Vec::from_iter(shortest));
    run_alone(world, 0, condition, seed)
}

/// The runs of one command.
struct Session<'a, W: World> {
    world: &'a W,
    asked: &'a Asked<'a>,
    steps: Steps,
    recorder: Option<Recorder>,
    state: Mutex<RunsState<W::Error>>,
    changed: Condvar,
}

/// The state of the runs.
struct RunsState<E> {
    /// The next step that no thread has taken.
    next: usize,
    /// The result of each solo run in Mbit/s, once it is known.
    alone: Vec<Option<f64>>,
    /// The result of each step that is a run of a condition.
    runs: Vec<Option<Run>>,
    /// The earliest step that failed, and why.
    failed: Option<(usize, E)>,
    /// Whether a step has failed or panicked. No further step is begun then.
    stopped: bool,
}

impl<'a, W: World> Session<'a, W> {
    fn new(world: &'a W, asked: &'a Asked<'a>, recorder: Option<Recorder>) -> Self {
        let steps = Steps::new(&asked.conditions, asked.seed, asked.repeat, &asked.known);
        let lengths = steps.order.iter().filter_map(|step| match step {
            Step::Solo(solo) => solo_lengths(&steps.solos[*solo].condition.experiment).next(),
            Step::Condition { condition, .. } => {
                Some(asked.conditions[*condition].experiment.duration)
            }
        });
        world.progress().runs(&lengths.collect::<Vec<_>>());
        let state = RunsState {
            next: 0,
            alone: steps.solos.iter().map(|solo| solo.known).collect(),
            runs: steps.order.iter().map(|_| None).collect(),
            failed: None,
            stopped: false,
        };
        let (state, changed) = (Mutex::new(state), Condvar::new());
        Self { world, asked, steps, recorder, state, changed }
    }

    fn state(&self) -> MutexGuard<'_, RunsState<W::Error>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes one step after another until none is left or one has failed.
    fn work(&self) {
        let guard = StopOnPanic(self);
        while let Some(number) = self.take() {
            if let Err(error) = self.step(number) {
                let mut state = self.state();
                if state.failed.as_ref().is_none_or(|(earliest, _)| number < *earliest) {
                    state.failed = Some((number, error));
                }
                drop(state);
                self.stop();
            }
            self.changed.notify_all();
        }
        drop(guard);
    }

    fn stop(&self) {
        self.state().stopped = true;
        self.changed.notify_all();
        self.recorder.iter().for_each(Recorder::abandon);
    }

    fn take(&self) -> Option<usize> {
        let mut state = self.state();
        let number = state.next;
        if number == self.steps.order.len() || state.stopped {
            return None;
        }
        state.next += 1;
        Some(number)
    }

    fn step(&self, number: usize) -> Result<(), W::Error> {
        match &self.steps.order[number] {
            Step::Solo(solo) => {
                let solo_run = &self.steps.solos[*solo];
                let found = run_alone(self.world, number, &solo_run.condition, solo_run.seed)?;
                self.state().alone[*solo] = Some(found);
            }
            Step::Condition { condition, repeat, seed, needs } => {
                let Some(alone) = self.wait_for(needs) else { return Ok(()) };
                let run = self.condition(number, *condition, *repeat, *seed, &alone)?;
                self.state().runs[number] = Some(run);
            }
        }
        Ok(())
    }

    /// Waits for the results of the solo runs `needs`; `None` if a run has failed. The wait ends,
    /// because solo runs come before the conditions that need them: a thread has already begun
    /// them.
    fn wait_for(&self, needs: &[usize]) -> Option<Vec<f64>> {
        let mut state = self.state();
        loop {
            if state.stopped {
                return None;
            }
            if let Some(found) = needs.iter().map(|solo| state.alone[*solo]).collect() {
                return Some(found);
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn condition(
        &self,
        number: usize,
        index: usize,
        repeat: u32,
        seed: u64,
        alone: &[f64],
    ) -> Result<Run, W::Error> {
        let condition = &self.asked.conditions[index];
        let mut maxima = given_maxima(condition);
        for (solo, mbps) in self.steps.alone[index].iter().zip(alone) {
            let max = Max { mbps: *mbps, from: MaxFrom::Solo };
            maxima.extend(solo.applies_to.iter().map(|to| (*to, max)));
        }
        let ordinal = index * self.asked.repeat as usize + repeat as usize;
        let sink = self.recorder.as_ref().map(|recorder| {
            recorder.run(ordinal, condition.name(), repeat, condition.experiment.expand(seed))
        });
        let task = Task {
            number,
            name: self.steps.name(number, self.asked),
            condition,
            place: Some((index, repeat)),
            seed,
            facts: facts(condition, &maxima),
            sink: sink.clone(),
        };
        let (began, progress) = (Instant::now(), self.world.progress());
        progress.begins(number, &task.name);
        let outcome = self.world.run(task)?;
        progress.ends(number);
        let run = Run::new(condition, repeat, began.elapsed().as_secs_f64(), &maxima, &outcome);
        if let Some(sink) = sink {
            sink.end(&run).map_err(RunError::from)?;
        }
        Ok(run)
    }

    fn finish(self) -> Result<Report, W::Error> {
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut report = Report {
            scenario: self.asked.scenario.name.clone(),
            world: W::NAME.to_owned(),
            version: VERSION.to_owned(),
            seed: self.asked.seed,
            runs: Vec::new(),
            failed: None,
        };
        if let Some((number, error)) = state.failed {
            if self.world.progress().is_interrupted() {
                return Err(error);
            }
            report.runs = state.runs.into_iter().take(number).flatten().collect();
            report.failed = Some(FailedRun {
                run: self.steps.name(number, self.asked),
                reason: error.to_string(),
                asked: self.asked.conditions.len() as u64 * u64::from(self.asked.repeat),
            });
            let records = self.recorder.and_then(|recorder| recorder.keep(&mut report));
            let is_first = report.runs.is_empty();
            return Err(if is_first { error } else { W::after(error, Made { report, records }) });
        }
        report.runs = state.runs.into_iter().flatten().collect();
        if let Some(recorder) = self.recorder {
            recorder.finish(&report).map_err(RunError::from)?;
        }
        Ok(report)
    }
}

/// Makes a solo run and returns the goodput of its flow in Mbit/s. Where the flow has not reached its speed in
/// the first run, longer ones are made.
fn run_alone<W: World>(
    world: &W,
    number: usize,
    condition: &ResolvedCondition,
    seed: u64,
) -> Result<f64, W::Error> {
    let progress = world.progress();
    progress.begins(number, ALONE);
    let mut mbps = 0.0;
    for length in solo_lengths(&condition.experiment) {
        let shorter = condition.lasting(length);
        let task = Task {
            number,
            name: ALONE.to_owned(),
            condition: &shorter,
            place: None,
            seed,
            facts: Vec::new(),
            sink: None,
        };
        let outcome = world.run(task)?;
        let run = Run::new(&shorter, 0, 0.0, &BTreeMap::new(), &outcome);
        mbps = run.flows.iter().map(|flow| flow.goodput_mbps).sum();
        if outcome.flows.iter().all(MeasuredFlow::is_settled) {
            break;
        }
    }
    progress.ends(number);
    Ok(mbps)
}

/// Stops the session when its thread panics. Other threads may wait for a result of that thread,
/// and would otherwise wait for ever.
struct StopOnPanic<'a, 'b, W: World>(&'a Session<'b, W>);

impl<W: World> Drop for StopOnPanic<'_, '_, W> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop();
        }
    }
}
