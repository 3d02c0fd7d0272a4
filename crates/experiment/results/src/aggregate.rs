//! The figures of a run, and what the runs of a condition have in common.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::figures::{Interval, variance};
use crate::result::{ErrorCounts, FlowResult, Run};

/// A figure that every run has, or may have.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// The path of the figure in a run of the result, or the name of one that is computed from its flows.
    pub name: &'static str,
    /// The name and the unit in tables.
    pub title: &'static str,
    /// The digits behind the point that tables show.
    pub decimals: usize,
    /// The value; `None` if the run does not have it.
    pub of: fn(&Run) -> Option<f64>,
}

/// All figures.
pub const FIGURES: [Figure; 15] = [
    figure("total_goodput_mbps", "goodput, Mbit/s", 2, |run| Some(run.total_goodput_mbps)),
    figure("jain", "Jain's index", 3, |run| run.jain),
    figure("rtt_ms.p95", "RTT p95, ms", 1, |run| run.rtt_ms.p95),
    figure("rtt_ms.p50", "RTT p50, ms", 1, |run| run.rtt_ms.p50),
    figure("rtt_ms.p99", "RTT p99, ms", 1, |run| run.rtt_ms.p99),
    figure("capacity_normalised", "Jain of shares of solo goodput", 3, |run| {
        run.capacity_normalised
    }),
    figure("mean_utilisation", "mean share of solo goodput", 3, |run| run.mean_utilisation),
    figure("completion_s.mean", "mean completion, s", 2, |run| {
        completions(run).map(|all| all.iter().sum::<f64>() / all.len() as f64)
    }),
    figure("completion_s.last", "last completion, s", 2, |run| {
        completions(run).map(|all| all.into_iter().fold(0.0, f64::max))
    }),
    figure("errors.reordering", "reordering (1)", 1, |run| error(run, |all| all.reordering)),
    figure("errors.local_overflow", "local drop (2)", 1, |run| {
        error(run, |all| all.local_overflow)
    }),
    figure("errors.duplicate_ack", "fast recovery (3)", 1, |run| {
        error(run, |all| all.duplicate_ack)
    }),
    figure("errors.timeout", "timeout (4)", 1, |run| error(run, |all| all.timeout)),
    figure("retransmits", "retransmitted segments", 1, |run| sum(run, |flow| flow.retransmits)),
    figure("timeouts", "retransmission timeouts", 1, |run| sum(run, |flow| flow.timeouts)),
];

/// The names of the figures that tables show without `--wide`.
pub const MAIN_FIGURES: [&str; 5] =
    ["total_goodput_mbps", "jain", "rtt_ms.p95", "completion_s.mean", "completion_s.last"];

const fn figure(
    name: &'static str,
    title: &'static str,
    decimals: usize,
    of: fn(&Run) -> Option<f64>,
) -> Figure {
    Figure { name, title, decimals, of }
}

/// The completions of all flows, if there are flows and all have completed.
fn completions(run: &Run) -> Option<Vec<f64>> {
    let all: Option<Vec<f64>> = run.flows.iter().map(|flow| flow.completion_s).collect();
    all.filter(|all| !all.is_empty())
}

/// The sum over all flows; `None` where it is unknown for one of them.
fn sum(run: &Run, of: fn(&FlowResult) -> Option<u64>) -> Option<f64> {
    let all: Option<Vec<u64>> = run.flows.iter().map(of).collect();
    Some(all?.into_iter().fold(0, u64::saturating_add) as f64)
}

fn error(run: &Run, of: fn(&ErrorCounts) -> u64) -> Option<f64> {
    run.errors.as_ref().map(|all| of(all) as f64)
}

/// A figure over the runs of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// The number of runs that have the figure.
    pub runs: usize,
    /// The mean and half the width of its 95 % confidence interval (Student's t).
    #[serde(flatten)]
    pub interval: Interval,
    /// The standard deviation of the runs; `None` for one run.
    pub deviation: Option<f64>,
}

impl Spread {
    /// The spread of these values; `None` without values.
    pub fn of(values: &[f64]) -> Option<Self> {
        let interval = Interval::of(values)?;
        Some(Self { runs: values.len(), interval, deviation: variance(values).map(f64::sqrt) })
    }
}

/// The figures of a condition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Aggregate {
    /// The condition's name.
    pub condition: String,
    /// Each of [`FIGURES`] by name, over those runs that have it; `None` where none has it.
    pub figures: BTreeMap<String, Option<Spread>>,
}

impl Aggregate {
    /// The aggregates of all conditions, in the order in which they first occur.
    pub fn of(runs: &[Run]) -> Vec<Self> {
        let conditions = by_condition(runs).into_iter().map(|runs| Self {
            condition: runs[0].condition.clone(),
            figures: FIGURES
                .iter()
                .map(|figure| {
                    let values: Vec<f64> = runs.iter().filter_map(|run| (figure.of)(run)).collect();
                    (figure.name.to_owned(), Spread::of(&values))
                })
                .collect(),
        });
        conditions.collect()
    }
}

/// The runs of each condition that count, in the order in which conditions first occur.
pub fn by_condition(runs: &[Run]) -> Vec<Vec<&Run>> {
    let mut conditions: Vec<Vec<&Run>> = Vec::new();
    for run in runs.iter().filter(|run| run.counts()) {
        match conditions.iter_mut().find(|of| of[0].condition == run.condition) {
            Some(of) => of.push(run),
            None => conditions.push(vec![run]),
        }
    }
    conditions
}
