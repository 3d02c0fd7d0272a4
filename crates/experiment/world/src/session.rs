//! Makes all runs of a command: the runs of the conditions, and before them the solo runs, which
//! measure what each station reaches alone.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use wakeai_results::result::{
    FailedRun, GuestMachine, Max, MaxFrom, MeasuredFlow, Outcome, Report, Run, given_maxima,
};
use wakeai_scenario::{ResolvedCondition, StationDirection, repeat_seed, solo_lengths, solo_plan};
use wakeai_units::Duration;

use crate::VERSION;
use crate::agent::{StationFacts, facts};
use crate::asked::{Asked, Made, Progress, RunError, Silent};
use crate::recorder::{Recorder, RunSink};
use crate::solos::{KnownSolos, SoloKey};

/// The name of a solo run in messages.
const ALONE: &str = "one station alone";

/// An implementation that runs scenarios: the simulator, the lab or the field.
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

    /// The guests in which the runs are made, if they are.
    fn guest(&self) -> Option<GuestMachine> {
        None
    }

    /// What each station reaches alone, in a world that has measured it for each by itself. `None`: the session makes the solo
    /// runs, of which equal stations share one.
    fn maxima(&self) -> Option<BTreeMap<StationDirection, Max>> {
        None
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

/// Makes all runs, up to `jobs` at a time: first the solo runs, then the runs of the conditions. The report
/// does not depend on `jobs`.
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
    let mut known = asked.known.clone();
    let solos = if world.maxima().is_some() { BTreeMap::new() } else { asked.solos() };
    let solos = solos.into_iter().filter(|(key, _)| !known.contains_key(key));
    let solos: Vec<(SoloKey, ResolvedCondition)> = solos.collect();
    let repeats = asked.conditions.iter().flat_map(|of| vec![of; asked.repeat as usize]);
    let alone = solos.iter().filter_map(|(_, solo)| solo_lengths(&solo.experiment).next());
    let lengths = alone.chain(repeats.map(|condition| condition.experiment.duration));
    world.progress().runs(&lengths.collect::<Vec<_>>());
    let (alone, failed) = at_once(jobs, solos.len(), |number| {
        let (key, condition) = &solos[number];
        run_alone(world, number, condition, key.seed)
    });
    if let Some(error) = failed {
        return Err(error);
    }
    let before = solos.len();
    known.extend(solos.into_iter().map(|(key, _)| key).zip(alone));
    let session = Session { world, asked, recorder, known, before };
    let (runs, failed) = at_once(jobs, session.count(), |ordinal| session.run(ordinal));
    session.finish(runs, failed)
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

/// The runs of the conditions, by condition and then by repeat.
struct Session<'a, W> {
    world: &'a W,
    asked: &'a Asked<'a>,
    recorder: Option<Recorder>,
    /// The goodputs of all solo runs.
    known: KnownSolos,
    /// The number of solo runs that were made before.
    before: usize,
}

impl<W: World> Session<'_, W> {
    fn count(&self) -> usize {
        self.asked.conditions.len() * self.asked.repeat as usize
    }

    /// The index of the run's condition, and the number of the repeat.
    fn place(&self, ordinal: usize) -> (usize, u32) {
        let repeats = self.asked.repeat as usize;
        (ordinal / repeats, (ordinal % repeats) as u32)
    }

    /// The name of a run in messages.
    fn name(&self, ordinal: usize) -> String {
        let (index, repeat) = self.place(ordinal);
        format!("{} {}", self.asked.conditions[index].name(), repeat + 1)
    }

    fn run(&self, ordinal: usize) -> Result<Run, W::Error> {
        let (index, repeat) = self.place(ordinal);
        let condition = &self.asked.conditions[index];
        let seed = repeat_seed(self.asked.seed, repeat);
        let measured = self.world.maxima();
        let mut maxima = given_maxima(condition);
        let plan = if measured.is_some() { Vec::new() } else { solo_plan(condition) };
        for (key, max) in measured.into_iter().flatten() {
            maxima.entry(key).or_insert(max);
        }
        for solo in plan {
            let mbps = self.known[&SoloKey { run: solo.key(), seed }];
            let max = Max { mbps, from: MaxFrom::Solo };
            maxima.extend(solo.applies_to.into_iter().map(|to| (to, max)));
        }
        let sink = self.recorder.as_ref().map(|recorder| {
            recorder.run(ordinal, condition.name(), repeat, condition.experiment.expand(seed))
        });
        let task = Task {
            number: self.before + ordinal,
            name: self.name(ordinal),
            condition,
            place: Some((index, repeat)),
            seed,
            facts: facts(condition, &maxima),
            sink: sink.clone(),
        };
        let (number, began, progress) = (task.number, Instant::now(), self.world.progress());
        progress.begins(number, &task.name);
        let outcome = self.world.run(task)?;
        progress.ends(number);
        let run = Run::new(condition, repeat, began.elapsed().as_secs_f64(), &maxima, &outcome);
        if let Some(sink) = sink {
            sink.end(&run).map_err(RunError::from)?;
        }
        Ok(run)
    }

    /// The report of the runs that were made; `failed` is the failure of the next one.
    fn finish(mut self, runs: Vec<Run>, failed: Option<W::Error>) -> Result<Report, W::Error> {
        let recorder = self.recorder.take();
        let mut report = Report {
            scenario: self.asked.scenario.name.clone(),
            world: W::NAME.to_owned(),
            version: VERSION.to_owned(),
            seed: self.asked.seed,
            guest: self.world.guest(),
            runs,
            failed: None,
        };
        let Some(error) = failed else {
            if let Some(recorder) = recorder {
                recorder.finish(&report).map_err(RunError::from)?;
            }
            return Ok(report);
        };
        if self.world.progress().is_interrupted() {
            return Err(error);
        }
        report.failed = Some(FailedRun {
            run: self.name(report.runs.len()),
            reason: error.to_string(),
            asked: self.count() as u64,
        });
        let records = recorder.and_then(|recorder| recorder.keep(&mut report));
        let is_first = report.runs.is_empty();
        Err(if is_first { error } else { W::after(error, Made { report, records }) })
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

/// Makes the things 0 to `count` - 1, up to `jobs` at a time. Returns those before the first that failed, and its
/// failure. Once one has failed or panicked, no further one is begun.
fn at_once<T: Send, E: Send>(
    jobs: usize,
    count: usize,
    make: impl Fn(usize) -> Result<T, E> + Sync,
) -> (Vec<T>, Option<E>) {
    let (next, results) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    let work = || {
        let _stop = StopOthers { next: &next, count };
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return;
            }
            let result = make(number);
            let failed = result.is_err();
            results.lock().unwrap_or_else(PoisonError::into_inner).insert(number, result);
            if failed {
                return;
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..jobs {
            scope.spawn(work);
        }
        work();
    });
    let results = results.into_inner().unwrap_or_else(PoisonError::into_inner).into_values();
    let mut failed = None;
    let made = results.map_while(|result| result.map_err(|error| failed = Some(error)).ok());
    (made.collect(), failed)
}

/// Where a thread ends, there is nothing left, or one has failed or panicked: the other threads begin no further one.
struct StopOthers<'a> {
    next: &'a AtomicUsize,
    count: usize,
}

impl Drop for StopOthers<'_> {
    fn drop(&mut self) {
        self.next.store(self.count, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::mpsc::{Sender, channel};
    use std::thread::current;

    use super::*;

    thread_local! {
        /// It is dropped when its thread has ended, so after all that a panic unwinds.
        static ENDS: RefCell<Option<Sender<()>>> = const { RefCell::new(None) };
    }

    #[test]
    fn where_one_panics_the_others_begin_no_further_one() {
        let (caller, begun) = (current().id(), AtomicUsize::new(0));
        let (ends, ended) = channel();
        let (ends, ended) = (Mutex::new(Some(ends)), Mutex::new(ended));
        let make = |_| {
            begun.fetch_add(1, Ordering::Relaxed);
            if current().id() == caller {
                let _ = ended.lock().unwrap().recv(); // fails when the other thread has ended
                return Ok::<_, ()>(());
            }
            let ends = ends.lock().unwrap().take();
            ENDS.with(|place| *place.borrow_mut() = ends);
            panic!("as the test wants");
        };
        assert!(catch_unwind(AssertUnwindSafe(|| at_once(2, 10, make))).is_err());
        assert_eq!(begun.into_inner(), 2);
    }
}
