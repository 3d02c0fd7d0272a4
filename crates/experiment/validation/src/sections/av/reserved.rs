//! Targets beyond the fair share, with a reservation: figure 17 with agents.

use serde::{Deserialize, Serialize};
use wakeai_results::figures::jain;
use wakeai_results::result::Run;

use super::others;
use crate::context::Context;
use crate::job::Job;
use crate::lab::LabData;
use crate::sections::Judged;
use crate::statistics::mean_of;
use crate::verdict::Verdict;

const SIMULATED: &str = "scenarios/av-reserved.toml";
const LAB: &str = "scenarios/lab/av-proxy.toml";

/// The normalised required throughputs (NRT) in percent of the solo goodput.
const TARGETS: [u32; 7] = [10, 20, 25, 40, 60, 80, 100];
/// The targets up to twice the fair share of five, to which the promises apply.
const PROMISED: [u32; 4] = [10, 20, 25, 40];
/// The targets that are run in the lab.
const LAB_TARGETS: [u32; 3] = [20, 25, 40];

/// The least achievement ratio (AVR) that is promised, and the least Jain's index and total
/// goodput.
const AVR: f64 = 0.95;
const JAIN: f64 = 0.95;
const TOTAL: f64 = 0.95;

/// The section's figures.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Figures {
    sim: Vec<Row>,
    command: String,
    lab: Vec<Row>,
    lab_command: String,
}

/// The means over the runs of one condition.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Found {
    avr: f64,
    others_jain: f64,
    total: f64,
}

impl Found {
    fn of(runs: &[Run]) -> Option<Self> {
        Some(Self {
            avr: mean_of(runs, |run| run.flows.first()?.avr)?,
            others_jain: mean_of(runs, |run| jain(&others(run)))?,
            total: mean_of(runs, |run| Some(run.total_goodput_mbps))?,
        })
    }
}

/// One target: without agents, with agents, with a reservation.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Row {
    nrt: u32,
    plain: Found,
    agents: Found,
    reserved: Found,
}

/// Every run of the lab that the section uses.
pub fn lab_jobs() -> Vec<Job> {
    let of = |nrt| ["", "-agents", "-reserved"].map(|suffix| lab_job(nrt, suffix));
    LAB_TARGETS.into_iter().flat_map(of).collect()
}

fn lab_job(nrt: u32, suffix: &str) -> Job {
    Job::new(LAB).condition(&format!("nrt-{nrt}{suffix}"))
}

fn job(word: &str, nrt: u32) -> Job {
    Job::new(SIMULATED).condition(&format!("{word}-{nrt}"))
}

pub(super) fn run(context: &Context, lab: &LabData) -> anyhow::Result<Judged<Figures>> {
    let sim = TARGETS.map(|nrt| simulated(context, nrt));
    let sim = sim.into_iter().collect::<anyhow::Result<Vec<Row>>>()?;
    let measured: Vec<Row> = LAB_TARGETS.into_iter().filter_map(|nrt| measured(lab, nrt)).collect();
    let mut judged = verdicts("sim", &sim);
    if !measured.is_empty() {
        judged.extend(verdicts("lab", &measured));
    }
    let figures = Figures {
        sim,
        command: job("reserved", 40).command_of(context.more_seeds()),
        lab: measured,
        lab_command: lab_job(40, "-reserved").command_in("lab"),
    };
    Ok(Judged { verdicts: judged, figures })
}

fn simulated(context: &Context, nrt: u32) -> anyhow::Result<Row> {
    let of = |word: &str| {
        // `Context::runs` would be wrong here: an agent computes the share of the air that a
        // reservation needs from the solo goodput of its station.
        let job = job(word, nrt);
        // The totals of single runs differ by 2 %, and the effect is smaller.
        let runs = context.with_seeds(&job, context.more_seeds())?.into_iter().map(|one| one.run);
        job.require(Found::of(&runs.collect::<Vec<Run>>()))
    };
    Ok(Row { nrt, plain: of("plain")?, agents: of("agents")?, reserved: of("reserved")? })
}

fn measured(lab: &LabData, nrt: u32) -> Option<Row> {
    let of = |suffix| Found::of(&lab.runs(&lab_job(nrt, suffix)));
    Some(Row { nrt, plain: of("")?, agents: of("-agents")?, reserved: of("-reserved")? })
}

fn verdicts(world: &str, rows: &[Row]) -> Vec<Verdict> {
    let promised = || rows.iter().filter(|row| PROMISED.contains(&row.nrt));
    let least = |figure: &dyn Fn(&Row) -> f64| promised().map(figure).fold(f64::INFINITY, f64::min);
    let verdict = |what: &str, bound: f64, found: f64| Verdict {
        what: format!("reservations up to twice the fair share, {world}: {what}"),
        bound: format!("{bound} or more"),
        found: format!("{found:.3}"),
        holds: found >= bound,
    };
    vec![
        verdict("AVR", AVR, least(&|row| row.reserved.avr)),
        verdict("Jain's index of the others", JAIN, least(&|row| row.reserved.others_jain)),
        verdict(
            "total goodput, of that without agents",
            TOTAL,
            least(&|row| row.reserved.total / row.plain.total),
        ),
        verdict(
            "total goodput, of that with agents and no reservation",
            TOTAL,
            least(&|row| row.reserved.total / row.agents.total),
        ),
    ]
}
