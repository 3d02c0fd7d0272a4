//! Uploads over the 802.11 stack of Linux, over TUN devices, and in the simulator.

use serde::{Deserialize, Serialize};
use wakeai_results::result::Run;

use super::Judged;
use super::lab::World;
use crate::bianchi::{AfterCollision, saturated};
use crate::context::Context;
use crate::job::Job;
use crate::stack::{StackData, command};
use crate::statistics::{deviation, mean_of};
use crate::verdict::PromiseVerdict;

/// Uploads by TCP.
const TCP: &str = "validation/scenarios/stack.toml";

/// Uploads by UDP that saturate the channel.
const UDP: &str = "validation/scenarios/stack-udp.toml";

/// The numbers of stations whose uploads by UDP are compared with Bianchi's model.
const SATURATED: [u32; 3] = [1, 6, 12];

/// What is offered by UDP of all stations together, Mbit/s: more than the channel carries.
const OFFERED: u32 = 48;

/// Standard and number of stations, and the conditions.
const SETTINGS: [(&str, u32, &[&str]); 3] = [
    ("802.11g", 1, &["default", "airtime"]),
    ("802.11n", 6, &["default", "airtime"]),
    ("802.11n", 25, &["default", "airtime", "window", "window-budget"]),
];

/// A figure: its bound on the simulator's deviation from the stack, and its value.
type Compared = (&'static str, f64, fn(&StackWorld) -> f64);

const COMPARED: [Compared; 2] = [
    ("sim against the 802.11 stack: total goodput", 0.15, |world| world.world.goodput),
    ("sim against the 802.11 stack: Jain's index", 0.15, |world| world.world.jain),
];

/// The bound on the deviation of UDP over the stack from Bianchi's model.
const BIANCHI_BOUND: f64 = 0.05;

/// The section's figures.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StackFigures {
    rows: Vec<StackRow>,
    saturated: Vec<SaturatedRow>,
    /// The goodput over the stack with the budget of one aggregate, as a multiple of that without.
    gain: Option<f64>,
    commands: Vec<String>,
}

/// One condition of a setting.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct StackRow {
    standard: String,
    stations: u32,
    condition: String,
    /// The number of runs over the stack.
    runs: usize,
    stack: StackWorld,
    /// Where Minstrel chooses the rates.
    minstrel: Option<StackWorld>,
    /// Stations whose hosts have TUN devices.
    tun: Option<StackWorld>,
    sim: StackWorld,
}

/// The figures of some runs, and the mean number of frames in a transmission.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct StackWorld {
    #[serde(flatten)]
    world: World,
    frames: f64,
}

/// UDP that saturates the channel: the goodput, Mbit/s.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct SaturatedRow {
    stations: u32,
    stack: f64,
    minstrel: Option<f64>,
    sim: f64,
    model: f64,
}

impl StackWorld {
    fn of(runs: &[Run]) -> Option<Self> {
        let frames = |run: &Run| run.frames.map(|sent| sent.mpdus as f64 / sent.ppdus as f64);
        Some(Self { world: World::of(runs)?, frames: mean_of(runs, frames)? })
    }
}

/// What is below a station's TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Below {
    /// The 802.11 stack, with rates pinned.
    Stack,
    /// The same with Minstrel's rates.
    Minstrel,
    /// A TUN device.
    Tun,
}

/// The uploads by TCP in a setting.
fn tcp(standard: &str, stations: u32, condition: &str, below: Below) -> Job {
    let job = Job::new(TCP).condition(condition);
    over(job.set("access_point.standard", standard).set("stations.sta.count", stations), below)
}

/// The uploads by UDP of this many stations.
fn udp(stations: u32, below: Below) -> Job {
    let each = f64::from(OFFERED) / f64::from(stations);
    let job = Job::new(UDP).set("stations.sta.count", stations);
    over(job.set("flows.1.rate", format!("{each}Mbit/s")), below)
}

fn over(job: Job, below: Below) -> Job {
    match below {
        Below::Stack => job,
        Below::Minstrel => job.set("access_point.stack", "mac80211-minstrel"),
        Below::Tun => job.set("access_point.stack", "none"),
    }
}

/// All runs that the section needs of the lab.
pub fn jobs() -> Vec<Job> {
    let saturated = |stations| [Below::Stack, Below::Minstrel].map(|below| udp(stations, below));
    let mut jobs: Vec<Job> = SATURATED.into_iter().flat_map(saturated).collect();
    for (standard, stations, conditions) in SETTINGS {
        for condition in conditions {
            let all = [Below::Stack, Below::Minstrel, Below::Tun];
            jobs.extend(all.map(|below| tcp(standard, stations, condition, below)));
        }
    }
    jobs
}

/// Makes the simulator's runs. `None` without runs over the stack.
///
/// # Errors
///
/// A run fails.
pub fn run(context: &Context, data: &StackData) -> anyhow::Result<Option<Judged<StackFigures>>> {
    if data.is_empty() {
        return Ok(None);
    }
    let mut rows = Vec::new();
    for (standard, stations, conditions) in SETTINGS {
        for condition in conditions {
            let job = |below| tcp(standard, stations, condition, below);
            let runs = data.runs(&job(Below::Stack));
            let sim = StackWorld::of(&context.reports(&job(Below::Stack))?);
            let Some((stack, sim)) = StackWorld::of(&runs).zip(sim) else { continue };
            rows.push(StackRow {
                standard: standard.to_owned(),
                stations,
                condition: (*condition).to_owned(),
                runs: runs.len(),
                stack,
                minstrel: StackWorld::of(&data.runs(&job(Below::Minstrel))),
                tun: StackWorld::of(&data.runs(&job(Below::Tun))),
                sim,
            });
        }
    }
    let mut over_udp = Vec::new();
    for stations in SATURATED {
        let goodput = |runs: &[Run]| mean_of(runs, |run| Some(run.total_goodput_mbps));
        let job = udp(stations, Below::Stack);
        let Some(stack) = goodput(&data.runs(&job)) else { continue };
        let Some(sim) = goodput(&context.reports(&job)?) else { continue };
        let minstrel = goodput(&data.runs(&udp(stations, Below::Minstrel)));
        let model = saturated(stations, false, AfterCollision::Difs).mbps;
        over_udp.push(SaturatedRow { stations, stack, minstrel, sim, model });
    }
    let of_condition = |name: &str| rows.iter().find(|row| row.condition == name);
    let gain = of_condition("window-budget").zip(of_condition("window"));
    let gain = gain.map(|(with, without)| with.stack.world.goodput / without.stack.world.goodput);
    let made = jobs().into_iter().filter(|job| !data.runs(job).is_empty());
    let commands = made.map(|job| command(&job)).collect();
    let verdicts = verdicts(&rows, &over_udp);
    let figures = StackFigures { rows, saturated: over_udp, gain, commands };
    Ok(Some(Judged { verdicts, figures }))
}

fn verdicts(rows: &[StackRow], over_udp: &[SaturatedRow]) -> Vec<PromiseVerdict> {
    let name = |row: &StackRow| format!("{} of {}, {}", row.stations, row.standard, row.condition);
    let compared = COMPARED.iter().map(|(what, bound, figure)| {
        let off =
            rows.iter().map(|row| (name(row), deviation(figure(&row.sim), figure(&row.stack))));
        PromiseVerdict::worst(what, *bound, off)
    });
    let off = over_udp.iter();
    let off =
        off.map(|row| (format!("{} stations", row.stations), deviation(row.stack, row.model)));
    let what = "the 802.11 stack against Bianchi's model: UDP";
    compared.chain([PromiseVerdict::worst(what, BIANCHI_BOUND, off)]).flatten().collect()
}
