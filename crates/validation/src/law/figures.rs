//! What a setting came to under each condition.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use wakeai_scenario::Scenario;
use wakeai_scenario::result::Run;
use wakeai_sim::{Silent, SimOptions};

use super::matrix::Setting;
use crate::statistics::mean;

/// Means over the seeds of one condition.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Mbit/s in all.
    pub goodput: f64,
    /// The capacity-normalised index.
    pub index: f64,
    /// The 95th percentile of the RTT above the path's, ms.
    pub growth_ms: f64,
    /// Retransmission timeouts of a run.
    pub timeouts: f64,
    /// Mean and last completion, s; nothing where a flow has no end.
    pub completion: Option<(f64, f64)>,
    /// What each group of stations got, Mbit/s.
    pub groups: BTreeMap<String, f64>,
    /// What a station reaches alone, Mbit/s.
    pub alone: f64,
}

/// A setting under all its conditions.
#[derive(Clone, Debug)]
pub struct Row {
    /// The setting.
    pub setting: Setting,
    /// By condition.
    pub found: BTreeMap<String, Figures>,
}

impl Row {
    /// Takes over what is known of other conditions.
    pub fn add(&mut self, known: &BTreeMap<String, Figures>) {
        for (condition, figures) in known {
            self.found.entry(condition.clone()).or_insert_with(|| figures.clone());
        }
    }

    /// Of a condition; all zero where it was not run.
    pub fn of(&self, condition: &str) -> Figures {
        self.found.get(condition).cloned().unwrap_or_default()
    }
}

/// Runs each of `settings` with seeds 1 to `seeds` under `conditions` (all where none is named), `jobs`
/// settings at once.
///
/// # Errors
///
/// Where a scenario is refused or a run fails.
pub fn run(
    settings: &[Setting],
    conditions: &[String],
    seeds: u32,
    jobs: usize,
) -> anyhow::Result<Vec<Row>> {
    let next = AtomicUsize::new(0);
    let rows = Mutex::new(Vec::new());
    let work = || {
        while let Some((at, setting)) =
            Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|at| Some((at, settings.get(at)?)))
        {
            let row = one(setting, conditions, seeds);
            rows.lock().unwrap_or_else(PoisonError::into_inner).push((at, row));
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(work);
        }
    });
    let mut rows = rows.into_inner().unwrap_or_else(PoisonError::into_inner);
    rows.sort_by_key(|(at, _)| *at);
    rows.into_iter().map(|(_, row)| row).collect()
}

fn one(setting: &Setting, conditions: &[String], seeds: u32) -> anyhow::Result<Row> {
    let scenario = Scenario::parse(&setting.toml).with_context(|| setting.name)?;
    let options =
        SimOptions { repeat: seeds, conditions: conditions.to_vec(), ..SimOptions::default() };
    let report = wakeai_sim::run(&options, &scenario, |_, _| Ok(None), &Silent)
        .with_context(|| setting.name)?;
    let mut runs = BTreeMap::<String, Vec<Run>>::new();
    for run in report.runs {
        runs.entry(run.condition.clone()).or_default().push(run);
    }
    let found = runs.into_iter().map(|(name, runs)| (name, figures(setting, &runs)));
    Ok(Row { setting: setting.clone(), found: found.collect() })
}

fn figures(setting: &Setting, runs: &[Run]) -> Figures {
    let over = |figure: &dyn Fn(&Run) -> f64| {
        mean(&runs.iter().map(figure).collect::<Vec<f64>>()).unwrap_or(f64::NAN)
    };
    let names = runs.iter().flat_map(|run| run.groups.iter().map(|group| group.group.clone()));
    let group = |name: &str| {
        over(&|run| {
            let group = run.groups.iter().find(|group| group.group == name);
            group.map_or(0.0, |group| group.goodput_mbps)
        })
    };
    let completions = |run: &Run| -> Option<Vec<f64>> {
        run.flows.iter().map(|flow| flow.completion_s).collect()
    };
    let sized = !setting.is_endless();
    let of_completion = |figure: &dyn Fn(&[f64]) -> f64| {
        over(&|run| completions(run).map_or(f64::INFINITY, |all| figure(&all)))
    };
    Figures {
        goodput: over(&|run| run.total_goodput_mbps),
        index: over(&|run| run.capacity_normalised.unwrap_or(f64::NAN)),
        growth_ms: over(&|run| run.rtt_ms.p95.unwrap_or(f64::NAN)) - setting.path_ms,
        timeouts: over(&|run| run.errors.timeout as f64),
        completion: sized.then(|| {
            let last = |all: &[f64]| all.iter().copied().fold(0.0, f64::max);
            (of_completion(&|all| mean(all).unwrap_or(0.0)), of_completion(&last))
        }),
        groups: names.map(|name| (name.clone(), group(&name))).collect(),
        alone: over(&|run| run.stations.first().and_then(|one| one.max_mbps).unwrap_or(f64::NAN)),
    }
}
