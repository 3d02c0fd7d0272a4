//! One endless connection: its goodput beside that of ns-3.

use serde::{Deserialize, Serialize};

use super::Judged;
use crate::context::Context;
use crate::job::Job;
use crate::reference::Reference;
use crate::statistics::{Interval, deviation};
use crate::verdict::PromiseVerdict;

const BOUND: f64 = 0.05;

/// Standard, and whether RTS/CTS precedes the data.
pub const SETTINGS: [(&str, bool); 4] = [("g", false), ("g", true), ("n", false), ("ac", false)];

/// The section's figures.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SingleFigures {
    rows: Vec<SingleRow>,
    command: String,
}

/// Goodput in Mbit/s.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct SingleRow {
    name: String,
    direction: String,
    sim: Interval,
    ns3: Interval,
}

/// The run that is compared with one of ns-3's.
pub fn job(standard: &str, rts: bool, direction: &str) -> Job {
    let job = Job::new("validation/scenarios/ns3-single.toml")
        .condition(direction)
        .set("access_point.standard", format!("802.11{standard}"));
    if rts {
        job.set("access_point.protection", "rts-cts").set("access_point.rts_threshold", 0)
    } else {
        job
    }
}

/// Makes the runs.
///
/// # Errors
///
/// A run fails.
pub fn run(context: &Context, reference: &Reference) -> anyhow::Result<Judged<SingleFigures>> {
    let mut rows = Vec::new();
    for (standard, rts) in SETTINGS {
        for direction in ["down", "up"] {
            let ns3 = Interval::of(&reference.single(standard, rts, direction));
            let runs = context.all(&job(standard, rts, direction))?;
            let sim: Vec<f64> = runs.iter().map(|run| run.run.total_goodput_mbps).collect();
            let Some((sim, ns3)) = Interval::of(&sim).zip(ns3) else { continue };
            let name = format!("802.11{standard}{}", if rts { ", RTS/CTS" } else { "" });
            rows.push(SingleRow { name, direction: direction.to_owned(), sim, ns3 });
        }
    }
    let found = rows.iter().map(|row| {
        (format!("{} {}", row.name, row.direction), deviation(row.sim.mean, row.ns3.mean))
    });
    let verdict = PromiseVerdict::worst("one TCP connection, ns-3", BOUND, found);
    let command = job("ac", false, "down").command_of(context.seeds);
    Ok(Judged { verdicts: verdict.into_iter().collect(), figures: SingleFigures { rows, command } })
}
