//! Runs the jobs of the sections.

use std::path::PathBuf;

use anyhow::Context as _;
use wakeai_medium::Counters;
use wakeai_results::result::Run;
use wakeai_scenario::Scenario;
use wakeai_units::Duration;
use wakeai_world::{Asked, KnownSolos, chosen};

use crate::detailed::{self, Detail};
use crate::job::Job;
use crate::transfers::{StationTransfer, Transfers};

/// The project's directory, the number of seeds, and the number of runs at once.
#[derive(Clone, Debug)]
pub struct Context {
    /// The project's root.
    pub root: PathBuf,
    /// The number of seeds of each comparison, from seed 1 on.
    pub seeds: u32,
    /// The number of runs that are made at once.
    pub jobs: usize,
}

/// One run: its report, and details that the report leaves out.
#[derive(Clone, Debug)]
pub struct Simulated {
    /// The run as in the report.
    pub run: Run,
    /// Its completions, timeouts and drops.
    pub transfers: Transfers,
    counters: Counters,
}

impl Context {
    /// Runs `job` with seed 1.
    ///
    /// # Errors
    ///
    /// The scenario is not accepted, or the run fails.
    pub fn one(&self, job: &Job) -> anyhow::Result<Simulated> {
        let mut runs = self.with_seeds(job, 1)?;
        runs.pop().with_context(|| format!("{}: no run", job.command()))
    }

    /// The number of seeds of a comparison whose figures differ much from seed to seed.
    pub fn more_seeds(&self) -> u32 {
        self.seeds * 4
    }

    /// Runs `job` with each seed.
    ///
    /// # Errors
    ///
    /// As [`Context::one`].
    pub fn all(&self, job: &Job) -> anyhow::Result<Vec<Simulated>> {
        self.with_seeds(job, self.seeds)
    }

    /// The reports of `job` with each seed.
    ///
    /// # Errors
    ///
    /// As [`Context::one`].
    pub fn reports(&self, job: &Job) -> anyhow::Result<Vec<Run>> {
        Ok(self.all(job)?.into_iter().map(|simulated| simulated.run).collect())
    }

    /// Runs `job` with seeds 1 to `seeds`.
    ///
    /// # Errors
    ///
    /// As [`Context::one`].
    pub fn with_seeds(&self, job: &Job, seeds: u32) -> anyhow::Result<Vec<Simulated>> {
        let run = || -> anyhow::Result<Vec<Simulated>> {
            let scenario = Scenario::load(&self.root.join(&job.file))?;
            let scenario = scenario.with_overrides(&job.set)?;
            let mut conditions = chosen(&scenario, job.condition.as_slice())?;
            conditions.truncate(1);
            let asked = Asked {
                scenario: &scenario,
                conditions,
                seed: 1,
                repeat: seeds,
                known: KnownSolos::new(),
            };
            let runs = detailed::run::<()>(self.jobs, &asked, Duration::ZERO)?.into_iter();
            Ok(runs.map(Simulated::new).collect())
        };
        run().with_context(|| job.command())
    }
}

impl Simulated {
    fn new(detail: Detail) -> Self {
        let Detail { run, counters, flows, .. } = detail;
        let transfers = run.flows.iter().zip(&flows).map(|(result, detail)| {
            let simulated = result.simulated.unwrap_or_default();
            StationTransfer {
                completion_s: result.completion_s,
                open_s: detail.opened.map_or(0.0, Duration::as_secs_f64),
                syns: simulated.syn_timeouts + 1,
                timeouts: result.timeouts,
                stall_s: simulated.longest_stall_s,
            }
        });
        let transfers = Transfers {
            flows: transfers.collect(),
            access_point_drops: counters.access_point.queue_drops,
        };
        Self { run, transfers, counters }
    }

    /// The share of the stations' data frames (or RTS, if they are used) that were not answered.
    pub fn failed_share(&self, rts: bool) -> f64 {
        let sum = |figure: fn(&wakeai_medium::ContenderCounters) -> u64| {
            self.counters.stations.iter().map(figure).sum::<u64>() as f64
        };
        if rts {
            sum(|c| c.rts_failures) / sum(|c| c.rts_attempts)
        } else {
            sum(|c| c.failures) / sum(|c| c.attempts)
        }
    }

    /// The number of frames that needed an answer, from stations and access point.
    pub fn attempts(&self) -> u64 {
        let all = self.counters.stations.iter().chain([&self.counters.access_point]);
        all.map(|contender| contender.attempts + contender.rts_attempts).sum()
    }
}
