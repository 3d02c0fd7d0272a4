//! Several TCP-AV senders that together want more than the path carries.

#![allow(clippy::unwrap_used, reason = "a helper that fails, fails the test")]

use std::path::Path;

use wakeai_results::figures;
use wakeai_scenario::Scenario;
use wakeai_sim::Job;
use wakeai_units::Duration;

/// The number of runs of each condition. The stations' shares differ a little from seed to seed.
const SEEDS: u64 = 3;

/// For each seed, the bytes that each flow of this condition of `scenarios/av-many.toml` received
/// in the 100 s after the warmup.
fn received(condition: &str) -> Vec<Vec<f64>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../scenarios/av-many.toml");
    let conditions = Scenario::load(&path).unwrap().conditions();
    let condition = conditions.iter().find(|one| one.name() == condition).unwrap();
    let run = |seed| {
        let job = Job { condition, seed, facts: &[], sink: None, progress: Duration::ZERO };
        let (outcome, ()) = wakeai_sim::simulate(&job, ()).unwrap();
        let flows = outcome.outcome.flows.iter();
        flows.map(|flow| flow.bytes_after_warmup.get() as f64).collect()
    };
    (1..=SEEDS).map(run).collect()
}

/// The mean of `figure` over the seeds.
fn mean(runs: &[Vec<f64>], figure: impl Fn(&[f64]) -> f64) -> f64 {
    runs.iter().map(|run| figure(run)).sum::<f64>() / runs.len() as f64
}

fn jain(values: &[f64]) -> f64 {
    figures::jain(values).unwrap()
}

#[test]
fn equal_targets_share_a_fifo_of_half_their_sum_equally() {
    let runs = received("wire-equal");
    assert!(mean(&runs, jain) >= 0.95, "{runs:?}");
    let mbps = mean(&runs, |all| all.iter().sum::<f64>() * 8e-8);
    assert!(mbps > 19.0, "{mbps}");
}

#[test]
fn unequal_targets_are_served_in_proportion() {
    let runs = received("wire-unequal");
    let by_want =
        mean(&runs, |got| jain(&[got[0], got[1], got[2] / 2.0, got[3] / 2.0, got[4] / 2.0]));
    let alike = mean(&runs, jain);
    assert!(by_want >= 0.95 && by_want > alike, "{by_want} by what they want, {alike} without");
}

#[test]
fn reno_beside_them_is_left_something() {
    let share = |all: &[f64]| all[..2].iter().sum::<f64>() / all.iter().sum::<f64>();
    // With an even division the two would have a share of 0.4.
    let reno = mean(&received("wire-beside-reno"), share);
    assert!((0.1..0.4).contains(&reno), "{reno}");
}
