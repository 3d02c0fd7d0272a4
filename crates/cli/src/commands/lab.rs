//! `wakeai lab`.

use anyhow::Context as _;
use wakeai_lab::{LabError, LabOptions};
use wakeai_scenario::result::Report;
use wakeai_scenario::{Scenario, table};

use crate::args::LabArguments;
use crate::failure::Failure;
use crate::output;

mod progress;

pub(crate) fn run(arguments: &LabArguments) -> Result<(), Failure> {
    let scenario = Scenario::load(&arguments.scenario)
        .and_then(|scenario| scenario.with_overrides(&arguments.set))
        .map_err(Failure::usage)?;
    let wakeai = std::env::current_exe()
        .context("cannot find this program's own file, which the agents are started from")
        .map_err(Failure::failed)?;
    let options = LabOptions {
        seed: arguments.seed,
        repeat: arguments.repeat,
        conditions: arguments.conditions.clone(),
        out: arguments.out.clone(),
        lateness_p99: arguments.lateness_p99,
        lateness_max: arguments.lateness_max,
        ..LabOptions::new(wakeai)
    };
    let progress = progress::Bars::new();
    let result = wakeai_lab::run(&options, &scenario, &progress);
    progress.clear();
    match result {
        Ok(report) => show(&report, arguments.json),
        Err(error) => {
            // The figures are shown beside the reason why they are worth nothing.
            if let LabError::Unfaithful { report, .. } = &error {
                show(report, arguments.json)?;
            }
            Err(Failure::with_status(error.exit_status(), error))
        }
    }
}

fn show(report: &Report, json: bool) -> Result<(), Failure> {
    let text = if json { report.to_json() + "\n" } else { table::render(report) };
    output::write(&text).map(|_| ())
}
