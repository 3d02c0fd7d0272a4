//! The fairness of TCP over a wireless LAN (TCP-AV paper, section 3): 2 to 7 terminals, ten runs.

use serde::{Deserialize, Serialize};
use wakeai_results::result::Run;

use super::Judged;
use crate::context::Context;
use crate::job::Job;
use crate::statistics::mean_of;
use crate::verdict::Verdict;

/// The number of runs of each case, as in the paper.
pub(super) const RUNS: u32 = 10;
/// A station starves if it gets less than this part of an equal share.
const STARVES: f64 = 0.1;
/// A case is fair if its mean index is at least this.
const FAIR: f64 = 0.95;

/// The kinds of traffic: the word in the conditions' names, a name for the page, and the largest
/// number of terminals.
const TRAFFIC: [(&str, &str, usize); 3] =
    [("up", "TCP up", 7), ("udp", "UDP up", 5), ("down", "TCP down", 5)];

/// The section's figures.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Figures {
    rows: Vec<Row>,
    command: String,
    /// The runs of five uploads.
    runs: Vec<Five>,
    /// For each terminal, the number of these runs in which its goodput was the least.
    losers: [u32; 5],
    /// The smallest part of an equal share that a terminal got in these runs.
    least_share: f64,
}

/// The runs of one case.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Row {
    traffic: String,
    stations: usize,
    total: f64,
    jain: f64,
    least_jain: f64,
    /// The mean number of stations that starve in a run.
    starving: f64,
    /// The number of runs in which at least one station starves.
    unfair_runs: usize,
    /// Whether it is fair in the paper.
    paper_fair: bool,
}

/// Goodput of five terminals, Mbit/s.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Five {
    mbps: [f64; 5],
    jain: Option<f64>,
    /// The terminal with the least goodput, counted from 1.
    loser: usize,
}

fn job(kind: &str, stations: usize) -> Job {
    Job::new("scenarios/wlan-fairness.toml").condition(&format!("{kind}-{stations}"))
}

/// Makes the runs.
///
/// # Errors
///
/// A run fails.
pub fn run(context: &Context) -> anyhow::Result<Judged<Figures>> {
    let mut rows = Vec::new();
    for (kind, words, most) in TRAFFIC {
        for stations in 2..=most {
            let paper_fair = kind != "up" || stations < 5;
            let runs = context.runs(&job(kind, stations), RUNS)?;
            rows.extend(Row::of(words, stations, paper_fair, &runs));
        }
    }
    let runs: Vec<Five> = context.runs(&job("up", 5), RUNS)?.iter().map(Five::of).collect();
    let mut losers = [0; 5];
    for run in &runs {
        losers[run.loser - 1] += 1;
    }
    let shares = runs.iter().map(Five::least_share);
    let least_share = shares.fold(f64::INFINITY, f64::min);
    let verdicts = verdicts(&rows);
    let command = job("up", 5).command_of(RUNS);
    Ok(Judged { verdicts, figures: Figures { rows, command, runs, losers, least_share } })
}

impl Row {
    fn of(traffic: &str, stations: usize, paper_fair: bool, runs: &[Run]) -> Option<Self> {
        let starving_in = |run: &Run| {
            let all = goodputs(run);
            starving(&all, all.iter().sum::<f64>() / all.len() as f64)
        };
        let jain = runs.iter().filter_map(|run| run.jain);
        Some(Self {
            traffic: traffic.to_owned(),
            stations,
            total: mean_of(runs, |run| Some(run.total_goodput_mbps))?,
            jain: mean_of(runs, |run| run.jain)?,
            least_jain: jain.fold(f64::INFINITY, f64::min),
            starving: mean_of(runs, |run| Some(starving_in(run) as f64))?,
            unfair_runs: runs.iter().filter(|run| starving_in(run) > 0).count(),
            paper_fair,
        })
    }
}

impl Five {
    fn of(run: &Run) -> Self {
        let mbps: [f64; 5] = goodputs(run).try_into().expect("five stations");
        let loser = (0..5).min_by(|a, b| mbps[*a].total_cmp(&mbps[*b])).expect("five stations");
        Self { mbps, jain: run.jain, loser: loser + 1 }
    }

    fn least_share(&self) -> f64 {
        5.0 * self.mbps[self.loser - 1] / self.mbps.iter().sum::<f64>()
    }
}

/// The goodput of each station, Mbit/s.
fn goodputs(run: &Run) -> Vec<f64> {
    run.stations.iter().map(|station| station.goodput_mbps).collect()
}

/// The number of stations that starve: they got less than a tenth of the equal share `even`.
pub(super) fn starving(goodputs: &[f64], even: f64) -> usize {
    goodputs.iter().filter(|goodput| **goodput < STARVES * even).count()
}

fn verdicts(rows: &[Row]) -> Vec<Verdict> {
    let means = |traffic: &str, fewest: usize, most: usize| {
        let wanted = |row: &&Row| row.traffic == traffic && (fewest..=most).contains(&row.stations);
        rows.iter().filter(wanted).map(|row| row.jain).collect::<Vec<f64>>()
    };
    let least = |of: &[f64]| of.iter().copied().fold(f64::INFINITY, f64::min);
    let largest = |of: &[f64]| of.iter().copied().fold(0.0, f64::max);
    let (few, many) = (means("TCP up", 2, 4), means("TCP up", 5, 7));
    let mut verdicts = vec![Verdict {
        what: "TCP-AV study, figures 8 to 13: 2 to 4 uploads are fair, 5 to 7 are not".to_owned(),
        bound: format!("mean of Jain's index {FAIR} or more up to 4, less from 5 on"),
        found: format!("least {:.3}, then at the most {:.3}", least(&few), largest(&many)),
        holds: least(&few) >= FAIR && largest(&many) < FAIR,
    }];
    verdicts.extend([("UDP up", "UDP"), ("TCP down", "downloads")].map(|(traffic, words)| {
        let jain = least(&means(traffic, 2, 5));
        Verdict {
            what: format!("TCP-AV study, section 3.3: {words} of 2 to 5 terminals are fair"),
            bound: format!("mean of Jain's index {FAIR} or more"),
            found: format!("least {jain:.3}"),
            holds: jain >= FAIR,
        }
    }));
    verdicts
}
