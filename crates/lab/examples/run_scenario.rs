//! Runs a scenario in the lab: `run_scenario SCENARIO [WAKEAI_PROGRAM] [CONDITION]…`, as root.

use std::path::Path;
use std::process::ExitCode;

use wakeai_lab::{LabError, LabOptions, Progress};
use wakeai_scenario::Scenario;
use wakeai_units::Duration;

struct Lines;

impl Progress for Lines {
    fn run_begins(&self, name: &str, length: Duration) {
        eprintln!("{name}: {length}");
    }
    fn note(&self, text: &str) {
        eprintln!("note: {text}");
    }
}

#[allow(clippy::print_stderr, clippy::print_stdout, reason = "an example talks to its user")]
fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let (Some(scenario), program) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: run_scenario SCENARIO [WAKEAI_PROGRAM] [CONDITION]...");
        return ExitCode::from(2);
    };
    let scenario = match Scenario::load(Path::new(&scenario)) {
        Ok(scenario) => scenario,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    let mut options = LabOptions::new(program.unwrap_or_else(|| "wakeai".to_owned()).into());
    options.conditions = arguments.collect();
    match wakeai_lab::run(&options, &scenario, &Lines) {
        Ok(report) => {
            println!("{}", report.to_json());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            if let LabError::Unfaithful { report, .. } = &error {
                println!("{}", report.to_json());
            }
            ExitCode::from(error.exit_status())
        }
    }
}
