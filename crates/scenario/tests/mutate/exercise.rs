//! The use of a scenario file of a fuzzer. The fuzz targets call it, too.

use wakeai_scenario::{Scenario, solo_plan};

/// Reads `text` and, if it is accepted, uses it as a world does. Panics if that goes wrong; returns
/// whether it was accepted.
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
                let expanded = condition.scenario.expand(1);
                assert_eq!(expanded.stations.len(), condition.agents().len());
                assert!(condition.bounds().len() == expanded.stations.len());
                // The plan of thousands of stations is tested by itself.
                if expanded.flows.len() <= 100 {
                    for run in solo_plan(&condition) {
                        assert_eq!(run.scenario.expand(1).flows.len(), 1);
                    }
                }
            }
            true
        }
    }
}
