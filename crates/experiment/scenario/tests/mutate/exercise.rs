//! Checks a scenario file that a fuzzer made. The fuzz targets use this file, too.

use wakeai_scenario::{Scenario, solo_plan};

/// Parses `text`. If the text is accepted, the scenario is written and read back, its conditions
/// are expanded, and solo runs are planned. Panics if one of these steps fails. Returns whether
/// `text` was accepted.
pub(crate) fn exercise(text: &str) -> bool {
    match Scenario::parse(text) {
        Err(error) => {
            assert!(!error.problems().is_empty() && error.problems().len() <= 20);
            assert!(error.to_string().len() < 100_000);
            false
        }
        Ok(scenario) => {
            let again = Scenario::parse(&scenario.to_toml());
            let again = again.unwrap_or_else(|error| panic!("does not read back: {error}"));
            assert!(*again == *scenario, "reads back as another");
            for condition in scenario.conditions() {
                let expanded = condition.experiment.expand(1);
                assert_eq!(expanded.stations.len(), condition.agents().len());
                assert!(condition.laws().len() == expanded.stations.len());
                // Solo runs are planned only for at most 100 flows, so that no file takes long.
                if expanded.flows.len() <= 100 {
                    for run in solo_plan(&condition) {
                        assert_eq!(run.condition.experiment.expand(1).flows.len(), 1);
                    }
                }
            }
            true
        }
    }
}
