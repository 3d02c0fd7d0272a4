//! Figure 17: the achievement ratio (AVR) over the normalised required throughput (NRT).

use serde::{Deserialize, Serialize};
use wakeai_results::result::Run;

use super::{ALONE_MBPS, others};
use crate::context::Context;
use crate::job::Job;
use crate::sections::Judged;
use crate::sections::wlan::{RUNS, starving};
use crate::statistics::{mean, mean_of};
use crate::verdict::Verdict;

/// The NRT in percent of the solo goodput.
const TARGETS: [u32; 11] = [10, 18, 20, 25, 30, 40, 50, 60, 70, 80, 100];
/// The least AVR that is promised at a target of 90 % of the fair share.
const AVR: f64 = 0.95;

/// The paper's figures for five terminals: the target in percent of the fair share, and its AVR.
const PAPER: [(u32, &str); 5] =
    [(50, "1.00"), (90, "1.00"), (100, "1.00"), (125, "0.70"), (200, "below 0.10")];

/// The section's figures.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Figures {
    fair_share: f64,
    five: Vec<Row>,
    /// The least and the largest goodput of the sender with the target, in fair shares, over the
    /// targets of at least 90 % of the fair share.
    least_reached: f64,
    most_reached: f64,
    command: String,
    over_nrt: Vec<Nrt>,
}

/// Means over the runs with one target, Mbit/s.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Row {
    /// The target in percent of the fair share.
    share: u32,
    target: f64,
    avr: f64,
    paper: String,
    reached: f64,
    others: f64,
    starving: f64,
    total: f64,
}

/// The AVR of a target in percent of the solo goodput, for 2 to 6 stations.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Nrt {
    nrt: u32,
    avr: Vec<Avr>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Avr {
    avr: f64,
    /// Whether the target is within the fair share.
    fair: bool,
}

/// A run of `stations` stations, one of which has a target.
fn job(stations: u32, target_mbps: f64) -> Job {
    Job::new("scenarios/av-target.toml")
        .condition("share-90")
        .set("stations.reno.count", stations - 1)
        .set("flows.1.rate", format!("{target_mbps:.2}Mbit/s"))
}

pub(super) fn run(context: &Context) -> anyhow::Result<Judged<Figures>> {
    let fair_share = ALONE_MBPS / 5.0;
    let five = PAPER.map(|(share, paper)| Row::find(context, share, paper));
    let five = five.into_iter().collect::<anyhow::Result<Vec<Row>>>()?;
    let mut over_nrt = Vec::new();
    for nrt in TARGETS {
        let target = ALONE_MBPS * f64::from(nrt) / 100.0;
        let avr = |stations: u32| -> anyhow::Result<Avr> {
            let job = job(stations, target);
            let avr = mean_of(&context.runs(&job, RUNS)?, |run| run.flows.first()?.avr);
            Ok(Avr { avr: job.require(avr)?, fair: nrt * stations <= 100 })
        };
        over_nrt.push(Nrt { nrt, avr: (2..=6).map(avr).collect::<anyhow::Result<_>>()? });
    }
    let at_90 = five.iter().find(|row| row.share == 90).map_or(0.0, |row| row.avr);
    let reached = five.iter().filter(|row| row.share >= 90).map(|row| row.reached / fair_share);
    let (least_reached, most_reached) = reached
        .fold((f64::INFINITY, 0.0_f64), |(least, most), one| (least.min(one), most.max(one)));
    let verdict = Verdict {
        what: "TCP-AV study, figure 17: AVR at 90 % of the fair share of five".to_owned(),
        bound: format!("{AVR} or more"),
        found: format!("{at_90:.2}"),
        holds: at_90 >= AVR,
    };
    let command = job(5, fair_share * 1.25).command_of(RUNS);
    let figures = Figures { fair_share, five, least_reached, most_reached, command, over_nrt };
    Ok(Judged { verdicts: vec![verdict], figures })
}

impl Row {
    fn find(context: &Context, share: u32, paper: &str) -> anyhow::Result<Self> {
        let target = ALONE_MBPS / 5.0 * f64::from(share) / 100.0;
        let job = job(5, target);
        let runs = context.runs(&job, RUNS)?;
        let mean_of = |figure: &dyn Fn(&Run) -> Option<f64>| job.require(mean_of(&runs, figure));
        Ok(Self {
            share,
            target,
            avr: mean_of(&|run| run.flows.first()?.avr)?,
            paper: paper.to_owned(),
            reached: mean_of(&|run| Some(run.flows.first()?.goodput_mbps))?,
            others: mean_of(&|run| mean(&others(run)))?,
            starving: mean_of(&|run| {
                Some(starving(&others(run), ALONE_MBPS / run.flows.len() as f64) as f64)
            })?,
            total: mean_of(&|run| Some(run.total_goodput_mbps))?,
        })
    }
}
