//! Uploads split over connections (Yamaguchi et al., section 4).

use serde::{Deserialize, Serialize};

use super::Judged;
use crate::context::Context;
use crate::job::Job;
use crate::statistics::{mean, mean_of};
use crate::verdict::Verdict;

const CONDITIONS: [&str; 6] =
    ["whole", "chunks-2", "chunks-10", "chunks-20", "chunks-40", "chunks-80"];

/// The peak of the paper's figure 13, and the distance from it that counts as near, seconds.
const PEAK_S: f64 = 160.0;
const NEAR_S: f64 = 20.0;

/// The section's figures.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Figures {
    rows: Vec<Row>,
    command: String,
}

/// The completion times of a run's stations, seconds: means over the runs.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Row {
    condition: String,
    least: f64,
    most: f64,
    mean: f64,
    range: f64,
    deviation: f64,
    /// The number of stations that complete near the peak.
    near: f64,
}

fn job(condition: &str) -> Job {
    Job::new("scenarios/split-upload.toml").condition(condition)
}

/// Makes the runs.
///
/// # Errors
///
/// A run fails.
pub fn run(context: &Context) -> anyhow::Result<Judged<Figures>> {
    let mut rows = Vec::new();
    for condition in CONDITIONS {
        let runs = context.all(&job(condition))?;
        let completions = runs.iter().map(|run| {
            let flows = run.transfers.flows.iter();
            let mut all: Vec<f64> = flows.filter_map(|flow| flow.completion_s).collect();
            all.sort_by(f64::total_cmp);
            all
        });
        rows.extend(Row::of(condition, &completions.collect::<Vec<_>>()));
    }
    let verdict = rows.first().zip(rows.last()).map(|(whole, pieces)| Verdict {
        what: "split upload: with pieces the stations end closer together".to_owned(),
        bound: "standard deviation of the completions falls".to_owned(),
        found: format!("{:.1} s whole, {:.1} s in 80 pieces", whole.deviation, pieces.deviation),
        holds: pieces.deviation < whole.deviation,
    });
    let command = job("chunks-80").command_of(context.seeds);
    Ok(Judged { verdicts: verdict.into_iter().collect(), figures: Figures { rows, command } })
}

impl Row {
    /// `runs` has the completion times of each run, ascending.
    fn of(condition: &str, runs: &[Vec<f64>]) -> Option<Self> {
        let over = |figure: &dyn Fn(&[f64]) -> Option<f64>| mean_of(runs, |run| figure(run));
        let deviation = |run: &[f64]| {
            let mean = mean(run)?;
            let squares: f64 = run.iter().map(|value| (value - mean).powi(2)).sum();
            Some((squares / run.len() as f64).sqrt())
        };
        let near = |run: &[f64]| {
            let near = run.iter().filter(|value| (**value - PEAK_S).abs() <= NEAR_S);
            (!run.is_empty()).then(|| near.count() as f64)
        };
        Some(Self {
            condition: condition.to_owned(),
            least: over(&|run| run.first().copied())?,
            most: over(&|run| run.last().copied())?,
            mean: over(&mean)?,
            range: over(&|run| Some(run.last()? - run.first()?))?,
            deviation: over(&deviation)?,
            near: over(&near)?,
        })
    }
}
