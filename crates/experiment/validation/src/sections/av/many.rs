//! Several TCP-AV senders whose targets are more than the path carries.

use serde::{Deserialize, Serialize};
use wakeai_results::result::Run;

use crate::context::Context;
use crate::job::Job;
use crate::sections::Judged;
use crate::statistics::mean_of;
use crate::verdict::Verdict;

/// The conditions of the scenario, each with a description.
const CONDITIONS: [(&str, &str); 6] = [
    ("wire-equal", "FIFO, equal targets"),
    ("wire-unequal", "FIFO, the last three want twice as much"),
    ("wire-beside-reno", "FIFO, the first two are Reno"),
    ("air-equal", "air, equal targets"),
    ("air-unequal", "air, the last three want twice as much"),
    ("air-beside-reno", "air, the first two are Reno"),
];
/// The lowest index that five senders with equal targets may have.
const FAIR: f64 = 0.95;

/// The section's figures.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Figures {
    rows: Vec<Row>,
    command: String,
}

/// Means over the runs of a condition, Mbit/s.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Row {
    words: String,
    each: [Option<f64>; 5],
    total: Option<f64>,
    jain: Option<f64>,
    /// Jain's index of the first two flows, and that of the last three.
    groups: [Option<f64>; 2],
    /// Segments sent again, as a share of those that arrived.
    retransmitted: Option<f64>,
}

fn job(condition: &str) -> Job {
    Job::new("scenarios/av-many.toml").condition(condition)
}

pub(super) fn run(context: &Context) -> anyhow::Result<Judged<Figures>> {
    let mut rows = Vec::new();
    for (condition, words) in CONDITIONS {
        rows.push(Row::of(words, &context.runs(&job(condition), context.seeds)?));
    }
    let equal = rows.iter().filter(|row| row.words.ends_with("equal targets"));
    let least = equal.filter_map(|row| row.jain).fold(f64::INFINITY, f64::min);
    let verdict = Verdict {
        what: "TCP-AV: five with equal targets, together more than the path carries".to_owned(),
        bound: format!("Jain's index {FAIR} or more"),
        found: format!("least {least:.3}"),
        holds: least >= FAIR,
    };
    let command = job("wire-unequal").command_of(context.seeds);
    Ok(Judged { verdicts: vec![verdict], figures: Figures { rows, command } })
}

impl Row {
    fn of(words: &str, runs: &[Run]) -> Self {
        Self {
            words: words.to_owned(),
            each: [0, 1, 2, 3, 4]
                .map(|flow| mean_of(runs, |run| Some(run.flows.get(flow)?.goodput_mbps))),
            total: mean_of(runs, |run| Some(run.total_goodput_mbps)),
            jain: mean_of(runs, |run| run.jain),
            groups: [0, 1].map(|group| mean_of(runs, |run| run.groups.get(group)?.jain)),
            retransmitted: mean_of(runs, |run| {
                let again: u64 = run.flows.iter().map(|flow| flow.retransmits).sum();
                let bytes: u64 = run.flows.iter().map(|flow| flow.bytes).sum();
                Some(again as f64 / (bytes as f64 / 1448.0))
            }),
        }
    }
}
