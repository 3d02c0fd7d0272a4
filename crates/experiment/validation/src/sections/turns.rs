//! Uploads side by side and in turns (after Yamaguchi et al., section 4).

use serde::{Deserialize, Serialize};
use wakeai_results::result::Run;

use super::Judged;
use crate::context::Context;
use crate::job::Job;
use crate::lab::LabData;
use crate::statistics::{mean, mean_of};
use crate::verdict::Verdict;

const SPLIT: &str = "scenarios/split-upload.toml";
const MIXED: &str = "scenarios/turns-upload.toml";
const LAB: &str = "validation/scenarios/lab-turns.toml";

/// The conditions of each case, by scenario file. The first ones have no agents, and the last one
/// sends in turns.
const CONDITIONS: [(&str, &[&str]); 3] = [
    (
        SPLIT,
        &[
            "whole",
            "chunks-2",
            "chunks-10",
            "chunks-20",
            "chunks-40",
            "chunks-80",
            "auto",
            "airtime",
            "airtime-2",
            "airtime-10",
            "airtime-20",
            "airtime-40",
            "airtime-80",
            "airtime-auto",
            "turns",
        ],
    ),
    (MIXED, &["default", "airtime-35", "turns-35"]),
    (LAB, &["default", "airtime", "turns"]),
];

/// The section's figures.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Figures {
    rows: Vec<Row>,
    commands: [String; 3],
}

/// The completion times of a condition, as parts of n · size / solo.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Row {
    case: String,
    condition: String,
    /// n · size / solo, seconds: the sum of the times that the transfers need alone.
    ideal: f64,
    /// The mean of all completion times, and the mean and the largest of the last ones of the runs.
    mean: f64,
    last: f64,
    latest: f64,
    /// The most timeouts of one station with an agent, and of any station.
    most_timeouts: u64,
    most_timeouts_of_all: u64,
    /// The transfers that did not complete, in all runs.
    incomplete: usize,
    /// The completion times of each run, by flow, seconds.
    #[serde(skip)]
    runs: Vec<Vec<f64>>,
}

/// Every run of the lab that the section uses.
pub fn lab_jobs() -> Vec<Job> {
    CONDITIONS[2].1.iter().map(|condition| Job::new(LAB).condition(condition)).collect()
}

/// Makes the runs.
///
/// # Errors
///
/// A run fails.
pub fn run(context: &Context, lab: &LabData) -> anyhow::Result<Judged<Figures>> {
    let mut rows = Vec::new();
    for (file, conditions) in CONDITIONS {
        let case = match file {
            SPLIT => "40 stations, sim",
            MIXED => "35 with agents, 5 without, sim",
            _ => "20 stations, lab",
        };
        for condition in conditions {
            let job = Job::new(file).condition(condition);
            let runs = if file == LAB { lab.runs(&job) } else { context.reports(&job)? };
            rows.extend(Row::of(case, condition, &runs));
        }
    }
    let verdicts = CONDITIONS.iter().zip([
        "40 stations, sim",
        "35 with agents, 5 without, sim",
        "20 stations, lab",
    ]);
    let verdicts =
        verdicts.flat_map(|((_, conditions), case)| verdicts_of(&rows, case, conditions));
    let commands = CONDITIONS.map(|(file, conditions)| {
        let job = Job::new(file).condition(conditions.last().copied().unwrap_or_default());
        if file == LAB { job.command_in("lab") } else { job.command_of(context.seeds) }
    });
    Ok(Judged { verdicts: verdicts.collect(), figures: Figures { rows, commands } })
}

impl Row {
    fn of(case: &str, condition: &str, runs: &[Run]) -> Option<Self> {
        let times: Vec<Vec<f64>> = runs
            .iter()
            .map(|run| run.flows.iter().filter_map(|flow| flow.completion_s).collect())
            .collect();
        let ideal = mean_of(runs, |run| {
            let solo = |station: &str| {
                let of = run.stations.iter().find(|of| of.station == station)?;
                of.max_mbps.filter(|max| *max > 0.0)
            };
            let size = run.flows.iter().map(|flow| flow.bytes).max()? as f64;
            let alone = run.flows.iter().map(|flow| Some(size * 8e-6 / solo(&flow.station)?));
            alone.sum::<Option<f64>>()
        })?;
        let last = |run: &[f64]| run.iter().copied().reduce(f64::max);
        let timeouts = |of: &dyn Fn(&str) -> bool| {
            let flows = runs.iter().flat_map(|run| &run.flows);
            flows.filter(|flow| of(&flow.station)).map(|flow| flow.timeouts).max()
        };
        Some(Self {
            case: case.to_owned(),
            condition: condition.to_owned(),
            ideal,
            mean: mean_of(&times, |run| mean(run))? / ideal,
            last: mean_of(&times, |run| last(run))? / ideal,
            latest: times.iter().filter_map(|run| last(run)).reduce(f64::max)? / ideal,
            most_timeouts: timeouts(&|station| station.starts_with("tablet"))?,
            most_timeouts_of_all: timeouts(&|_| true)?,
            incomplete: runs.iter().map(|run| run.flows.len()).sum::<usize>()
                - times.iter().map(Vec::len).sum::<usize>(),
            runs: times,
        })
    }
}

fn verdicts_of(rows: &[Row], case: &str, conditions: &[&str]) -> Vec<Verdict> {
    let of =
        |condition: &str| rows.iter().find(|row| row.case == case && row.condition == condition);
    let Some(turns) = conditions.last().and_then(|condition| of(condition)) else {
        return Vec::new();
    };
    let says = |what: &str, bound: &str, found: String, holds: bool| Verdict {
        what: format!("turns, {case}: {what}"),
        bound: bound.to_owned(),
        found,
        holds,
    };
    let complete = turns.incomplete == 0;
    let beside =
        conditions.iter().rev().find(|name| name.starts_with("airtime") && !name.ends_with("auto"));
    let beside =
        beside.and_then(|_| of(if case.starts_with("35") { "airtime-35" } else { "airtime" }));
    let mut verdicts = vec![
        says(
            "the last completion",
            "within 5 % of n · size / solo in each run",
            format!("{:.3} at the most", turns.latest),
            complete && turns.latest <= 1.05,
        ),
        says(
            "the mean completion",
            "0.60 of n · size / solo or less",
            format!("{:.3}", turns.mean),
            complete && turns.mean <= 0.60,
        ),
    ];
    if let Some(beside) = beside {
        let later = turns.runs.iter().zip(&beside.runs).filter(|(turns, beside)| {
            let last = |run: &[f64]| run.iter().copied().fold(0.0, f64::max);
            last(turns) > last(beside)
        });
        let later = later.count();
        verdicts.push(says(
            "no station ends later than the last one does side by side under the same law",
            "in each run",
            format!("{later} of {} runs later", turns.runs.len()),
            later == 0,
        ));
    }
    verdicts.push(says(
        "timeouts of a station with an agent",
        "at most one",
        turns.most_timeouts.to_string(),
        turns.most_timeouts <= 1,
    ));
    verdicts
}
