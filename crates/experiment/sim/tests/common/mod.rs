//! Scenarios and runs that several tests need.

#![allow(dead_code, reason = "each test uses some of it")]
#![allow(clippy::unwrap_used, reason = "a helper that fails, fails the test")]

use wakeai_results::result::Report;
use wakeai_scenario::Scenario;
use wakeai_sim::{Job, Observer, SimOutcome};
use wakeai_units::Duration;
use wakeai_world::{Options, Silent};

/// A scenario of `stations` equal stations with one flow each.
pub(crate) fn scenario(standard: &str, stations: u32, flow: &str, more: &str) -> Scenario {
    let text = format!(
        "name = \"test\"\nduration = \"10s\"\n[access_point]\nstandard = \"{standard}\"\n\
         [[stations]]\nname = \"tablet\"\ncount = {stations}\n[[flows]]\n{flow}\n{more}\n"
    );
    Scenario::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// An upload of each station.
pub(crate) const UP: &str = "from = \"tablet\"\nto = \"server\"";
/// A download to each station.
pub(crate) const DOWN: &str = "from = \"server\"\nto = \"tablet\"";

/// All runs of a scenario, at most `jobs` at once. Their real times are set to 0.
pub(crate) fn report_on(jobs: usize, scenario: &Scenario, options: &Options) -> Report {
    let mut report = wakeai_sim::run(options, jobs, scenario, &Silent).unwrap();
    report.runs.iter_mut().for_each(|run| run.wall_s = 0.0);
    report
}

/// All runs of a scenario, one after another.
pub(crate) fn report(scenario: &Scenario, options: &Options) -> Report {
    report_on(1, scenario, options)
}

/// One run of the first condition, without solo runs.
pub(crate) fn simulate<O: Observer>(
    scenario: &Scenario,
    seed: u64,
    observer: O,
) -> (SimOutcome, O) {
    let conditions = scenario.conditions();
    let job =
        Job { condition: &conditions[0], seed, facts: &[], sink: None, progress: Duration::ZERO };
    wakeai_sim::simulate(&job, observer).unwrap()
}

/// The goodput of all flows together, Mbit/s.
pub(crate) fn goodput(outcome: &SimOutcome) -> f64 {
    let bytes: u64 = outcome.outcome.flows.iter().map(|flow| flow.bytes.get()).sum();
    bytes as f64 * 8e-6 / outcome.outcome.end.as_secs_f64()
}
