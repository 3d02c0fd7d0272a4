//! RTT-fair CUBIC (Kozu et al.): figures 3 to 11.

mod competing;
mod compound;

use serde::{Deserialize, Serialize};
use wakeai_results::result::Run;

use super::Judged;
use crate::context::{Context, Simulated};
use crate::job::Job;
use crate::lab::LabData;
use crate::statistics::mean_of;
use crate::svg::Picture;

pub use competing::lab_jobs;

/// Round-trip times of the paper, ms.
const RTTS: [u32; 4] = [128, 256, 512, 1024];
/// The bottlenecks: the prefix of the conditions' names, and a name for the page.
const BOTTLENECKS: [(&str, &str); 2] = [("wire", "FIFO"), ("air", "air")];
/// The algorithms: the word in the conditions' names, and a name for the page.
const ALGORITHMS: [(&str, &str); 2] = [("standard", "CUBIC"), ("fair", "`wakeai_rtt`")];
/// The largest socket buffers, of today and of the paper's time: the profile of TCP, and the size.
const BUFFERS: [(&str, &str); 2] = [("linux", "64 MB"), ("classic", "4 MB")];
/// The changes of the delays during a run: the last part of the conditions' names, and the RTTs in
/// words.
const MOVES: [(&str, &str); 3] = [
    ("grows", "128; 128 to 1024 ms"),
    ("shrinks", "128; 1024 to 128 ms"),
    ("swap", "128 to 1024; 1024 to 128 ms"),
];
/// Figures 6 to 9, all at the FIFO: the algorithm's word in the conditions' names, the flow, the
/// figure's number in the paper, and the title.
const CURVES: [(&str, usize, u32, &str); 4] = [
    ("standard", 0, 6, "CUBIC at 128 ms"),
    ("standard", 1, 7, "CUBIC at 1024 ms"),
    ("fair", 0, 8, "wakeai_rtt at 128 ms"),
    ("fair", 1, 9, "wakeai_rtt at 1024 ms"),
];

/// The section's figures.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Figures {
    alone: Vec<Alone>,
    alone_command: String,
    competing: Vec<competing::Row>,
    competing_commands: [String; 2],
    curves: Vec<Curve>,
    pub(super) pictures: Vec<Picture>,
    curve_command: String,
    moving: Vec<Moving>,
    moving_command: String,
    compound: Vec<compound::Row>,
    compound_commands: [String; 2],
}

/// Figure 3: goodput of one phone at each RTT, Mbit/s.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Alone {
    bottleneck: String,
    algorithm: String,
    buffers: String,
    mbps: [Option<f64>; 4],
}

/// Figures 6 to 9: the mean of K over time at 128 ms and at 1024 ms, seconds.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Curve {
    bottleneck: String,
    algorithm: String,
    near: Option<f64>,
    far: Option<f64>,
}

/// Figure 10: the delay changes during the run.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Moving {
    bottleneck: String,
    rtts: String,
    standard: Pair,
    fair: Pair,
}

/// The goodput of two flows over some runs, Mbit/s.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Pair {
    first: f64,
    second: f64,
    total: f64,
    jain: f64,
}

fn job(file: &str, condition: &str) -> Job {
    Job::new(&format!("scenarios/{file}.toml")).condition(condition)
}

/// Makes the runs.
///
/// # Errors
///
/// A run fails.
pub fn run(context: &Context, lab: &LabData) -> anyhow::Result<Judged<Figures>> {
    let (mut alone, mut curves, mut moving) = (Vec::new(), Vec::new(), Vec::new());
    let (mut pictures, mut competing, mut compound) = (Vec::new(), Vec::new(), Vec::new());
    for (prefix, bottleneck) in BOTTLENECKS {
        let bottleneck = bottleneck.to_owned();
        for (word, algorithm) in ALGORITHMS {
            let algorithm = algorithm.to_owned();
            for (tcp, buffers) in BUFFERS {
                let (bottleneck, algorithm) = (bottleneck.clone(), algorithm.clone());
                let mbps = phone_alone(context, prefix, word, tcp)?;
                alone.push(Alone { bottleneck, algorithm, buffers: buffers.to_owned(), mbps });
            }
            competing.push(competing::Row::find(context, lab, prefix, word)?);
            let run = context.one(&job("kozu-competing", &format!("{prefix}-{word}-1024")))?;
            let [near, far] = [0, 1].map(|flow| mean_k(&run, flow));
            curves.push(Curve { bottleneck: bottleneck.clone(), algorithm, near, far });
            if prefix == "wire" {
                pictures.extend(curves_of(word, &run));
            }
        }
        for (name, rtts) in MOVES {
            let [standard, fair] = ALGORITHMS.map(|(word, _)| {
                Pair::simulated(context, &job("kozu-moving", &format!("{prefix}-{word}-{name}")))
            });
            let (bottleneck, rtts) = (bottleneck.clone(), rtts.to_owned());
            moving.push(Moving { bottleneck, rtts, standard: standard?, fair: fair? });
        }
        compound.extend(compound::rows(context, prefix, &bottleneck)?);
    }
    let mut verdicts = competing::verdicts(&competing);
    verdicts.extend(compound::verdicts(&compound));
    let small = job("kozu-single", "air-standard-1024").set("stations.phone.tcp", "classic");
    let figures = Figures {
        alone,
        alone_command: small.command_of(context.seeds),
        competing,
        competing_commands: competing::commands(context.seeds),
        curves,
        pictures,
        curve_command: format!("{} --out DIR", job("kozu-competing", "wire-fair-1024").command()),
        moving,
        moving_command: job("kozu-moving", "wire-fair-grows").command_of(context.seeds),
        compound,
        compound_commands: compound::commands(context.seeds),
    };
    Ok(Judged { verdicts, figures })
}

fn phone_alone(
    context: &Context,
    prefix: &str,
    word: &str,
    tcp: &str,
) -> anyhow::Result<[Option<f64>; 4]> {
    let mut mbps = [None; 4];
    for (mbps, rtt) in mbps.iter_mut().zip(RTTS) {
        let job = job("kozu-single", &format!("{prefix}-{word}-{rtt}"));
        let runs = context.runs(&job.set("stations.phone.tcp", tcp), context.seeds)?;
        *mbps = mean_of(&runs, |run| Some(run.total_goodput_mbps));
    }
    Ok(mbps)
}

fn curves_of(word: &str, run: &Simulated) -> impl Iterator<Item = Picture> {
    CURVES.into_iter().filter(move |one| one.0 == word).map(|(_, flow, figure, says)| Picture {
        file: format!("kozu-figure-{figure}.svg"),
        title: format!("Figure {figure}: K of {says}"),
        vertical: "K, seconds".to_owned(),
        lines: vec![run.k_over_time(flow)],
    })
}

/// The mean of K over the time in which it is known, seconds.
fn mean_k(run: &Simulated, flow: usize) -> Option<f64> {
    let points = run.k_over_time(flow);
    let area: f64 = points.windows(2).map(|two| two[0].1 * (two[1].0 - two[0].0)).sum();
    let span = points.last()?.0 - points.first()?.0;
    (span > 0.0).then(|| area / span)
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

    /// The figures of a job over its seeds.
    fn simulated(context: &Context, job: &Job) -> anyhow::Result<Self> {
        job.require(Self::of(&context.runs(job, context.seeds)?))
    }
}
