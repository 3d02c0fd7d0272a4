//! A saturated uplink, which tests the medium alone.

use serde::{Deserialize, Serialize};

use super::Judged;
use crate::bianchi::{AfterCollision, saturated};
use crate::context::Context;
use crate::job::Job;
use crate::reference::{Case, Ns3Run, Reference};
use crate::statistics::deviation;
use crate::verdict::PromiseVerdict;

const BOUND: f64 = 0.05;

/// The section's figures.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SaturationFigures {
    rows: Vec<SaturationRow>,
    commands: [String; 2],
}

/// The goodput of payload in Mbit/s, and the share of attempts that were not answered.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct SaturationRow {
    stations: u32,
    rts: bool,
    sim: f64,
    ns3: Option<f64>,
    /// The goodput by Bianchi's model with DIFS, and with EIFS, after a collision.
    difs: f64,
    eifs: f64,
    sim_p: f64,
    ns3_p: Option<f64>,
    model_p: f64,
}

/// The run that is compared with one of ns-3's.
pub fn job(stations: u32, rts: bool) -> Job {
    let job =
        Job::new("validation/scenarios/ns3-saturation.toml").set("stations.tablet.count", stations);
    if rts { job.set("access_point.protection", "rts-cts") } else { job }
}

/// Makes the runs.
///
/// # Errors
///
/// A run fails.
pub fn run(context: &Context, reference: &Reference) -> anyhow::Result<Judged<SaturationFigures>> {
    let both = reference.saturated(false).chain(reference.saturated(true));
    let rows = both
        .map(|row| SaturationRow::find(context, row))
        .collect::<anyhow::Result<Vec<SaturationRow>>>()?;
    let ns3 = rows.iter().filter_map(|row| Some((row.name(), deviation(row.sim, row.ns3?))));
    let model = rows.iter().map(|row| (row.name(), deviation(row.sim, row.difs)));
    let verdicts = [
        PromiseVerdict::worst("saturation, ns-3", BOUND, ns3),
        PromiseVerdict::worst("saturation, Bianchi's model", BOUND, model),
    ];
    let commands = [job(40, false).command(), job(40, true).command()];
    let verdicts = verdicts.into_iter().flatten().collect();
    Ok(Judged { verdicts, figures: SaturationFigures { rows, commands } })
}

impl SaturationRow {
    fn find(context: &Context, row: &Ns3Run) -> anyhow::Result<Self> {
        let Ns3Run { rts, case: Case { stations, .. }, .. } = *row;
        let simulated = context.one(&job(stations, rts))?;
        let difs = saturated(stations, rts, AfterCollision::Difs);
        Ok(Self {
            stations,
            rts,
            sim: simulated.run.total_goodput_mbps,
            ns3: row.goodput_mbps,
            difs: difs.mbps,
            eifs: saturated(stations, rts, AfterCollision::Eifs).mbps,
            sim_p: simulated.failed_share(rts),
            ns3_p: row.failed_share(),
            model_p: difs.collision,
        })
    }

    fn name(&self) -> String {
        format!("{} stations{}", self.stations, if self.rts { ", RTS/CTS" } else { "" })
    }
}
