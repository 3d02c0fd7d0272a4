//! Sized transfers of many stations, compared case by case with ns-3's runs.

use serde::{Deserialize, Serialize};

use super::Judged;
use crate::context::Context;
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
pub fn job(case: Case) -> Job {
    let job = Job::new("validation/scenarios/ns3-transfers.toml")
        .condition(case.direction())
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

#[derive(Clone, Debug, Serialize, Deserialize)]
struct CaseRow {
    name: String,
    sim: Summary,
    ns3: Summary,
    mean_holds: bool,
    ends_hold: bool,
    counts_hold: bool,
}

/// One case in both simulators.
#[derive(Clone, Copy, Debug)]
pub struct Compared {
    /// The case.
    pub case: Case,
    /// The summary of Wakeai's runs.
    pub sim: Summary,
    /// The summary of ns-3's runs.
    pub ns3: Summary,
}

impl Compared {
    /// Whether the means are close, or each lies in the other's interval.
    pub fn mean_holds(&self) -> bool {
        let off = deviation(self.sim.mean.mean, self.ns3.mean.mean).abs();
        let (ours, theirs) = (self.sim.mean, self.ns3.mean);
        off <= MEAN_BOUND || (ours.contains(theirs.mean) && theirs.contains(ours.mean))
    }

    /// Whether the first and the last completion are close.
    pub fn ends_hold(&self) -> bool {
        let off = |ours: f64, theirs: f64| deviation(ours, theirs).abs();
        off(self.sim.first, self.ns3.first) <= ENDS_BOUND
            && off(self.sim.last, self.ns3.last) <= ENDS_BOUND
    }

    /// Whether timeouts and drops are within a factor of two.
    pub fn counts_hold(&self) -> bool {
        factor(self.sim.timeouts, self.ns3.timeouts) <= FACTOR_BOUND
            && factor(self.sim.drops, self.ns3.drops) <= FACTOR_BOUND
    }

    fn name(&self) -> String {
        let Case { stations, buffer, congestion, .. } = self.case;
        let congestion = match congestion {
            Congestion::Cubic => "",
            Congestion::RfcCubic => ", RFC CUBIC",
            Congestion::Reno => ", Reno",
        };
        format!("{stations} {}, buffer {buffer}{congestion}", self.case.direction())
    }
}

/// Runs `case`, and compares it with ns-3's runs; `None` if ns-3 has no runs of it.
///
/// # Errors
///
/// A run fails.
pub fn compare(
    context: &Context,
    reference: &Reference,
    case: Case,
) -> anyhow::Result<Option<Compared>> {
    let theirs: Vec<Transfers> = reference.of(case).map(Ns3Run::transfers).collect();
    // The numbers of timeouts differ much between runs, because timeouts come in clusters of a few
    // connections.
    let ours = context.with_seeds(&job(case), context.more_seeds())?;
    let ours: Vec<Transfers> = ours.into_iter().map(|run| run.transfers).collect();
    let compared = Summary::of(&ours).zip(Summary::of(&theirs));
    Ok(compared.map(|(sim, ns3)| Compared { case, sim, ns3 }))
}

/// Makes the runs.
///
/// # Errors
///
/// A run fails.
pub fn run(context: &Context, reference: &Reference) -> anyhow::Result<Judged<CaseFigures>> {
    let mut compared = Vec::new();
    for case in reference.cases() {
        compared.extend(compare(context, reference, case)?);
    }
    let command = compared.last().map(|last| job(last.case).command_of(context.more_seeds()));
    let rows = compared.iter().map(|one| CaseRow {
        name: one.name(),
        sim: one.sim,
        ns3: one.ns3,
        mean_holds: one.mean_holds(),
        ends_hold: one.ends_hold(),
        counts_hold: one.counts_hold(),
    });
    let figures = CaseFigures { rows: rows.collect(), command };
    Ok(Judged { verdicts: verdicts(&compared), figures })
}

fn verdicts(compared: &[Compared]) -> Vec<PromiseVerdict> {
    let verdict = |what: &str, bound: &str, cases: &[Compared], holds: fn(&Compared) -> bool| {
        let outside: Vec<String> =
            cases.iter().filter(|one| !holds(one)).map(Compared::name).collect();
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
    let (ours, theirs): (Vec<Compared>, Vec<Compared>) =
        compared.iter().partition(|one| one.case.congestion == Congestion::RfcCubic);
    let counts = "within a factor of 2";
    vec![
        verdict(
            "mean completion",
            "within 10 %, or each mean in the other's interval",
            compared,
            Compared::mean_holds,
        ),
        verdict("first and last", "within 25 %", compared, Compared::ends_hold),
        verdict("timeouts and drops", counts, &theirs, Compared::counts_hold),
        verdict(
            "timeouts and drops with a CUBIC that we gave to ns-3",
            counts,
            &ours,
            Compared::counts_hold,
        ),
    ]
}
