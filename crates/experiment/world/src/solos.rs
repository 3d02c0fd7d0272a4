//! Solo goodputs that one command measures and other commands use: a grid of many commands measures
//! each of them once.

use std::collections::{BTreeMap, BTreeSet};

use wakeai_scenario::{repeat_seed, solo_plan};

use crate::Asked;

/// A solo run: what decides its result.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SoloKey {
    /// The run of one station alone (`SoloRun::key`).
    pub run: String,
    /// The seed.
    pub seed: u64,
}

/// Solo goodputs in Mbit/s.
pub type KnownSolos = BTreeMap<SoloKey, f64>;

impl Asked<'_> {
    /// The solo runs that these runs need, each once.
    pub fn solos(&self) -> BTreeSet<SoloKey> {
        let keys = self.conditions.iter().flat_map(solo_plan).map(|run| run.key());
        let with_seeds = keys.flat_map(|run| {
            (0..self.repeat).map(move |repeat| SoloKey {
                run: run.clone(),
                seed: repeat_seed(self.seed, repeat),
            })
        });
        with_seeds.collect()
    }
}
