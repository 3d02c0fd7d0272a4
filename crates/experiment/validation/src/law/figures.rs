//! The figures of a setting under each condition.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use wakeai_control::{LawConfig, LawName};
use wakeai_results::result::Run;
use wakeai_scenario::{Condition, Scenario, repeat_seed, solo_lengths, solo_plan};
use wakeai_sim::FlowDetail;
use wakeai_units::{Duration, Segments};
use wakeai_world::{Asked, KnownSolos};

use super::setting::{FIXED, Promise, Setting};
use super::timeline::Timeline;
use crate::detailed::{self, Detail};
use crate::frontier::index;
use crate::pool;
use crate::statistics::{mean, mean_of};

/// The resolution of goodput over time.
const STEP: Duration = Duration::from_millis(50);

/// The figures of one condition: means over the seeds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LawFigures {
    /// The aggregate goodput, Mbit/s.
    pub goodput: f64,
    /// Jain's index of the goodputs, each divided by what the station reaches alone. Stations with UDP alone do not
    /// count, as their applications ask for a rate.
    pub index: f64,
    /// The 95th percentile of the queueing delay, ms: of each RTT sample the part above the path of
    /// its own station, pooled over all stations.
    pub growth_ms: f64,
    /// Retransmission timeouts of a run.
    pub timeouts: f64,
    /// The mean and the last completion of the flows that have a size, seconds; `None` where none has.
    pub completion: Option<(f64, f64)>,
    /// The goodput of each group of stations, Mbit/s.
    pub groups: BTreeMap<String, f64>,
    /// The goodput of the first station alone, Mbit/s.
    pub alone: f64,
    /// The figures of goodput over time.
    #[serde(default, rename = "course")]
    pub timeline: TimelineFigures,
}

/// The figures of goodput over time by which a setting is judged.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TimelineFigures {
    /// Seconds until a newcomer has half of its share.
    pub half_s: Option<f64>,
    /// Seconds until the newcomer has nine tenths of its share.
    pub nine_tenths_s: Option<f64>,
    /// The newcomer's mean goodput, as a part of its share, in the 10 s after the time by which it
    /// must have its share.
    pub kept: Option<f64>,
    /// For each station, its goodput after a change as a part of its share.
    pub shares: BTreeMap<String, f64>,
    /// For each station, its goodput at the end of the run as a part of its share.
    pub at_the_end: BTreeMap<String, f64>,
    /// The standard deviation of a station's mean goodputs over 5 s each, as a part of its mean over the run.
    pub swing: Option<f64>,
}

/// A setting under all its conditions.
#[derive(Clone, Debug)]
pub struct LawRow {
    /// The setting.
    pub setting: Setting,
    /// The figures by condition.
    pub found: BTreeMap<String, LawFigures>,
}

impl LawRow {
    /// The figures under `condition`; all zero if it was not run.
    pub fn of(&self, condition: &str) -> LawFigures {
        self.found.get(condition).cloned().unwrap_or_default()
    }
}

/// Whether the law of a condition is `airtime`.
pub fn is_of_the_law(condition: &Condition) -> bool {
    condition.law.as_ref().map(LawConfig::name) == Some(LawName::Airtime)
}

/// Runs each of `settings` with seeds 1 to `seeds` under the conditions that are `wanted`, `jobs` settings at once.
///
/// # Errors
///
/// A scenario is refused, or a run fails.
pub fn run(
    settings: &[Setting],
    wanted: fn(&Condition) -> bool,
    seeds: u32,
    jobs: usize,
) -> anyhow::Result<Vec<LawRow>> {
    let work = |setting: &Setting| one(setting, wanted, seeds).with_context(|| setting.name);
    pool::each("law", (settings, jobs), work, |_, _| Ok(()))
}

fn one(setting: &Setting, wanted: fn(&Condition) -> bool, seeds: u32) -> anyhow::Result<LawRow> {
    let scenario = &setting.scenario;
    let conditions = scenario.conditions.iter().filter(|condition| wanted(condition));
    let names: Vec<String> = conditions.map(|condition| condition.name.clone()).collect();
    let mut row = LawRow { setting: setting.clone(), found: BTreeMap::new() };
    if names.is_empty() {
        return Ok(row);
    }
    let mut runs = simulate(setting, scenario, &names, 1, seeds)?;
    if setting.promise == Promise::Steady {
        for (seed, run) in (1..).zip(runs.clone()) {
            let (scenario, name) = by_hand(setting, &run)?;
            runs.extend(simulate(setting, &scenario, &[name], seed, 1)?);
        }
    }
    let mut by_condition = BTreeMap::<String, Vec<Simulated>>::new();
    for run in runs {
        by_condition.entry(run.run.condition.clone()).or_default().push(run);
    }
    row.found =
        by_condition.into_iter().map(|(name, runs)| (name, figures(setting, &runs))).collect();
    Ok(row)
}

/// A run, and the figures of its goodput over time.
#[derive(Clone, Debug)]
struct Simulated {
    run: Run,
    timeline: TimelineFigures,
    /// The mean window of each station, segments.
    windows: BTreeMap<String, u32>,
    /// The 95th percentile of the queueing delay, ms.
    p95_ms: f64,
}

fn simulate(
    setting: &Setting,
    scenario: &Scenario,
    conditions: &[String],
    seed: u64,
    repeat: u32,
) -> anyhow::Result<Vec<Simulated>> {
    let conditions = wakeai_world::chosen(scenario, conditions)?;
    let known = KnownSolos::new();
    let asked = Asked { scenario, conditions, seed, repeat, known };
    let step = if setting.promise.is_of_the_law_alone() { STEP } else { Duration::ZERO };
    let runs = detailed::run::<()>(1, &asked, step)?;
    let alone = match setting.promise {
        Promise::Settles(_) => alone_after_changes(scenario)?,
        _ => BTreeMap::new(),
    };
    Ok(runs
        .into_iter()
        .map(|Detail { run, flows, queueing, .. }| {
            let mut windows = BTreeMap::new();
            for (flow, detail) in run.flows.iter().zip(&flows) {
                let window = detail.mean_window.map_or(0, Segments::get);
                *windows.entry(flow.station.clone()).or_default() += window;
            }
            let timeline = timeline_figures(setting, scenario, (seed, &alone), &run, &flows);
            Simulated { run, timeline, windows, p95_ms: detailed::p95_ms(&queueing) }
        })
        .collect())
}

fn timeline_figures(
    setting: &Setting,
    scenario: &Scenario,
    (seed, alone): (u64, &BTreeMap<String, f64>),
    run: &Run,
    flows: &[FlowDetail],
) -> TimelineFigures {
    let starts = scenario.expand(repeat_seed(seed, run.repeat)).flows;
    let starts: Vec<f64> = starts.iter().map(|flow| flow.start.as_secs_f64()).collect();
    let timeline = || Timeline::new(run, flows, scenario.warmup.as_secs_f64(), &starts);
    let mut figures = TimelineFigures::default();
    match setting.promise {
        Promise::Newcomer(start_s) => {
            let timeline = timeline();
            figures.half_s = Some(timeline.until("new", start_s, 0.5));
            figures.nine_tenths_s = Some(timeline.until("new", start_s, 0.9));
            let wait_s = setting.intervals_s(3.0).max(6.0);
            figures.kept = Some(timeline.kept("new", start_s + wait_s));
        }
        Promise::Settles(change_s) => {
            let wait_s = setting.intervals_s(3.0).max(10.0);
            let timeline = timeline();
            figures.shares = timeline.shares_after(change_s, wait_s, alone);
            figures.at_the_end = timeline.shares_at_the_end(alone);
        }
        Promise::Steady => figures.swing = Some(timeline().swing()),
        _ => {}
    }
    figures
}

/// The solo goodput of each station after all rate changes of the scenario, Mbit/s.
fn alone_after_changes(scenario: &Scenario) -> anyhow::Result<BTreeMap<String, f64>> {
    let rates = scenario.events.iter().filter_map(|event| {
        let group = &scenario.stations[event.stations.group].name;
        Some((format!("stations.{group}.rate"), event.rate?.to_string()))
    });
    let after = scenario.with_overrides(&rates.collect::<Vec<_>>())?;
    let condition = after.conditions().swap_remove(0);
    let stations = after.expand_stations();
    let mut alone = BTreeMap::new();
    for solo in solo_plan(&condition) {
        let whole = solo.condition.experiment.duration;
        let length = solo_lengths(&solo.condition.experiment).next().unwrap_or(whole);
        let conditions = vec![solo.condition.lasting(length)];
        let known = KnownSolos::new();
        let asked = Asked { scenario: &after, conditions, seed: 1, repeat: 1, known };
        let runs = detailed::run::<()>(1, &asked, Duration::ZERO)?;
        let mbps = runs.first().map_or(f64::NAN, |of| of.run.total_goodput_mbps);
        let names = solo.applies_to.iter().map(|of| stations[of.station].name.clone());
        alone.extend(names.map(|name| (name, mbps)));
    }
    Ok(alone)
}

/// The setting with fixed windows: each station's mean window in `run` is both its floor and its ceiling.
fn by_hand(setting: &Setting, run: &Simulated) -> anyhow::Result<(Scenario, String)> {
    let mut toml = format!(
        "{}\n[[conditions]]\nname = \"{FIXED}\"\nlaw = \"fixed\"\nbounds = [\n",
        setting.toml
    );
    for (station, window) in &run.windows {
        let window = (*window).max(1);
        let _ =
            writeln!(toml, "{{ stations = \"{station}\", floor = {window}, ceiling = {window} }},");
    }
    toml.push_str("]\n");
    Ok((Scenario::parse(&toml)?, FIXED.to_owned()))
}

fn figures(setting: &Setting, simulated: &[Simulated]) -> LawFigures {
    let over = |figure: &dyn Fn(&Run) -> f64| {
        mean_of(simulated, |one| Some(figure(&one.run))).unwrap_or(f64::NAN)
    };
    let names = simulated.iter().flat_map(|one| one.run.groups.iter().map(|of| of.group.clone()));
    let group = |name: &str| {
        over(&|run| {
            let group = run.groups.iter().find(|group| group.group == name);
            group.map_or(0.0, |group| group.goodput_mbps)
        })
    };
    let specified = setting.scenario.expand(1).flows;
    let is_sized: Vec<bool> = specified.iter().map(|flow| flow.size.is_some()).collect();
    let of_completion = |figure: &dyn Fn(&[f64]) -> f64| {
        over(&|run| {
            let sized = run.flows.iter().zip(&is_sized).filter(|(_, is_sized)| **is_sized);
            let all = sized.map(|(flow, _)| flow.completion_s).collect::<Option<Vec<f64>>>();
            all.map_or(f64::INFINITY, |all| figure(&all))
        })
    };
    let timeline = |figure: &dyn Fn(&TimelineFigures) -> Option<f64>| {
        mean_of(simulated, |one| figure(&one.timeline))
    };
    let by_station = |figure: &dyn Fn(&TimelineFigures) -> &BTreeMap<String, f64>| {
        let names = simulated.iter().flat_map(|one| figure(&one.timeline).keys());
        let of = |name: &String| mean_of(simulated, |one| figure(&one.timeline).get(name).copied());
        names.filter_map(|name| Some((name.clone(), of(name)?))).collect()
    };
    LawFigures {
        timeline: TimelineFigures {
            half_s: timeline(&|of| of.half_s),
            nine_tenths_s: timeline(&|of| of.nine_tenths_s),
            kept: timeline(&|of| of.kept),
            shares: by_station(&|of| &of.shares),
            at_the_end: by_station(&|of| &of.at_the_end),
            swing: timeline(&|of| of.swing),
        },
        goodput: over(&|run| run.total_goodput_mbps),
        index: over(&|run| index(run).unwrap_or(f64::NAN)),
        growth_ms: mean_of(simulated, |one| Some(one.p95_ms)).unwrap_or(f64::NAN),
        timeouts: over(&|run| run.errors.map_or(0.0, |all| all.timeout as f64)),
        completion: is_sized.contains(&true).then(|| {
            let last = |all: &[f64]| all.iter().copied().fold(0.0, f64::max);
            (of_completion(&|all| mean(all).unwrap_or(0.0)), of_completion(&last))
        }),
        groups: names.map(|name| (name.clone(), group(&name))).collect(),
        alone: over(&|run| run.stations.first().and_then(|one| one.max_mbps).unwrap_or(f64::NAN)),
    }
}
