//! The same scenarios in the simulator and on the real TCP stack.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use wakeai_results::result::Run;

use super::Judged;
use crate::context::Context;
use crate::job::Job;
use crate::lab::LabData;
use crate::statistics::{deviation, mean_of};
use crate::verdict::PromiseVerdict;

/// A figure that is compared: what it is, the bound on its deviation, and its value.
type Compared = (&'static str, f64, fn(&World) -> f64);

const COMPARED: [Compared; 3] = [
    ("sim against lab: total goodput", 0.10, |world| world.goodput),
    ("sim against lab: Jain's index", 0.10, |world| world.jain),
    ("sim against lab: median RTT", 0.20, |world| world.rtt),
];
/// The bound on the differences between an algorithm of the kernel, Wakeai's version of it in the
/// kernel, and Wakeai's version in the simulator.
const ALGORITHM_BOUND: f64 = 0.05;

const ALGORITHMS: &str = "validation/scenarios/lab-algorithms.toml";

/// The names and the runs that are compared.
fn compared() -> Vec<(&'static str, Job)> {
    let own = |name: &str| Job::new(&format!("validation/scenarios/lab-{name}.toml"));
    let shipped = |name: &str, condition: &str| {
        Job::new(&format!("scenarios/{name}.toml")).condition(condition)
    };
    let ours = |name: &str| own("own").condition(name);
    vec![
        ("four uploads", own("up")),
        ("four downloads", own("down")),
        ("two up, two down", own("mixed")),
        ("two fast, two slow", own("unequal")),
        ("six uploads, 512 ms", shipped("shimada-wlan-512ms", "default")),
        ("six uploads, 100 ms", shipped("quickstart", "default")),
        ("the same under shimada-after", shipped("quickstart", "shimada-after")),
        ("the same under airtime", shipped("quickstart", "airtime")),
        ("three in a FIFO: `wakeai_cubic`", ours("wakeai-cubic")),
        ("three in a FIFO: `wakeai_reno`", ours("wakeai-reno")),
        ("three in a FIFO: `wakeai_rtt`", ours("wakeai-rtt")),
        ("three in a FIFO: `wakeai_compound`", ours("wakeai-compound")),
        ("three in a FIFO: `wakeai_av`", ours("wakeai-av")),
    ]
}

fn algorithm_jobs(stations: u32) -> [Job; 2] {
    ["cubic", "wakeai-cubic"]
        .map(|name| Job::new(ALGORITHMS).condition(&format!("{name}-{stations}")))
}

/// The lab's runs that the guide to the papers uses (`validation/papers`): files and conditions, all where none is
/// named.
const OF_THE_PAPERS: [(&str, &[&str]); 4] = [
    (
        "scenarios/kozu-competing.toml",
        &["wire-standard-1024", "wire-fair-1024", "air-standard-1024", "air-fair-1024"],
    ),
    ("scenarios/lab/av-proxy.toml", &[]),
    ("scenarios/matsuno-unequal.toml", &[]),
    ("validation/scenarios/lab-turns.toml", &[]),
];

/// The lab's runs that this page and the guide to the papers use: files with their conditions. An
/// empty list means all conditions of the file.
pub fn lab_files() -> BTreeMap<String, Vec<String>> {
    let mut files = BTreeMap::<String, Vec<String>>::new();
    let scenarios = compared().into_iter().map(|(_, job)| job);
    for job in scenarios.chain(algorithm_jobs(1)).chain(algorithm_jobs(3)) {
        files.entry(job.file).or_default().extend(job.condition);
    }
    for (file, conditions) in OF_THE_PAPERS {
        let conditions = conditions.iter().map(|condition| (*condition).to_owned());
        files.entry(file.to_owned()).or_default().extend(conditions);
    }
    files
}

/// The section's figures.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LabFigures {
    rows: Vec<LabRow>,
    commands: Vec<String>,
    algorithms: Vec<Algorithm>,
    algorithm_commands: [String; 2],
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct LabRow {
    name: String,
    sim: World,
    lab: World,
    holds: bool,
}

/// The goodput of the kernel's algorithm, of Wakeai's in the kernel, and of Wakeai's in the
/// simulator, Mbit/s.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Algorithm {
    stations: u32,
    theirs: f64,
    ours: f64,
    sim: f64,
    /// The relative difference between the largest and the least of them.
    widest: f64,
}

/// The means over some runs: goodput in Mbit/s, Jain's index, median round-trip time in ms.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct World {
    pub(super) goodput: f64,
    pub(super) jain: f64,
    pub(super) rtt: f64,
}

impl World {
    pub(super) fn of(runs: &[Run]) -> Option<Self> {
        Some(Self {
            goodput: mean_of(runs, |run| Some(run.total_goodput_mbps))?,
            jain: mean_of(runs, |run| run.jain)?,
            rtt: mean_of(runs, |run| run.rtt_ms.p50)?,
        })
    }
}

/// Makes the simulator's runs.
///
/// # Errors
///
/// A run fails.
pub fn run(context: &Context, lab: &LabData) -> anyhow::Result<Judged<LabFigures>> {
    let (mut rows, mut commands) = (Vec::new(), Vec::new());
    for (name, job) in compared() {
        let sim = World::of(&context.reports(&job)?);
        let both = sim.zip(World::of(&lab.runs(&job)));
        let Some(row) = both.map(|(sim, lab)| LabRow::new(name, sim, lab)) else { continue };
        rows.push(row);
        commands.push(job.command_in("lab"));
    }
    let mut algorithms = Vec::new();
    for stations in [1, 3] {
        algorithms.extend(Algorithm::find(context, lab, stations)?);
    }
    let worst = COMPARED.iter().map(|(what, bound, figure)| {
        let off = |row: &LabRow| (row.name.clone(), deviation(figure(&row.sim), figure(&row.lab)));
        PromiseVerdict::worst(what, *bound, rows.iter().map(off))
    });
    let widest = algorithms.iter().map(|one| (format!("{} stations", one.stations), one.widest));
    let algorithm = "kernel cubic, kernel wakeai_cubic, simulator";
    let algorithm = PromiseVerdict::worst(algorithm, ALGORITHM_BOUND, widest);
    let verdicts = worst.chain([algorithm]).flatten().collect();
    let algorithm_commands = ["lab", "sim"].map(|world| format!("wakeai {world} {ALGORITHMS}"));
    let figures = LabFigures { rows, commands, algorithms, algorithm_commands };
    Ok(Judged { verdicts, figures })
}

impl LabRow {
    fn new(name: &str, sim: World, lab: World) -> Self {
        let is_within =
            |(_, bound, figure): &Compared| deviation(figure(&sim), figure(&lab)).abs() <= *bound;
        let holds = COMPARED.iter().all(is_within);
        Self { name: name.to_owned(), sim, lab, holds }
    }
}

impl Algorithm {
    fn find(context: &Context, lab: &LabData, stations: u32) -> anyhow::Result<Option<Self>> {
        let jobs = algorithm_jobs(stations);
        let sim = World::of(&context.reports(&jobs[1])?);
        let [theirs, ours] = jobs.map(|job| World::of(&lab.runs(&job)));
        let Some(((theirs, ours), sim)) = theirs.zip(ours).zip(sim) else { return Ok(None) };
        let all = [theirs.goodput, ours.goodput, sim.goodput];
        let least = all.into_iter().fold(f64::INFINITY, f64::min);
        let widest = deviation(all.into_iter().fold(0.0, f64::max), least);
        let [theirs, ours, sim] = all;
        Ok(Some(Self { stations, theirs, ours, sim, widest }))
    }
}
