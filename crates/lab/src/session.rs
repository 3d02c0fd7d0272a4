//! All runs of a scenario: what each station reaches alone, then the conditions.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use wakeai_scenario::figures::RttHistogram;
use wakeai_scenario::result::{Lateness, Max, MaxFrom, Measured, Report, Run};
use wakeai_scenario::{
    Direction, Flow, ResolvedCondition, Scenario, StationDirection, repeat_seed, solo_plan,
};
use wakeai_units::{Duration, Rate};

use crate::agents::StationFacts;
use crate::driver::{self, Strays};
use crate::error::LabError;
use crate::options::LabOptions;
use crate::records::Recorder;
use crate::run::{self, Bench, Outcome, Task};

/// The name of this world in a result.
pub(crate) const WORLD: &str = "lab";
/// The version in a result.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The runs of one command.
pub(crate) struct Session<'a> {
    options: &'a LabOptions,
    bench: Bench<'a>,
    scratch: PathBuf,
    recorder: Option<Recorder>,
    /// What was found alone so far, by the solo scenario's text and seed.
    solos: BTreeMap<(String, u64), f64>,
    /// The first run that was not faithful.
    worst: Option<(String, driver::Lateness)>,
}

impl<'a> Session<'a> {
    /// A session without runs yet; agents' files go into `scratch` where nothing is kept.
    pub(crate) fn new(
        options: &'a LabOptions,
        bench: Bench<'a>,
        scratch: PathBuf,
        recorder: Option<Recorder>,
    ) -> Self {
        Self { options, bench, scratch, recorder, solos: BTreeMap::new(), worst: None }
    }

    /// Makes all runs, solo runs included.
    pub(crate) fn report(
        mut self,
        scenario: &Scenario,
        conditions: &[ResolvedCondition],
    ) -> Result<Report, LabError> {
        let Self { options, .. } = self;
        let mut runs = Vec::new();
        self.bench.progress.runs(self.count(conditions));
        for (index, condition) in conditions.iter().enumerate() {
            for repeat in 0..options.repeat {
                let seed = repeat_seed(options.seed, repeat);
                let maxima = self.maxima(condition, seed)?;
                runs.push(self.condition(index, condition, repeat, seed, &maxima)?);
            }
        }
        let report = Report {
            scenario: scenario.name.clone(),
            world: WORLD.to_owned(),
            version: VERSION.to_owned(),
            seed: options.seed,
            runs,
        };
        if let Some(recorder) = self.recorder {
            recorder.finish(&report)?;
        }
        match self.worst {
            None => Ok(report),
            Some((run, lateness)) => Err(LabError::Unfaithful {
                run,
                releases: lateness.count(),
                p99: lateness.quantile(0.99),
                max: lateness.max(),
                allowed_p99: options.lateness_p99,
                allowed_max: options.lateness_max,
                report: Box::new(report),
            }),
        }
    }

    /// Runs of all kinds: equal solo runs are made once.
    fn count(&self, conditions: &[ResolvedCondition]) -> usize {
        let repeats = self.options.repeat as usize;
        let solos = conditions.iter().flat_map(solo_plan).map(|solo| solo.scenario.to_toml());
        let solos: BTreeSet<String> = solos.collect();
        (conditions.len() + solos.len()) * repeats
    }

    fn condition(
        &mut self,
        index: usize,
        condition: &ResolvedCondition,
        repeat: u32,
        seed: u64,
        maxima: &BTreeMap<StationDirection, Max>,
    ) -> Result<Run, LabError> {
        let name = format!("{} {}", condition.name(), repeat + 1);
        let directory = match &self.options.out {
            Some(out) => out.join("agents").join(format!("{}-{repeat}", condition.name())),
            None => self.scratch.join(index.to_string()),
        };
        let sink = self.recorder.as_ref().map(|recorder| {
            let expanded = condition.scenario.expand(seed);
            recorder.begin_run(condition.name(), repeat, &expanded)
        });
        let task = Task { condition, seed, facts: facts(condition, maxima), directory, sink };
        let outcome = self.timed(&name, condition.scenario.duration, task)?;
        let run = Run::new(&Measured {
            condition: condition.name(),
            repeat,
            warmup: condition.scenario.warmup,
            end: outcome.end,
            wall_s: outcome.wall_s,
            stations: &outcome.expanded.stations,
            flows: &outcome.flows,
            rtt: &pooled(&outcome.rtt),
            errors: outcome.errors,
            maxima,
            lateness: Some(self.lateness(&outcome.driver.lateness)),
        })
        .with_groups(&condition.scenario, &outcome.rtt);
        if let Some(recorder) = &self.recorder {
            recorder.end_run(&run)?;
        }
        Ok(run)
    }

    /// What each station reaches alone, each way: as the scenario says, or by solo runs.
    fn maxima(
        &mut self,
        condition: &ResolvedCondition,
        seed: u64,
    ) -> Result<BTreeMap<StationDirection, Max>, LabError> {
        let mut maxima = BTreeMap::new();
        for solo in solo_plan(condition) {
            let key = (solo.scenario.to_toml(), seed);
            let mbps = if let Some(known) = self.solos.get(&key) {
                *known
            } else {
                let found = self.solo(&solo.scenario, seed)?;
                self.solos.insert(key, found);
                found
            };
            let found = solo.applies_to.iter().map(|to| (*to, Max { mbps, from: MaxFrom::Solo }));
            maxima.extend(found);
        }
        let given = given(condition).into_iter().flat_map(|(station, mbps)| {
            [Direction::Up, Direction::Down, Direction::Peer].map(|direction| {
                let key = StationDirection { station, direction };
                (key, Max { mbps, from: MaxFrom::Given })
            })
        });
        maxima.extend(given);
        Ok(maxima)
    }

    fn solo(&mut self, scenario: &Scenario, seed: u64) -> Result<f64, LabError> {
        let conditions = scenario.conditions();
        let condition = conditions.first().expect("a scenario has at least one condition");
        let task = Task {
            condition,
            seed,
            facts: Vec::new(),
            directory: self.scratch.join("solo"),
            sink: None,
        };
        let outcome = self.timed("one station alone", scenario.duration, task)?;
        let none = BTreeMap::new();
        let run = Run::new(&Measured {
            condition: condition.name(),
            repeat: 0,
            warmup: scenario.warmup,
            end: outcome.end,
            wall_s: outcome.wall_s,
            stations: &outcome.expanded.stations,
            flows: &outcome.flows,
            rtt: &pooled(&outcome.rtt),
            errors: outcome.errors,
            maxima: &none,
            lateness: None,
        });
        Ok(run.flows.iter().map(|flow| flow.goodput_mbps).sum())
    }

    fn timed(&mut self, name: &str, length: Duration, task: Task<'_>) -> Result<Outcome, LabError> {
        let progress = self.bench.progress;
        progress.run_begins(name, length);
        let outcome = run::run(&self.bench, task)?;
        progress.run_ends();
        self.judge(name, &outcome);
        Ok(outcome)
    }

    /// Remembers the first unfaithful run, and says what else the user should know.
    fn judge(&mut self, name: &str, outcome: &Outcome) {
        let driver = &outcome.driver;
        let strays = driver.strays;
        tracing::info!(
            run = name,
            p50 = %driver.lateness.quantile(0.5),
            p99 = %driver.lateness.quantile(0.99),
            max = %driver.lateness.max(),
            ?strays,
            counters = ?driver.counters,
            "a run has ended"
        );
        for lack in &driver.lacks {
            self.bench.progress.note(lack);
        }
        if strays != Strays::default() {
            self.bench.progress.note(&format!("{name}: packets went astray: {strays}"));
        }
        if outcome.lost > 0 {
            let lost = outcome.lost;
            self.bench.progress.note(&format!("{name}: the monitor lost {lost} records"));
        }
        if let Some((flow, late)) = outcome.stragglers.first() {
            let count = outcome.stragglers.len();
            let number = flow + 1;
            self.bench.progress.note(&format!(
                "{name}: {count} flows started late; flow {number} got its first data {late} \
                 after its start"
            ));
        }
        if !self.lateness(&driver.lateness).faithful && self.worst.is_none() {
            self.worst = Some((name.to_owned(), driver.lateness.clone()));
        }
    }

    fn lateness(&self, lateness: &driver::Lateness) -> Lateness {
        let p99 = lateness.quantile(0.99);
        Lateness {
            releases: lateness.count(),
            p50_ms: lateness.quantile(0.5).as_millis_f64(),
            p99_ms: p99.as_millis_f64(),
            max_ms: lateness.max().as_millis_f64(),
            faithful: p99 <= self.options.lateness_p99
                && lateness.max() <= self.options.lateness_max,
        }
    }
}

/// All groups' round-trip times together.
fn pooled(groups: &[RttHistogram]) -> RttHistogram {
    groups.iter().fold(RttHistogram::new(), |mut all, group| {
        all.merge(group);
        all
    })
}

/// The maxima that the scenario states, by station.
fn given(condition: &ResolvedCondition) -> Vec<(usize, f64)> {
    let experiment = &*condition.scenario;
    let stations = experiment.expand_stations();
    let stated = stations.iter().enumerate().filter_map(|(index, station)| {
        Some((index, experiment.stations[station.group].max?.as_mbps_f64()))
    });
    stated.collect()
}

/// What each station's agent may know of it.
fn facts(
    condition: &ResolvedCondition,
    maxima: &BTreeMap<StationDirection, Max>,
) -> Vec<StationFacts> {
    let experiment = &*condition.scenario;
    let expanded = experiment.expand(0);
    let sends = |index: usize, flow: &&Flow| flow.station() == index;
    let stations = expanded.stations.iter().enumerate();
    stations
        .map(|(station, of)| {
            // The direction that it sends in: what its bounds are for.
            let own = expanded.flows.iter().find(|flow| sends(station, flow));
            let direction = own.map_or(Direction::Up, Flow::direction);
            let max = maxima.get(&StationDirection { station, direction });
            StationFacts {
                link_rate: experiment.stations[of.group].radio.map(|radio| radio.rate),
                max: max.map(|max| Rate::from_bps((max.mbps * 1e6) as u64)),
            }
        })
        .collect()
}
