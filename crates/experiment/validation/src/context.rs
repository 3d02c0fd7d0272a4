//! Runs the jobs of the sections, with one seed or several.

use std::path::PathBuf;

use anyhow::Context as _;
use wakeai_results::result::Run;
use wakeai_scenario::Scenario;
use wakeai_units::Duration;
use wakeai_world::{Asked, KnownSolos, chosen};

use crate::detailed::{self, Detail};
use crate::job::Job;

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

impl Context {
    /// Runs `job` with seed 1.
    ///
    /// # Errors
    ///
    /// The scenario is not accepted, or the run fails.
    pub fn one(&self, job: &Job) -> anyhow::Result<Detail> {
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
    pub fn all(&self, job: &Job) -> anyhow::Result<Vec<Detail>> {
        self.with_seeds(job, self.seeds)
    }

    /// The reports of `job` with each seed.
    ///
    /// # Errors
    ///
    /// As [`Context::one`].
    pub fn reports(&self, job: &Job) -> anyhow::Result<Vec<Run>> {
        Ok(self.all(job)?.into_iter().map(|detail| detail.run).collect())
    }

    /// Runs `job` with seeds 1 to `seeds`.
    ///
    /// # Errors
    ///
    /// As [`Context::one`].
    pub fn with_seeds(&self, job: &Job, seeds: u32) -> anyhow::Result<Vec<Detail>> {
        let run = || -> anyhow::Result<Vec<Detail>> {
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
            Ok(detailed::run(self.jobs, &asked, Duration::ZERO)?)
        };
        run().with_context(|| job.command())
    }
}
