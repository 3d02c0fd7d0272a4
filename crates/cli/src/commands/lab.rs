//! `wakeai lab`.

use anyhow::Context as _;
use wakeai_lab::{LabError, LabOptions};
use wakeai_world::RunError;

use super::experiment::{Bar, load, options, show};
use crate::args::LabArguments;
use crate::failure::Failure;

pub(crate) fn run(arguments: &LabArguments) -> Result<(), Failure> {
    let experiment = &arguments.experiment;
    let scenario = load(experiment)?;
    let wakeai = std::env::current_exe()
        .context("cannot find the file of this program, from which the agents are started")
        .map_err(Failure::failed)?;
    let options = LabOptions {
        run: options(experiment, arguments.out.as_deref(), arguments.force),
        lateness_p99: arguments.lateness_p99,
        lateness_max: arguments.lateness_max,
        waits_p99: arguments.waits_p99,
        wakeai,
        metrics: arguments.metrics,
    };
    let bar = Bar::new(true)?;
    let result = wakeai_lab::run(&options, &scenario, &bar);
    bar.clear();
    let report = result.map_err(|error| match error {
        LabError::Run(RunError::Interrupted) => Ok(bar.interrupted(error)),
        // The figures of an unfaithful run are printed, too.
        LabError::Unfaithful { ref report, .. } => {
            show(report, experiment).map(|()| Failure::with_status(error.exit_status(), error))
        }
        error => Ok(Failure::with_status(error.exit_status(), error)),
    });
    match report {
        Ok(report) => show(&report, experiment),
        Err(failure) => Err(failure?),
    }
}
