//! The simulator as a world: what `wakeai_world` needs to run scenarios in it.

use wakeai_results::result::Report;
use wakeai_scenario::{Experiment, ResolvedCondition, Scenario, StationGroup};
use wakeai_units::Duration;
use wakeai_world::{
    Asked, Made, Options, Outcome, Progress, RunError, RunSink, Task, World, session,
};

use crate::capture::Capture;
use crate::{Job, simulate_until};

/// Simulates `scenario`, up to `jobs` runs at once, and reports it.
///
/// # Errors
///
/// The error of the earliest run that fails; [`RunError::exit_status`] is the exit status of the
/// command.
pub fn run(
    options: &Options,
    jobs: usize,
    scenario: &Scenario,
    progress: &dyn Progress,
) -> Result<Report, RunError> {
    let asked = Asked::new(scenario, options)?;
    asked.note_keys_without_effect(keys_without_effect, progress);
    let recorder = asked.recorder(options, Simulator::NAME)?;
    session::report(jobs, &Simulator { progress }, &asked, recorder)
}

/// Simulates one station alone: `condition` is that of a `SoloRun`. Returns the goodput in Mbit/s.
///
/// # Errors
///
/// Those of [`run`].
pub fn alone(
    condition: &ResolvedCondition,
    seed: u64,
    progress: &dyn Progress,
) -> Result<f64, RunError> {
    session::alone(&Simulator { progress }, condition, seed)
}

/// The keys that the scenario sets and the simulator does not model.
fn keys_without_effect(experiment: &Experiment) -> Vec<String> {
    let words = |group: &StationGroup| {
        format!(
            "stations.{}.proxy = true: the simulator has the leg over the air alone, and nothing \
             of what is before the proxy",
            group.name
        )
    };
    experiment.stations.iter().filter(|group| group.proxy).map(words).collect()
}

/// Simulates runs; several threads of the session may use it at once.
struct Simulator<'a> {
    progress: &'a dyn Progress,
}

impl World for Simulator<'_> {
    const NAME: &'static str = "sim";
    type Error = RunError;

    fn after(error: RunError, made: Made) -> RunError {
        RunError::After { error: Box::new(error), made: Box::new(made) }
    }

    fn progress(&self) -> &dyn Progress {
        self.progress
    }

    fn run(&self, task: Task<'_>) -> Result<Outcome, RunError> {
        let captures = task.sink.as_ref().map(RunSink::captures).transpose()?.flatten();
        let job = Job {
            condition: task.condition,
            seed: task.seed,
            facts: &task.facts,
            sink: task.sink.clone(),
            progress: Duration::ZERO,
        };
        let mut reached = |elapsed| task.reached(self.progress, elapsed);
        if reached(Duration::ZERO).is_break() {
            return Err(RunError::Interrupted);
        }
        let outcome = if let Some(captures) = captures {
            let (outcome, capture) = simulate_until(&job, Capture::new(captures), &mut reached)?;
            capture.finish()?;
            outcome
        } else {
            simulate_until(&job, (), &mut reached)?.0
        };
        Ok(outcome.outcome)
    }
}
