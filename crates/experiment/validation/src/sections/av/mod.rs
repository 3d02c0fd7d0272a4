//! TCP-AV (TCP-AV paper, section 4): figure 17, reservations, and several senders whose targets
//! exceed the capacity.

mod many;
mod reserved;
mod target;

use serde::{Deserialize, Serialize};
use wakeai_results::result::Run;

use super::Judged;
use crate::context::Context;
use crate::lab::LabData;

pub use reserved::lab_jobs;

/// The equivalent bandwidth (EB): the goodput of one station alone, Mbit/s, as in the scenarios.
const ALONE_MBPS: f64 = 24.16;

/// The section's figures.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Figures {
    /// The goodput of one station alone, Mbit/s.
    alone: f64,
    target: target::Figures,
    reserved: reserved::Figures,
    many: many::Figures,
}

/// Makes the runs.
///
/// # Errors
///
/// A run fails.
pub fn run(context: &Context, lab: &LabData) -> anyhow::Result<Judged<Figures>> {
    let target = target::run(context)?;
    let reserved = reserved::run(context, lab)?;
    let many = many::run(context)?;
    let verdicts = [target.verdicts, reserved.verdicts, many.verdicts].concat();
    let figures = Figures {
        alone: ALONE_MBPS,
        target: target.figures,
        reserved: reserved.figures,
        many: many.figures,
    };
    Ok(Judged { verdicts, figures })
}

/// The goodput of each flow except the first, which has the target, Mbit/s.
fn others(run: &Run) -> Vec<f64> {
    run.flows.iter().skip(1).map(|flow| flow.goodput_mbps).collect()
}
