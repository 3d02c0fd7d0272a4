//! Sized transfers of many stations, compared case by case with ns-3's runs.

use serde::{Deserialize, Serialize};

use super::Judged;
use crate::context::Context;
use crate::detailed::Detail;
use crate::job::Job;
use crate::reference::{Case, Congestion, Ns3Run, Reference};
use crate::statistics::{deviation, factor};
use crate::transfers::{Summary, Transfers};
use crate::verdict::PromiseVerdict;

/// The bound on the deviation of the mean completion. A larger deviation is accepted if each mean
/// lies in the other's interval.
const MEAN_BOUND: f64 = 0.10;
/// The bound on the deviations of the first and the last completion.
const ENDS_BOUND: f64 = 0.25;
/// The bound on the factor between the numbers of timeouts and of drops.
const FACTOR_BOUND: f64 = 2.0;

/// The runs that are compared with ns-3's.
pub fn job(case: &Case) -> Job {
    let job = Job::new("validation/scenarios/ns3-transfers.toml")
        .condition(&case.direction)
        .set("stations.tablet.count", case.stations)
        .set("access_point.buffer", case.buffer);
    match case.congestion {
        Congestion::Cubic => job.set("flows.1.algorithm", "ns3_cubic"),
        Congestion::RfcCubic => job,
        Congestion::Reno => job.set("flows.1.algorithm", "reno"),
    }
}

/// The section's figures.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CaseFigures {
    rows: Vec<CaseRow>,
    command: Option<String>,
}

/// One case in both simulators.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CaseRow {
    name: String,
    sim: Summary,
    ns3: Summary,
    /// Whether the means are close, or each lies in the other's interval.
    pub mean_holds: bool,
    /// Whether the first and the last completion are close.
    pub ends_hold: bool,
    /// Whether timeouts and drops are within a factor of two.
    pub counts_hold: bool,
}

impl CaseRow {
    fn new(case: &Case, sim: Summary, ns3: Summary) -> Self {
        let is_within = |bound, ours, theirs| deviation(ours, theirs).abs() <= bound;
        let is_counted = |ours, theirs| factor(ours, theirs) <= FACTOR_BOUND;
        let (ours, theirs) = (sim.mean, ns3.mean);
        Self {
            name: name(case),
            mean_holds: is_within(MEAN_BOUND, ours.mean, theirs.mean)
                || (ours.contains(theirs.mean) && theirs.contains(ours.mean)),
            ends_hold: is_within(ENDS_BOUND, sim.first, ns3.first)
                && is_within(ENDS_BOUND, sim.last, ns3.last),
            counts_hold: is_counted(sim.timeouts, ns3.timeouts) && is_counted(sim.drops, ns3.drops),
            sim,
            ns3,
        }
    }
}

fn name(case: &Case) -> String {
    let Case { stations, buffer, congestion, direction } = case;
    let congestion = match congestion {
        Congestion::Cubic => "",
        Congestion::RfcCubic => ", RFC CUBIC",
        Congestion::Reno => ", Reno",
    };
    format!("{stations} {direction}, buffer {buffer}{congestion}")
}

/// Runs `case`, and compares it with ns-3's runs; `None` if ns-3 has no runs of it.
///
/// # Errors
///
/// A run fails.
pub fn compare(
    context: &Context,
    reference: &Reference,
    case: &Case,
) -> anyhow::Result<Option<CaseRow>> {
    let theirs: Vec<Transfers> = reference.of(case).map(Ns3Run::transfers).collect();
    // The numbers of timeouts differ much between runs, because timeouts come in clusters of a few
    // connections.
    let ours = context.with_seeds(&job(case), context.more_seeds())?;
    let ours: Vec<Transfers> = ours.iter().map(Detail::transfers).collect();
    let compared = Summary::of(&ours).zip(Summary::of(&theirs));
    Ok(compared.map(|(sim, ns3)| CaseRow::new(case, sim, ns3)))
}

/// Makes the runs.
///
/// # Errors
///
/// A run fails.
pub fn run(context: &Context, reference: &Reference) -> anyhow::Result<Judged<CaseFigures>> {
    let mut compared = Vec::new();
    for case in reference.cases() {
        compared.extend(compare(context, reference, &case)?.map(|row| (case, row)));
    }
    let command = compared.last().map(|(last, _)| job(last).command_of(context.more_seeds()));
    let verdicts = verdicts(&compared);
    let rows = compared.into_iter().map(|(_, row)| row).collect();
    Ok(Judged { verdicts, figures: CaseFigures { rows, command } })
}

fn verdicts(compared: &[(Case, CaseRow)]) -> Vec<PromiseVerdict> {
    use Congestion::RfcCubic;
    let verdict = |what: &str,
                   bound: &str,
                   of: fn(Congestion) -> bool,
                   holds: fn(&CaseRow) -> bool| {
        let cases = compared.iter().filter(|(case, _)| of(case.congestion));
        let cases: Vec<&CaseRow> = cases.map(|(_, row)| row).collect();
        let outside = cases.iter().filter(|one| !holds(one));
        let outside: Vec<&str> = outside.map(|one| one.name.as_str()).collect();
        let found = if outside.is_empty() {
            format!("all of {} cases", cases.len())
        } else {
            format!("{} of {} cases outside: {}", outside.len(), cases.len(), outside.join("; "))
        };
        PromiseVerdict {
            what: format!("TCP transfers, ns-3: {what}"),
            bound: bound.to_owned(),
            found,
            holds: outside.is_empty(),
        }
    };
    let counts = "within a factor of 2";
    let ours = "timeouts and drops with a CUBIC that we gave to ns-3";
    let mean = "within 10 %, or each mean in the other's interval";
    vec![
        verdict("mean completion", mean, |_| true, |row| row.mean_holds),
        verdict("first and last", "within 25 %", |_| true, |row| row.ends_hold),
        verdict("timeouts and drops", counts, |of| of != RfcCubic, |row| row.counts_hold),
        verdict(ours, counts, |of| of == RfcCubic, |row| row.counts_hold),
    ]
}
