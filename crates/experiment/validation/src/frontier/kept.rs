//! The figures of all runs that do not depend on the law, in a file.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use wakeai_world::{KnownSolos, SoloKey};

use super::point::Point;
use crate::files;

/// The figures of runs, by what decides their results: the text of the scenario, the keys of the
/// condition, and the seed. A setting that is changed therefore has no figures, and is run anew. A
/// change of the *simulator* is not noticed: the file must be removed then.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KeptRuns {
    /// By scenario of one station alone and seed: its goodput, Mbit/s.
    solos: BTreeMap<String, BTreeMap<u64, f64>>,
    /// By scenario without conditions, keys of the condition, and seed.
    runs: BTreeMap<String, BTreeMap<String, BTreeMap<u64, Point>>>,
}

impl KeptRuns {
    /// Reads a file. There are no figures if it does not exist.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or has other content.
    pub fn load(path: &Path) -> anyhow::Result<Self> {
        files::load_if_any(path, "a file of `frontier --keep`")
    }

    /// The goodput of one station alone.
    pub fn solo(&self, run: &str, seed: u64) -> Option<f64> {
        self.solos.get(run)?.get(&seed).copied()
    }

    /// Adds the goodput of one station alone.
    pub fn add_solo(&mut self, run: String, seed: u64, mbps: f64) {
        self.solos.entry(run).or_default().insert(seed, mbps);
    }

    /// The goodputs of single stations as a session takes them.
    pub fn known_solos(&self) -> KnownSolos {
        let each = self.solos.iter().flat_map(|(run, of)| of.iter().map(move |one| (run, one)));
        each.map(|(run, (seed, mbps))| (SoloKey { run: run.clone(), seed: *seed }, *mbps)).collect()
    }

    /// The figures of a run.
    pub fn run(&self, scenario: &str, condition: &str, seed: u64) -> Option<Point> {
        self.runs.get(scenario)?.get(condition)?.get(&seed).copied()
    }

    /// Adds the figures of a run.
    pub fn add_run(&mut self, scenario: &str, condition: &str, seed: u64, point: Point) {
        let of_scenario = self.runs.entry(scenario.to_owned()).or_default();
        of_scenario.entry(condition.to_owned()).or_default().insert(seed, point);
    }

    /// The means over seeds 1 to `seeds`; `None` unless all these runs are there.
    pub fn mean(&self, scenario: &str, condition: &str, seeds: u32) -> Option<Point> {
        let runs = (1..=u64::from(seeds)).map(|seed| self.run(scenario, condition, seed));
        Some(Point::mean(&runs.collect::<Option<Vec<_>>>()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_scenario_or_condition_has_no_figures() {
        let mut kept = KeptRuns::default();
        kept.add_run("a", "default", 1, Point { goodput: 3.0, ..Point::default() });
        assert!(kept.mean("a", "default", 1).is_some());
        assert!(kept.mean("a", "default", 2).is_none(), "seed 2 was not run");
        assert!(kept.mean("b", "default", 1).is_none());
        assert!(kept.mean("a", "law = 'fixed'", 1).is_none());
    }

    #[test]
    fn the_file_has_what_was_stored_and_nothing_else_is_taken_for_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("kept.json");
        assert_eq!(KeptRuns::load(&path).unwrap(), KeptRuns::default());
        let mut kept = KeptRuns::default();
        kept.add_solo("a".to_owned(), 7, 48.0);
        kept.add_run("a", "default", 1, Point { goodput: 3.0, ..Point::default() });
        files::store(&path, &kept).unwrap();
        assert_eq!(KeptRuns::load(&path).unwrap(), kept);
        std::fs::write(&path, "[]").unwrap();
        assert!(KeptRuns::load(&path).unwrap_err().to_string().contains("frontier --keep"));
    }
}
