//! Simulates without the GIL. Ctrl-C ends the simulation.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use pyo3::prelude::*;
use wakeai_results::records::Output;
use wakeai_scenario::solo_plan;
use wakeai_world::{Asked, Options, Progress, RunError, SoloKey};

use crate::errors;
use crate::report::PyReport;
use crate::scenario::Scenario;

/// The interval at which Python handles the signals that have arrived.
const SIGNALS: Duration = Duration::from_millis(50);

/// Simulates a scenario. Returns the result, and the messages for the user.
#[pyfunction]
#[pyo3(signature = (scenario, *, seed, repeat, conditions, jobs, out, force, captures, known))]
#[allow(clippy::too_many_arguments, reason = "the keyword arguments of a Python function")]
pub(crate) fn run(
    py: Python<'_>,
    scenario: &Scenario,
    seed: u64,
    repeat: u32,
    conditions: Vec<String>,
    jobs: usize,
    out: Option<PathBuf>,
    force: bool,
    captures: bool,
    known: Vec<(String, u64, f64)>,
) -> PyResult<(PyReport, Vec<String>)> {
    let output = |directory| Output { directory, force, scenario: scenario.file.clone() };
    let known = known.into_iter().map(|(run, seed, mbps)| (SoloKey { run, seed }, mbps));
    let known = known.collect();
    let options = Options { seed, repeat, conditions, out: out.map(output), captures, known };
    let watch = Watch::default();
    let simulate = || wakeai_sim::run(&options, jobs, &scenario.read, &watch);
    let report = interruptible(py, &watch, simulate)?;
    let notes = watch.notes.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok((PyReport(report), notes))
}

/// The solo runs that the runs of a scenario need: the key of each, and its seed.
#[pyfunction]
#[pyo3(signature = (scenario, *, seed, repeat, conditions))]
pub(crate) fn solos(
    py: Python<'_>,
    scenario: &Scenario,
    seed: u64,
    repeat: u32,
    conditions: Vec<String>,
) -> PyResult<Vec<(String, u64)>> {
    let options = Options { seed, repeat, conditions, ..Options::default() };
    let asked = Asked::new(&scenario.read, &options);
    let asked = asked.map_err(|error| errors::run(py, &error))?;
    Ok(asked.solos().into_keys().map(|solo| (solo.run, solo.seed)).collect())
}

/// Simulates the solo run with the key `run`, one of [`solos`]. Returns the goodput in Mbit/s.
#[pyfunction]
#[pyo3(signature = (scenario, *, run, seed, conditions))]
pub(crate) fn solo(
    py: Python<'_>,
    scenario: &Scenario,
    run: &str,
    seed: u64,
    conditions: Vec<String>,
) -> PyResult<f64> {
    let asked = Asked::new(&scenario.read, &Options { conditions, ..Options::default() });
    let asked = asked.map_err(|error| errors::run(py, &error))?;
    let solo = asked.conditions.iter().flat_map(solo_plan).find(|solo| solo.key() == run);
    let solo = solo.ok_or_else(|| {
        errors::new(py, "RunError", "the scenario needs no solo run with this key")
    })?;
    let watch = Watch::default();
    interruptible(py, &watch, || wakeai_sim::alone(&solo.condition, seed, &watch))
}

/// Ends the runs if a signal handler of Python has raised an exception, and keeps the messages.
#[derive(Default)]
struct Watch {
    is_interrupted: AtomicBool,
    notes: Mutex<Vec<String>>,
}

impl Progress for Watch {
    fn is_interrupted(&self) -> bool {
        self.is_interrupted.load(Ordering::Relaxed)
    }

    fn note(&self, text: &str) {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).push(text.to_owned());
    }
}

/// Runs `work` on another thread without the GIL. This thread meanwhile lets Python handle
/// signals, which it does on the main thread only. An exception of a handler ends the work.
fn interruptible<T: Send>(
    py: Python<'_>,
    watch: &Watch,
    work: impl FnOnce() -> Result<T, RunError> + Send,
) -> PyResult<T> {
    let (done, raised) = py.detach(|| {
        std::thread::scope(|scope| {
            let (ended, end) = mpsc::channel::<()>();
            let worker = scope.spawn(move || {
                let _ended = ended; // dropped at the end, and when the work panics
                work()
            });
            let mut raised = None;
            while end.recv_timeout(SIGNALS) == Err(RecvTimeoutError::Timeout) {
                if raised.is_none() {
                    raised = Python::attach(handle_signals).err();
                    watch.is_interrupted.store(raised.is_some(), Ordering::Relaxed);
                }
            }
            (worker.join(), raised)
        })
    });
    if let Some(raised) = raised {
        return Err(raised);
    }
    match done {
        Ok(done) => done.map_err(|error| errors::run(py, &error)),
        // The panic's message is on standard error. A grid goes on with its other runs.
        Err(_) => Err(errors::new(py, "RunError", "the simulator has failed: this is a bug")),
    }
}

fn handle_signals(py: Python<'_>) -> PyResult<()> {
    py.check_signals()
}
