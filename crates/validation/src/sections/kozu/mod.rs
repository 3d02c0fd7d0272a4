//! RTT-fair CUBIC (paper 002): figures 3 to 11.

mod alone;
mod competing;
mod compound;
mod curve;
mod moving;

use wakeai_scenario::result::Run;

use crate::context::Context;
use crate::job::Job;
use crate::lab::LabData;
use crate::markdown::Page;
use crate::statistics::mean_of;
use crate::verdict::Verdict;

/// Round-trip times of the paper, ms.
const RTTS: [u32; 4] = [128, 256, 512, 1024];
/// Where the bottleneck is: the conditions' prefix, and in words.
const BOTTLENECKS: [(&str, &str); 2] = [("wire", "FIFO"), ("air", "air")];
/// The conditions' word, and the algorithm.
const ALGORITHMS: [(&str, &str); 2] = [("standard", "CUBIC"), ("fair", "`wakeai_rtt`")];

fn job(file: &str, condition: &str) -> Job {
    Job::new(&format!("scenarios/{file}.toml")).condition(condition)
}

/// Every run that the section wants from the lab.
pub fn lab_jobs() -> Vec<Job> {
    competing::lab_jobs()
}

/// Writes the section.
///
/// # Errors
///
/// Where a run fails.
pub fn write(context: &Context, lab: &LabData, page: &mut Page) -> anyhow::Result<Vec<Verdict>> {
    page.heading(2, "RTT-fair CUBIC (002)");
    page.paragraph(
        "Uploads over 802.11n; the bottleneck is a FIFO of 20 Mbit/s and 200 packets behind the \
         access point, where both connections share a queue, or the air, where each station has a \
         queue of its own and DCF shares the turns out. The paper's figures are pictures, and it \
         does not say where its bottleneck was; from its set-up, a wireless LAN and an emulator that \
         adds delay, it was the air. Means over the seeds.",
    );
    alone::write(context, page)?;
    let mut verdicts = competing::write(context, lab, page)?;
    curve::write(context, page)?;
    moving::write(context, page)?;
    verdicts.extend(compound::write(context, page)?);
    Ok(verdicts)
}

/// What two flows got, Mbit/s, over some runs.
#[derive(Clone, Copy, Debug)]
struct Pair {
    first: f64,
    second: f64,
    total: f64,
    jain: f64,
}

impl Pair {
    fn of(runs: &[Run]) -> Option<Self> {
        Some(Self {
            first: mean_of(runs, |run| Some(run.flows.first()?.goodput_mbps))?,
            second: mean_of(runs, |run| Some(run.flows.get(1)?.goodput_mbps))?,
            total: mean_of(runs, |run| Some(run.total_goodput_mbps))?,
            jain: mean_of(runs, |run| run.jain)?,
        })
    }

    /// Of the seeds of a job.
    fn simulated(context: &Context, job: &Job) -> anyhow::Result<Self> {
        let runs = context.runs(job, context.seeds)?;
        Self::of(&runs).ok_or_else(|| anyhow::anyhow!("{}: nothing was received", job.command()))
    }
}
