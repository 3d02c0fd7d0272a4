//! Runs the jobs of the sections.

use std::path::PathBuf;

use anyhow::Context as _;
use wakeai_medium::Counters;
use wakeai_results::result::Run;
use wakeai_scenario::Scenario;
use wakeai_sim::FlowDetail;
use wakeai_units::Duration;
use wakeai_world::{Asked, KnownSolos, chosen};

use crate::detailed;
use crate::job::Job;
use crate::transfers::{Transfer, Transfers};

/// The resolution of goodput over time.
const STEP: Duration = Duration::from_secs(1);

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
    flows: Vec<FlowDetail>,
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

    /// The reports of `job` with seeds 1 to `seeds`, without the solo runs, which would take as
    /// long as the runs themselves and whose figures are not used.
    ///
    /// # Errors
    ///
    /// As [`Context::one`].
    pub fn runs(&self, job: &Job, seeds: u32) -> anyhow::Result<Vec<Run>> {
        let mut job = job.clone();
        for group in &self.scenario(&job)?.stations {
            job = job.set(&format!("stations.{}.max", group.name), "1Gbit/s");
        }
        Ok(self.with_seeds(&job, seeds)?.into_iter().map(|simulated| simulated.run).collect())
    }

    fn scenario(&self, job: &Job) -> anyhow::Result<Scenario> {
        Ok(Scenario::load(&self.root.join(&job.file))?.with_overrides(&job.set)?)
    }

    /// Runs `job` with seeds 1 to `seeds`.
    ///
    /// # Errors
    ///
    /// As [`Context::one`].
    pub fn with_seeds(&self, job: &Job, seeds: u32) -> anyhow::Result<Vec<Simulated>> {
        let run = || -> anyhow::Result<Vec<Simulated>> {
            let scenario = self.scenario(job)?;
            let mut conditions = chosen(&scenario, job.condition.as_slice())?;
            conditions.truncate(1);
            let asked = Asked {
                scenario: &scenario,
                conditions,
                seed: 1,
                repeat: seeds,
                known: KnownSolos::new(),
            };
            let runs = detailed::run(self.jobs, &asked, STEP)?.into_iter();
            Ok(runs.map(|of| Simulated::new(of.run, of.counters, of.flows)).collect())
        };
        run().with_context(|| job.command())
    }
}

impl Simulated {
    fn new(run: Run, counters: Counters, flows: Vec<FlowDetail>) -> Self {
        let transfers = run.flows.iter().zip(&flows).map(|(result, detail)| Transfer {
            completion_s: result.completion_s,
            open_s: detail.opened.map_or(0.0, Duration::as_secs_f64),
            syns: detail.syn_timeouts + 1,
            timeouts: result.timeouts,
            stall_s: detail.longest_stall.as_secs_f64(),
        });
        let transfers = Transfers {
            flows: transfers.collect(),
            access_point_drops: counters.access_point.queue_drops,
        };
        Self { run, transfers, counters, flows }
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

    /// The goodput of a flow in each second: (end of the second, Mbit/s).
    pub fn goodput_over_time(&self, flow: usize) -> Vec<(f64, f64)> {
        let mut points = vec![(0.0, 0.0)];
        let (mut before_s, mut before_bytes) = (0.0, 0);
        for (at, bytes) in &self.flows[flow].progress {
            let at_s = at.as_secs_f64();
            // Seconds in which no byte arrived have no entry of their own.
            if at_s > before_s + 1.5 * STEP.as_secs_f64() {
                points.push((before_s + STEP.as_secs_f64(), 0.0));
                points.push((at_s - STEP.as_secs_f64(), 0.0));
            }
            let mbps = (bytes.get() - before_bytes) as f64 * 8.0 / STEP.as_secs_f64() / 1e6;
            points.push((at_s, mbps));
            (before_s, before_bytes) = (at_s, bytes.get());
        }
        points.push((before_s + STEP.as_secs_f64(), 0.0));
        points
    }

    /// K of the CUBIC of a flow over time, as steps (second, K in seconds) up to the end of the
    /// run.
    pub fn k_over_time(&self, flow: usize) -> Vec<(f64, f64)> {
        let steps = self.flows[flow].k.iter().map(|(at, k)| (at.as_secs_f64(), k.as_secs_f64()));
        let mut points: Vec<(f64, f64)> = Vec::new();
        for (at_s, k_s) in steps {
            points.extend(points.last().map(|before| (at_s, before.1)));
            points.push((at_s, k_s));
        }
        points.extend(points.last().map(|last| (self.run.simulated_s, last.1)));
        points
    }
}
