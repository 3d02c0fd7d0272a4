//! A cellular link: agents without peers (paper 001, section 5).

use wakeai_scenario::result::{RttMillis, Run};

use crate::context::Context;
use crate::job::Job;
use crate::markdown::{Page, Table, number, percent};
use crate::statistics::{deviation, mean_of};
use crate::verdict::Verdict;

const CONDITIONS: [&str; 4] = ["default", "shimada-before", "shimada-after", "airtime"];

/// The round-trip time of the wire: what grows is what is above it.
const BASE_MS: f64 = 40.0;

fn job(file: &str, condition: &str) -> Job {
    Job::new(&format!("scenarios/{file}.toml")).condition(condition)
}

/// What some stations got under one condition.
struct Found {
    condition: &'static str,
    goodput: f64,
    p50: f64,
    p95: f64,
}

impl Found {
    /// Of the group, or of everybody where no group is named.
    fn of(condition: &'static str, runs: &[Run], group: Option<&str>) -> Option<Self> {
        let figures = |run: &Run| -> Option<(f64, RttMillis)> {
            match group {
                None => Some((run.total_goodput_mbps, run.rtt_ms)),
                Some(name) => {
                    let group = run.groups.iter().find(|group| group.group == name)?;
                    Some((group.goodput_mbps, group.rtt_ms))
                }
            }
        };
        let all: Vec<(f64, RttMillis)> = runs.iter().filter_map(figures).collect();
        Some(Self {
            condition,
            goodput: mean_of(&all, |found| Some(found.0))?,
            p50: mean_of(&all, |found| found.1.p50)?,
            p95: mean_of(&all, |found| found.1.p95)?,
        })
    }

    /// How far the 95th percentile is above the wire, as a share of `default`'s.
    fn growth(&self, default: &Self) -> f64 {
        (self.p95 - BASE_MS) / (default.p95 - BASE_MS)
    }
}

/// Writes the section.
///
/// # Errors
///
/// Where a run fails.
pub fn write(context: &Context, page: &mut Page) -> anyhow::Result<Vec<Verdict>> {
    page.heading(2, "A cellular link (001, section 5)");
    page.paragraph(
        "Uploads over a cellular link of 50 Mbit/s; no broadcast, so agents know of no peers. Goodput \
         in Mbit/s and round-trip time in ms, over the seeds; growth is what is above the wire's 40 \
         ms. The paper shows that windows are held and the RTT falls; it has no throughput.",
    );
    page.heading(3, "Six phones with agents");
    let alone = table(context, page, "lte", None)?;
    page.heading(3, "Six phones with agents beside six PCs without: the phones");
    table(context, page, "lte-mixed", Some("phone"))?;
    page.heading(3, "The PCs");
    table(context, page, "lte-mixed", Some("pc"))?;
    let commands = ["lte", "lte-mixed"].map(|file| {
        let job = Job::new(&format!("scenarios/{file}.toml"));
        job.command_of(context.seeds)
    });
    page.commands(&commands);
    Ok(alone
        .first()
        .zip(alone.last())
        .map(|(default, airtime)| verdict(airtime, default))
        .into_iter()
        .collect())
}

fn table(
    context: &Context,
    page: &mut Page,
    file: &str,
    group: Option<&str>,
) -> anyhow::Result<Vec<Found>> {
    let mut table =
        Table::new(&["condition", "goodput", "of default", "p50", "p95", "p95 growth, of default"]);
    let mut all: Vec<Found> = Vec::new();
    for condition in CONDITIONS {
        let runs = context.all(&job(file, condition))?;
        let runs: Vec<Run> = runs.into_iter().map(|simulated| simulated.run).collect();
        all.extend(Found::of(condition, &runs, group));
    }
    for found in &all {
        table.row([
            found.condition.to_owned(),
            number(found.goodput, 2),
            percent(deviation(found.goodput, all[0].goodput)),
            number(found.p50, 0),
            number(found.p95, 0),
            number(found.growth(&all[0]), 3),
        ]);
    }
    page.table(&table);
    Ok(all)
}

fn verdict(airtime: &Found, default: &Found) -> Verdict {
    let kept = airtime.goodput / default.goodput;
    let growth = airtime.growth(default);
    Verdict {
        what: "lte.toml: airtime without peers".to_owned(),
        bound: "97 % of the goodput, less than half of the p95 growth".to_owned(),
        found: format!("{:.1} % of the goodput, {growth:.3} of the growth", kept * 100.0),
        holds: kept >= 0.97 && growth < 0.5,
    }
}
