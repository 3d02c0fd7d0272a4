//! Solo goodputs that one command measures and other commands use: a grid of many commands measures
//! each of them once.

use std::collections::{BTreeMap, BTreeSet};

use wakeai_scenario::{repeat_seed, solo_plan};

use crate::Asked;

/// A solo run: what decides its result.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SoloKey {
    /// The scenario of one station alone, as TOML (`Scenario::to_toml`).
    pub scenario: String,
    /// The seed.
    pub seed: u64,
}

/// Solo goodputs in Mbit/s.
pub type KnownSolos = BTreeMap<SoloKey, f64>;

impl Asked<'_> {
    /// The solo runs that these runs need, each once.
    pub fn solos(&self) -> BTreeSet<SoloKey> {
        let texts = self.conditions.iter().flat_map(solo_plan).map(|run| run.scenario.to_toml());
        let with_seeds = texts.flat_map(|scenario| {
            (0..self.repeat).map(move |repeat| SoloKey {
                scenario: scenario.clone(),
                seed: repeat_seed(self.seed, repeat),
            })
        });
        with_seeds.collect()
    }
}
