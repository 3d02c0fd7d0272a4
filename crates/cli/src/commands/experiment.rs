//! The parts that `wakeai sim` and `wakeai lab` share.

mod progress;

use std::path::Path;

use wakeai_results::records::Output;
use wakeai_results::result::Report;
use wakeai_results::table::{self, Layout};
use wakeai_scenario::Scenario;
use wakeai_world::{Made, Options};

use crate::args::ExperimentArguments;
use crate::failure::{Failure, note};
use crate::output;
pub(super) use progress::Bar;

/// The name of standard input in place of a scenario's file.
const STDIN: &str = "-";

/// The scenario with `--set` applied.
pub(super) fn load(arguments: &ExperimentArguments) -> Result<Scenario, Failure> {
    load_file(&arguments.scenario, &arguments.set)
}

/// The scenario in a file, or on standard input, with these keys changed.
pub(super) fn load_file(path: &Path, set: &[(String, String)]) -> Result<Scenario, Failure> {
    for (key, value) in superseded(set) {
        note(format_args!("--set {key} is given again: {key}={value} has no effect"));
    }
    let read = if path == Path::new(STDIN) {
        Scenario::from_reader(std::io::stdin().lock(), "standard input".into())
    } else {
        Scenario::load(path)
    };
    read.and_then(|scenario| scenario.with_overrides(set)).map_err(Failure::usage)
}

/// The overrides that a later one of the same key replaces.
fn superseded(set: &[(String, String)]) -> impl Iterator<Item = &(String, String)> {
    let is_set_again = |(at, (key, _)): &(usize, &(String, String))| {
        set[at + 1..].iter().any(|(later, _)| later == key)
    };
    set.iter().enumerate().filter(is_set_again).map(|(_, one)| one)
}

/// The runs that the arguments ask for; the records go into `out`.
pub(super) fn options(arguments: &ExperimentArguments) -> Options {
    let scenario = Some(arguments.scenario.clone()).filter(|path| path != Path::new(STDIN));
    Options {
        seed: arguments.seed,
        repeat: arguments.repeat,
        conditions: arguments.conditions.clone(),
        out: arguments.out.clone().map(|directory| Output {
            directory,
            force: arguments.force,
            scenario,
        }),
        ..Options::default()
    }
}

/// Prints the report of a command that failed with `failure`, which the command still has to report.
pub(super) fn show_beside(
    failure: Failure,
    report: &Report,
    arguments: &ExperimentArguments,
) -> Failure {
    if let Err(not_shown) = show(report, arguments) {
        note(not_shown);
    }
    failure
}

/// Prints the runs that were made before one failed.
pub(super) fn show_made(failure: Failure, made: &Made, arguments: &ExperimentArguments) -> Failure {
    made.words().into_iter().for_each(note);
    show_beside(failure, &made.report, arguments)
}

/// Prints the report, as JSON or as tables that fit the terminal.
pub(super) fn show(report: &Report, arguments: &ExperimentArguments) -> Result<(), Failure> {
    let text = if arguments.json {
        report.to_json() + "\n"
    } else {
        let terminal = terminal_size::terminal_size_of(std::io::stdout());
        let columns = terminal.map_or(Layout::MIN_COLUMNS, |(width, _)| width.0.into());
        table::render(report, Layout { columns, wide: arguments.wide })
    };
    output::write(&text).map(|_| ())
}
