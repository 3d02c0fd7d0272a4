//! TCP-AV (paper 004, section 4): figure 17, reservations, and several that want more
//! than there is.

mod many;
mod reserved;
mod target;

use wakeai_scenario::result::Run;

use crate::context::Context;
use crate::job::Job;
use crate::lab::LabData;
use crate::markdown::Page;
use crate::verdict::Verdict;

/// Every run that the section wants from the lab.
pub fn lab_jobs() -> Vec<Job> {
    reserved::lab_jobs()
}

/// Writes the section.
///
/// # Errors
///
/// Where a run fails.
pub fn write(context: &Context, lab: &LabData, page: &mut Page) -> anyhow::Result<Vec<Verdict>> {
    page.heading(2, "TCP-AV (004, section 4)");
    let mut verdicts = target::write(context, page)?;
    verdicts.extend(reserved::write(context, lab, page)?);
    verdicts.extend(many::write(context, page)?);
    Ok(verdicts)
}

/// Mbit/s of each flow but the first, which has the target.
fn others(run: &Run) -> Vec<f64> {
    run.flows.iter().skip(1).map(|flow| flow.goodput_mbps).collect()
}
