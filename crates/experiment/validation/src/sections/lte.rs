//! A cellular link: agents without peers (Shimada et al., section 5).

use serde::{Deserialize, Serialize};
use wakeai_results::result::{RttMillis, Run};

use super::Judged;
use crate::context::Context;
use crate::job::Job;
use crate::statistics::mean_of;
use crate::verdict::Verdict;

const CONDITIONS: [&str; 4] = ["default", "shimada-before", "shimada-after", "airtime"];

/// The round-trip time of the wire, ms. The RTT above it is queueing delay.
const BASE_MS: f64 = 40.0;

/// The section's figures.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Figures {
    /// The rows of phones alone. `phones` and `pcs` are those of phones beside PCs without agents.
    alone: Vec<Row>,
    phones: Vec<Row>,
    pcs: Vec<Row>,
    commands: [String; 2],
}

/// The figures of some stations under one condition: goodput in Mbit/s, round-trip time in ms.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Row {
    condition: String,
    goodput: f64,
    p50: f64,
    p95: f64,
    /// The queueing delay at the 95th percentile, as a share of `default`'s.
    queueing_delay: f64,
}

/// Makes the runs.
///
/// # Errors
///
/// A run fails.
pub fn run(context: &Context) -> anyhow::Result<Judged<Figures>> {
    let alone = rows(context, "lte", None)?;
    let figures = Figures {
        phones: rows(context, "lte-mixed", Some("phone"))?,
        pcs: rows(context, "lte-mixed", Some("pc"))?,
        commands: ["lte", "lte-mixed"].map(|file| {
            let job = Job::new(&format!("scenarios/{file}.toml"));
            job.command_of(context.seeds)
        }),
        alone,
    };
    let both = figures.alone.first().zip(figures.alone.last());
    let verdict = both.map(|(default, airtime)| {
        let kept = airtime.goodput / default.goodput;
        Verdict {
            what: "lte.toml: airtime without peers".to_owned(),
            bound: "97 % of the goodput, less than half of the p95 queueing delay".to_owned(),
            found: format!(
                "{:.1} % of the goodput, {:.3} of the queueing delay",
                kept * 100.0,
                airtime.queueing_delay
            ),
            holds: kept >= 0.97 && airtime.queueing_delay < 0.5,
        }
    });
    Ok(Judged { verdicts: verdict.into_iter().collect(), figures })
}

/// The stations of the group, or all of them, under each condition.
fn rows(context: &Context, file: &str, group: Option<&str>) -> anyhow::Result<Vec<Row>> {
    let mut rows: Vec<Row> = Vec::new();
    for condition in CONDITIONS {
        let job = Job::new(&format!("scenarios/{file}.toml")).condition(condition);
        rows.extend(Row::of(condition, &context.reports(&job)?, group));
    }
    let default = rows.first().map_or(f64::NAN, |default| default.p95 - BASE_MS);
    for row in &mut rows {
        row.queueing_delay = (row.p95 - BASE_MS) / default;
    }
    Ok(rows)
}

impl Row {
    fn of(condition: &str, runs: &[Run], group: Option<&str>) -> Option<Self> {
        let figures = |run: &Run| -> Option<(f64, RttMillis)> {
            let Some(name) = group else { return Some((run.total_goodput_mbps, run.rtt_ms)) };
            let group = run.groups.iter().find(|group| group.group == name)?;
            Some((group.goodput_mbps, group.rtt_ms))
        };
        let all: Vec<(f64, RttMillis)> = runs.iter().filter_map(figures).collect();
        Some(Self {
            condition: condition.to_owned(),
            goodput: mean_of(&all, |found| Some(found.0))?,
            p50: mean_of(&all, |found| found.1.p50)?,
            p95: mean_of(&all, |found| found.1.p95)?,
            queueing_delay: 1.0,
        })
    }
}
