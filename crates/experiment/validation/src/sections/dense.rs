//! 10 to 40 stations on 802.11g (Yamaguchi et al.): tables 2 to 4, buffers, timeouts, figures 8 to 11.

use serde::{Deserialize, Serialize};

use super::Judged;
use crate::context::{Context, Simulated};
use crate::job::Job;
use crate::statistics::deviation;
use crate::svg::Picture;
use crate::transfers::{Summary, Transfers};

/// The paper's table 2: one station, down and up, Mbit/s.
const ALONE_MBPS: [f64; 2] = [21.6, 20.7];

/// A row of the paper's table 3 or 4, seconds.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Printed {
    stations: u32,
    least: f64,
    most: f64,
    mean: f64,
    ideal: f64,
}

const fn printed(stations: u32, least: f64, most: f64, mean: f64, ideal: f64) -> Printed {
    Printed { stations, least, most, mean, ideal }
}

const TABLE_3: [Printed; 4] = [
    printed(10, 33.0, 42.0, 39.0, 37.0),
    printed(20, 78.0, 89.0, 85.0, 74.0),
    printed(30, 117.0, 126.0, 124.0, 111.0),
    printed(40, 154.0, 167.0, 163.0, 148.0),
];

const TABLE_4: [Printed; 4] = [
    printed(10, 33.0, 41.0, 36.0, 40.0),
    printed(20, 39.0, 127.0, 63.0, 79.0),
    printed(30, 73.0, 209.0, 110.0, 119.0),
    printed(40, 88.0, 269.0, 157.0, 158.0),
];

const BUFFERS: [u32; 6] = [50, 100, 200, 300, 500, 1000];

/// The section's figures.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Figures {
    choice: Vec<Choice>,
    /// The row of `choice` whose goodputs are closest to those of table 2.
    closest: Choice,
    choice_command: String,
    down: Vec<Row>,
    up: Vec<Row>,
    commands: [String; 2],
    buffers: Vec<Buffer>,
    buffers_command: String,
    pub(super) pictures: Vec<Picture>,
}

/// The goodput of one station for one choice of protection and PHY rate, and the goodput in the
/// paper's table 2, Mbit/s.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Choice {
    protection: String,
    rate: u32,
    down: f64,
    up: f64,
    paper_down: f64,
    paper_up: f64,
}

impl Choice {
    fn find(context: &Context, protection: &str, rate: u32) -> anyhow::Result<Self> {
        let mbps = |direction| -> anyhow::Result<f64> {
            Ok(context.one(&alone(direction, protection, rate))?.run.total_goodput_mbps)
        };
        let [paper_down, paper_up] = ALONE_MBPS;
        let (down, up) = (mbps("down")?, mbps("up")?);
        Ok(Self { protection: protection.to_owned(), rate, down, up, paper_down, paper_up })
    }

    /// The sum of the absolute deviations from table 2.
    fn off(&self) -> f64 {
        deviation(self.down, self.paper_down).abs() + deviation(self.up, self.paper_up).abs()
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Row {
    sim: Summary,
    paper: Printed,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Buffer {
    direction: String,
    packets: u32,
    sim: Summary,
}

fn job(direction: &str, stations: u32) -> Job {
    Job::new(&format!("scenarios/dense-{direction}load.toml"))
        .condition(&format!("stations-{stations}"))
}

fn alone(direction: &str, protection: &str, rate: u32) -> Job {
    Job::new("validation/scenarios/ns3-single.toml")
        .condition(direction)
        .set("access_point.protection", protection)
        .set("stations.tablet.rate", format!("{rate}Mbit/s"))
        .set("stations.tablet.queue", 1000)
        .set("warmup", "0s")
        .set("duration", "30s")
}

/// Makes the runs.
///
/// # Errors
///
/// A run fails.
pub fn run(context: &Context) -> anyhow::Result<Judged<Figures>> {
    let mut choice = Vec::new();
    for protection in ["none", "cts-to-self", "rts-cts"] {
        for rate in [36, 48, 54] {
            choice.push(Choice::find(context, protection, rate)?);
        }
    }
    let closest = choice.iter().min_by(|a, b| a.off().total_cmp(&b.off()));
    let closest = closest.expect("there are rates").clone();
    let mut buffers = Vec::new();
    for direction in ["down", "up"] {
        for buffer in BUFFERS {
            let runs = context.all(&job(direction, 40).set("access_point.buffer", buffer))?;
            let direction = direction.to_owned();
            buffers.extend(summary(&runs).map(|sim| Buffer { direction, packets: buffer, sim }));
        }
    }
    let figures = Figures {
        choice,
        closest,
        choice_command: alone("up", "cts-to-self", 54).command(),
        down: against(context, "down", &TABLE_3)?,
        up: against(context, "up", &TABLE_4)?,
        commands: ["down", "up"].map(|direction| job(direction, 40).command_of(context.seeds)),
        buffers,
        buffers_command: job("up", 40).set("access_point.buffer", 50).command_of(context.seeds),
        pictures: pictures(context)?,
    };
    Ok(Judged { verdicts: Vec::new(), figures })
}

fn against(context: &Context, direction: &str, rows: &[Printed]) -> anyhow::Result<Vec<Row>> {
    let mut found = Vec::new();
    for &paper in rows {
        let runs = context.all(&job(direction, paper.stations))?;
        found.extend(summary(&runs).map(|sim| Row { sim, paper }));
    }
    Ok(found)
}

/// The summary with the waits for SYNs, which are part of the paper's measurements.
fn summary(runs: &[Simulated]) -> Option<Summary> {
    let whole = |run: &Simulated| {
        let mut transfers = run.transfers.clone();
        transfers.flows.iter_mut().for_each(|flow| flow.syns = 1);
        transfers
    };
    Summary::of(&runs.iter().map(whole).collect::<Vec<Transfers>>())
}

/// Figures 8 to 11: the goodput of each station over time, of one run.
fn pictures(context: &Context) -> anyhow::Result<Vec<Picture>> {
    let (down, up) = (context.one(&job("down", 40))?, context.one(&job("up", 40))?);
    let completion = |flow: &usize| up.transfers.flows[*flow].completion_s.unwrap_or(f64::MAX);
    let mut finishers: Vec<usize> = (0..up.transfers.flows.len()).collect();
    finishers.sort_by(|a, b| completion(a).total_cmp(&completion(b)));
    let (first, last) = (&finishers[..1], &finishers[finishers.len() - 1..]);
    let mut all = finishers.clone();
    all.sort_unstable();
    let pictures = [
        ("dense-figure-8", "Figure 8: download, every station", &down, &all[..]),
        ("dense-figure-9", "Figure 9: upload, every station", &up, &all[..]),
        ("dense-figure-10", "Figure 10: upload, the first to finish", &up, first),
        ("dense-figure-11", "Figure 11: upload, the last to finish", &up, last),
    ];
    Ok(pictures
        .map(|(name, title, run, flows)| Picture {
            file: format!("{name}.svg"),
            title: title.to_owned(),
            vertical: "Mbit/s".to_owned(),
            lines: flows.iter().map(|flow| run.goodput_over_time(*flow)).collect(),
        })
        .into())
}
