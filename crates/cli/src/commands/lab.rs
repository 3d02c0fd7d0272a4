//! `wakeai lab`.

use anyhow::Context as _;
use wakeai_lab::{LabError, LabOptions};

use super::experiment::{load, output, show};
use crate::args::LabArguments;
use crate::failure::Failure;

mod progress;

pub(crate) fn run(arguments: &LabArguments) -> Result<(), Failure> {
    let experiment = &arguments.experiment;
    let scenario = load(experiment)?;
    let wakeai = std::env::current_exe()
        .context("cannot find this program's own file, which the agents are started from")
        .map_err(Failure::failed)?;
    let options = LabOptions {
        seed: experiment.seed,
        repeat: experiment.repeat,
        conditions: experiment.conditions.clone(),
        out: output(experiment, arguments.out.as_deref(), arguments.force),
        lateness_p99: arguments.lateness_p99,
        lateness_max: arguments.lateness_max,
        waits_p99: arguments.waits_p99,
        ..LabOptions::new(wakeai)
    };
    let progress = progress::Bars::new();
    let result = wakeai_lab::run(&options, &scenario, &progress);
    progress.clear();
    match result {
        Ok(report) => show(&report, experiment.json),
        Err(error) => {
            // The figures are shown beside the reason why they are worth nothing.
            if let LabError::Unfaithful { report, .. } = &error {
                show(report, experiment.json)?;
            }
            Err(Failure::with_status(error.exit_status(), error))
        }
    }
}
