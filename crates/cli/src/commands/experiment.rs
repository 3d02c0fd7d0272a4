//! What `wakeai sim` and `wakeai lab` have in common.

use std::path::Path;

use wakeai_scenario::records::Output;
use wakeai_scenario::result::Report;
use wakeai_scenario::{Scenario, table};

use crate::args::ExperimentArguments;
use crate::failure::Failure;
use crate::output;

/// The scenario with `--set` applied.
pub(super) fn load(arguments: &ExperimentArguments) -> Result<Scenario, Failure> {
    Scenario::load(&arguments.scenario)
        .and_then(|scenario| scenario.with_overrides(&arguments.set))
        .map_err(Failure::usage)
}

/// Where the records go, if they are kept.
pub(super) fn output(
    arguments: &ExperimentArguments,
    out: Option<&Path>,
    force: bool,
) -> Option<Output> {
    let scenario = Some(arguments.scenario.clone());
    out.map(|directory| Output { directory: directory.to_owned(), force, scenario })
}

/// Prints the report, as JSON or as a table.
pub(super) fn show(report: &Report, json: bool) -> Result<(), Failure> {
    let text = if json { report.to_json() + "\n" } else { table::render(report) };
    output::write(&text).map(|_| ())
}
