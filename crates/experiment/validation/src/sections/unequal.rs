//! Stations of unequal capability (Matsuno et al., figures 4 to 7 and 18, section 7.2).

use serde::{Deserialize, Serialize};
use wakeai_results::result::Run;

use super::Judged;
use crate::context::Context;
use crate::job::Job;
use crate::lab::LabData;
use crate::statistics::mean_of;
use crate::verdict::Verdict;

const FILE: &str = "scenarios/matsuno-unequal.toml";
const CONDITIONS: [&str; 6] = [
    "wire-100",
    "wire-100-shimada",
    "wire-100-airtime",
    "wire-1000",
    "wire-1000-shimada",
    "wire-1000-airtime",
];
/// The name of the row in which A-MPDUs may have 1 MB instead of 65,535 bytes. An A-MPDU of
/// 802.11ac then has up to 64 frames.
const LONGER: &str = "wire-1000, A-MPDU 1 MB";

/// The section's figures.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Figures {
    rows: Vec<Row>,
    commands: [String; 2],
}

/// The means over the runs of a condition in a world (`sim` or `lab`).
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Row {
    condition: String,
    world: String,
    /// The goodput of each station alone, and with the others, Mbit/s.
    alone: [Option<f64>; 4],
    each: [Option<f64>; 4],
    total: Option<f64>,
    jain: Option<f64>,
    capacity_normalised: Option<f64>,
    mean_utilisation: Option<f64>,
}

fn job(condition: &str) -> Job {
    Job::new(FILE).condition(condition)
}

/// Every run of the lab that the section uses.
pub fn lab_jobs() -> Vec<Job> {
    CONDITIONS.into_iter().map(job).collect()
}

/// Makes the runs.
///
/// # Errors
///
/// A run fails.
pub fn run(context: &Context, lab: &LabData) -> anyhow::Result<Judged<Figures>> {
    let mut rows = Vec::new();
    for condition in CONDITIONS {
        let job = job(condition);
        rows.extend(Row::of(condition, "sim", &context.reports(&job)?));
        rows.extend(Row::of(condition, "lab", &lab.runs(&job)));
    }
    let longer = job("wire-1000").set("access_point.ampdu", 1_048_575);
    rows.extend(Row::of(LONGER, "sim", &context.reports(&longer)?));
    let shown = job("wire-100-shimada");
    let commands = [shown.command_of(context.seeds), shown.command_in("lab")];
    let verdicts = ["sim", "lab"].into_iter().flat_map(|world| verdicts(&rows, world));
    Ok(Judged { verdicts: verdicts.collect(), figures: Figures { rows, commands } })
}

impl Row {
    fn of(condition: &str, world: &str, runs: &[Run]) -> Option<Self> {
        let station = |figure: fn(&Run, usize) -> Option<f64>| {
            [0, 1, 2, 3].map(|station| mean_of(runs, |run| figure(run, station)))
        };
        (!runs.is_empty()).then(|| Self {
            condition: condition.to_owned(),
            world: world.to_owned(),
            alone: station(|run, station| run.stations.get(station)?.max_mbps),
            each: station(|run, station| Some(run.stations.get(station)?.goodput_mbps)),
            total: mean_of(runs, |run| Some(run.total_goodput_mbps)),
            jain: mean_of(runs, |run| run.jain),
            capacity_normalised: mean_of(runs, |run| run.capacity_normalised),
            mean_utilisation: mean_of(runs, |run| run.mean_utilisation),
        })
    }
}

fn verdicts(rows: &[Row], world: &str) -> Vec<Verdict> {
    let index = |condition: &str| {
        let mut rows = rows.iter();
        rows.find(|row| row.condition == condition && row.world == world)?.capacity_normalised
    };
    let slow = index("wire-100").zip(index("wire-100-shimada"));
    let slow = slow.map(|(plain, controlled)| Verdict {
        what: format!(
            "Matsuno et al., section 7.2, {world}: capacity-normalised index at 100 Mbit/s"
        ),
        bound: "is lower with the papers' control".to_owned(),
        found: format!("{plain:.3} without, {controlled:.3} with"),
        holds: controlled < plain,
    });
    let fast = index("wire-1000").map(|fast| Verdict {
        what: format!(
            "Matsuno et al., section 7.2, {world}: capacity-normalised index at 1 Gbit/s"
        ),
        bound: "high without control (0.9 or more)".to_owned(),
        found: format!("{fast:.3}"),
        holds: fast >= 0.9,
    });
    slow.into_iter().chain(fast).collect()
}
