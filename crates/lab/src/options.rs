//! What a lab run is asked for.

use std::path::PathBuf;

use wakeai_scenario::records::Output;
use wakeai_units::Duration;

/// How a scenario is run.
#[derive(Clone, Debug)]
pub struct LabOptions {
    /// The seed of the first repeat.
    pub seed: u64,
    /// How often each condition is run.
    pub repeat: u32,
    /// The conditions to run, by name; empty: all.
    pub conditions: Vec<String>,
    /// Where to keep records (Parquet) and the agents' logs.
    pub out: Option<Output>,
    /// A run whose releases are later than this at the 99th percentile is not faithful.
    pub lateness_p99: Duration,
    /// A run with a single release later than this is not faithful.
    pub lateness_max: Duration,
    /// A run with agents or proxies is not faithful where ordinary processes waited longer than this
    /// for a processor, at the 99th percentile.
    pub waits_p99: Duration,
    /// The `wakeai` program, for the agents and proxies.
    pub wakeai: PathBuf,
}

impl LabOptions {
    /// Seed 1, one repeat, all conditions, no records, lateness at most 1 ms at the 99th
    /// percentile and 20 ms at the most, waits at most 50 ms, a tenth of the time between two decisions
    /// of an agent; agents from `wakeai`, usually the running program.
    pub fn new(wakeai: PathBuf) -> Self {
        Self {
            seed: 1,
            repeat: 1,
            conditions: Vec::new(),
            out: None,
            lateness_p99: Duration::from_millis(1),
            lateness_max: Duration::from_millis(20),
            waits_p99: Duration::from_millis(50),
            wakeai,
        }
    }
}
