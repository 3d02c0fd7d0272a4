//! The figures of one run, and their means.

use std::collections::BTreeMap;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use wakeai_results::figures::jain;
use wakeai_results::result::{Report, Run};
use wakeai_scenario::Scenario;
use wakeai_units::Duration;
use wakeai_world::{Asked, KnownSolos};

use crate::detailed::{self, path};
use crate::law::Setting;
use crate::statistics::mean;

/// Where a condition is on the frontier: the figures of a run, or the means of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// The aggregate goodput, Mbit/s.
    pub goodput: f64,
    /// Jain's index over the goodputs of the stations with TCP, each divided by what the station
    /// reaches alone. A station with UDP alone has the rate that its application asks for.
    pub index: f64,
    /// The 95th percentile of the queueing delay, ms: of each RTT sample the part above the path of
    /// its station, pooled over all stations.
    pub p95_ms: f64,
    /// Retransmission timeouts.
    pub timeouts: f64,
}

impl Point {
    /// The means of several runs.
    pub fn mean(points: &[Self]) -> Self {
        let over = |figure: fn(&Self) -> f64| {
            mean(&points.iter().map(figure).collect::<Vec<_>>()).unwrap_or(f64::NAN)
        };
        Self {
            goodput: over(|point| point.goodput),
            index: over(|point| point.index),
            p95_ms: over(|point| point.p95_ms),
            timeouts: over(|point| point.timeouts),
        }
    }

    /// The means of runs in the lab, whose reports have percentiles by group only. Where the paths
    /// of groups differ, the group with the longest queueing delay counts.
    fn of_reported(scenario: &Scenario, runs: &[&Run]) -> Self {
        let points = runs.iter().map(|run| Self::new(run, reported_p95_ms(scenario, run)));
        Self::mean(&points.collect::<Vec<_>>())
    }

    fn new(run: &Run, p95_ms: f64) -> Self {
        Self {
            goodput: run.total_goodput_mbps,
            index: index(run).unwrap_or(f64::NAN),
            p95_ms,
            timeouts: run.errors.map_or(0.0, |all| all.timeout as f64),
        }
    }
}

/// Jain's index over the goodputs of the stations that send or receive by TCP or QUIC, each divided by what the
/// station reaches alone; a station that does both has the sum of both.
pub(crate) fn index(run: &Run) -> Option<f64> {
    let has_transfers =
        |name: &str| run.flows.iter().any(|of| of.station == name && of.kind != "udp");
    let mut parts = Vec::<(&str, f64)>::new();
    for of in run.stations.iter().filter(|of| has_transfers(&of.station)) {
        let part = of.goodput_mbps / of.max_mbps?;
        match parts.iter_mut().find(|(station, _)| *station == of.station) {
            Some((_, sum)) => *sum += part,
            None => parts.push((&of.station, part)),
        }
    }
    jain(&parts.into_iter().map(|(_, part)| part).collect::<Vec<_>>())
}

fn reported_p95_ms(scenario: &Scenario, run: &Run) -> f64 {
    let path_ms = |name: &str| {
        let group = scenario.stations.iter().find(|group| group.name == name);
        group.map_or(f64::NAN, |group| path(scenario, group).as_millis_f64())
    };
    let paths: Vec<f64> =
        scenario.stations.iter().map(|of| path(scenario, of).as_millis_f64()).collect();
    let [shortest, longest] = [f64::min, f64::max].map(|of| paths.iter().copied().reduce(of));
    match (shortest, longest) {
        (Some(shortest), Some(longest)) if shortest < longest => {
            let of = run.groups.iter().filter_map(|of| Some(of.rtt_ms.p95? - path_ms(&of.group)));
            of.fold(f64::NAN, f64::max)
        }
        _ => run.rtt_ms.p95.unwrap_or(f64::NAN) - longest.unwrap_or(f64::NAN),
    }
}

/// Runs the only condition of `scenario` once.
///
/// # Errors
///
/// The run fails.
pub(super) fn run(scenario: &Scenario, seed: u64, known: KnownSolos) -> anyhow::Result<Point> {
    let conditions = scenario.conditions();
    let asked = Asked { scenario, conditions, seed, repeat: 1, known };
    let runs = detailed::run::<()>(1, &asked, Duration::ZERO)?;
    let detail = runs.first().context("a condition has a run")?;
    Ok(Point::new(&detail.run, detailed::p95_ms(&detail.queueing)))
}

/// The points of `setting` in a report of `wakeai lab --json`, by condition, with `lab: ` before each name. The report
/// belongs to the setting that has the name of its scenario.
pub(super) fn of_report(report: &Report, setting: &Setting) -> BTreeMap<String, Point> {
    let mut by_condition = BTreeMap::<String, Vec<&Run>>::new();
    for run in report.runs.iter().filter(|_| report.scenario == setting.name) {
        by_condition.entry(format!("{}: {}", report.world, run.condition)).or_default().push(run);
    }
    let points = by_condition.into_iter();
    points.map(|(name, runs)| (name, Point::of_reported(&setting.scenario, &runs))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_station_that_sends_only_udp_does_not_count_in_the_index() {
        let scenario = "name = 'call'\nduration = '5s'\nwarmup = '1s'\n\
            [access_point]\nstandard = '802.11n'\n[wired]\ndelay = '5ms'\n\
            [[stations]]\nname = 's'\ncount = 3\nmax = '50Mbit/s'\n\
            [[stations]]\nname = 'call'\nmax = '50Mbit/s'\n\
            [[flows]]\nfrom = 's'\nto = 'server'\n\
            [[flows]]\nfrom = 'call'\nto = 'server'\nkind = 'udp'\nrate = '100kbit/s'\n\
            [[conditions]]\nname = 'fixed'\n\
            law = 'fixed'\nbounds = [{ stations = 's', floor = 20, ceiling = 20 }]\n";
        let scenario = Scenario::parse(scenario).unwrap();
        let point = run(&scenario, 1, KnownSolos::new()).unwrap();
        assert!(point.index > 0.99, "{point:?}");
    }
}
