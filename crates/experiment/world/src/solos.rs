//! The solo runs that the runs of a command need.

use std::collections::BTreeMap;

use wakeai_scenario::{ResolvedCondition, repeat_seed, solo_plan};

use crate::asked::Asked;

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
    /// The solo runs that these runs need, each once, with the condition to run.
    pub fn solos(&self) -> BTreeMap<SoloKey, ResolvedCondition> {
        let solos = self.conditions.iter().flat_map(solo_plan).flat_map(|solo| {
            (0..self.repeat).map(move |repeat| {
                let key = SoloKey { run: solo.key(), seed: repeat_seed(self.seed, repeat) };
                (key, solo.condition.clone())
            })
        });
        solos.collect()
    }
}
