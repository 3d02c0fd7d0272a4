//! `wakeai lab`.

use anyhow::Context as _;
use wakeai_lab::{LabError, LabOptions};
use wakeai_world::RunError;

use super::experiment::{Bar, load, options, show, show_beside, show_made};
use crate::args::LabArguments;
use crate::failure::Failure;

pub(crate) fn run(arguments: &LabArguments) -> Result<(), Failure> {
    let experiment = &arguments.experiment;
    let scenario = load(experiment)?;
    let wakeai = std::env::current_exe()
        .context("cannot find the file of this program, from which the agents are started")
        .map_err(Failure::failed)?;
    let options = LabOptions {
        run: options(experiment),
        lateness_p99: arguments.lateness_p99,
        lateness_max: arguments.lateness_max,
        waits_p99: arguments.waits_p99,
        wakeai,
        metrics: arguments.metrics,
    };
    let bar = Bar::new(true)?;
    let result = wakeai_lab::run(&options, &scenario, &bar);
    bar.clear();
    let report = result.map_err(|error| {
        let status = error.exit_status();
        let failed = |error| Failure::with_status(status, error);
        match error {
            LabError::Run(RunError::Interrupted) => bar.interrupted(error),
            // The figures of an unfaithful run are printed, too.
            LabError::Unfaithful { ref report, .. } => {
                let report = report.clone();
                show_beside(failed(error), &report, experiment)
            }
            LabError::After { error, made } => show_made(failed(*error), &made, experiment),
            error => failed(error),
        }
    })?;
    show(&report, experiment)
}
