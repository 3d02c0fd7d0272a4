//! `wakeai compare`.

use std::io::Read as _;
use std::path::Path;

use wakeai_results::compare::Comparison;
use wakeai_results::result::Report;
use wakeai_units::text::without_mark;

use crate::args::CompareArguments;
use crate::failure::Failure;
use crate::output;

/// The name of the result's file in a directory of `--out`.
const RESULT: &str = "result.json";

pub(crate) fn run(arguments: &CompareArguments) -> Result<(), Failure> {
    let a = read(&arguments.a)?;
    let b = arguments.b.as_deref().map(read).transpose()?;
    let comparison = match (&arguments.conditions[..], &b) {
        ([], None) => {
            return Err(Failure::usage(anyhow::anyhow!(
                "one result is compared with itself by --conditions A,B: it has {}",
                names(&a)
            )));
        }
        ([], Some(b)) => Comparison::of_reports(&a, b),
        ([first, second], b) => {
            Comparison::of_conditions((&a, first), (b.as_ref().unwrap_or(&a), second))
        }
        _ => {
            return Err(Failure::usage(anyhow::anyhow!(
                "--conditions takes two names, separated by a comma"
            )));
        }
    };
    let comparison = comparison.map_err(Failure::usage)?;
    let text = if arguments.json {
        comparison.to_json() + "\n"
    } else {
        comparison.render(arguments.wide)
    };
    output::write(&text).map(|_| ())
}

/// Reads the result from a file, from a directory of `--out`, or from standard input (`-`).
fn read(path: &Path) -> Result<Report, Failure> {
    let file = if path.is_dir() { path.join(RESULT) } else { path.to_owned() };
    let text = if path == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        std::fs::read_to_string(&file)
    };
    let named = |error: anyhow::Error| {
        Failure::usage(error.context(format!("cannot use {}", file.display())))
    };
    let text = text.map_err(|error| named(error.into()))?;
    Report::from_json(without_mark(&text)).map_err(|error| named(error.into()))
}

fn names(report: &Report) -> String {
    let mut names: Vec<&str> = report.runs.iter().map(|run| run.condition.as_str()).collect();
    names.dedup();
    names.join(", ")
}
