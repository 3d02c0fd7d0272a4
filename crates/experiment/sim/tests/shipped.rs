//! Runs the scenarios that are shipped with the project, each for a moment.

#![allow(clippy::unwrap_used, reason = "a helper that fails, fails the test")]

mod common;

use std::path::{Path, PathBuf};

use wakeai_scenario::Scenario;
use wakeai_sim::Job;
use wakeai_units::Duration;

/// This is long enough for the first data to arrive at a round-trip time of 1024 ms.
const MOMENT: &str = "2s";

fn files() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../scenarios");
    let entries = std::fs::read_dir(directory).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|end| end == "toml")).collect();
    files.sort();
    files
}

/// The experiment of `path`, shortened to a moment.
fn short(path: &Path) -> Scenario {
    let scenario = Scenario::load(path).unwrap_or_else(|error| panic!("{error}"));
    let set = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let mut changes = vec![set("duration", MOMENT), set("warmup", "0s")];
    changes.extend((1..=scenario.events.len()).map(|n| set(&format!("events.{n}.at"), "1s")));
    scenario.with_overrides(&changes).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn something_arrives_in_every_condition_of_every_shipped_file() {
    for path in files() {
        for condition in &short(&path).conditions() {
            let progress = Duration::ZERO;
            let job = Job { condition, seed: 1, facts: &[], sink: None, progress };
            let (outcome, ()) = wakeai_sim::simulate(&job, ()).unwrap_or_else(|error| {
                panic!("{}, {}: {error}", path.display(), condition.name())
            });
            let arrived = common::goodput(&outcome) > 0.0;
            assert!(arrived, "{}, {}", path.display(), condition.name());
        }
    }
}
