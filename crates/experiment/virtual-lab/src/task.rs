//! What a guest is told at its start: the one run that it makes. It is a file in the guest's file system.

use serde::{Deserialize, Serialize};
use wakeai_scenario::{ResolvedCondition, Scenario, solo_plan};
use wakeai_units::{Duration, Rate};
use wakeai_world::{StationFacts, Task};

/// The path of the file in the guest.
pub(crate) const PATH: &str = "/task.json";

/// The run that a guest makes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Order {
    /// The scenario, with all overrides.
    pub(crate) scenario: String,
    /// The condition by its index, or one of its solo runs.
    pub(crate) condition: usize,
    /// The index of the solo run, and how long it lasts, nanoseconds.
    pub(crate) solo: Option<(usize, u64)>,
    /// The run's name in messages.
    pub(crate) name: String,
    /// The run's seed.
    pub(crate) seed: u64,
    /// For each station what its agent is told, bit/s.
    pub(crate) facts: Vec<[Option<u64>; 3]>,
    /// Whether the rows of the records are sent, and the agents' files.
    pub(crate) records: bool,
    /// The bounds on the lateness, its 99th percentile and largest value, and on the waits, nanoseconds.
    pub(crate) bounds: [u64; 3],
    /// The modules to load, in this order, each with its parameters after a space.
    pub(crate) modules: Vec<String>,
}

impl Order {
    /// The condition to run.
    pub(crate) fn resolved(&self) -> Result<ResolvedCondition, String> {
        let scenario = Scenario::parse(&self.scenario).map_err(|error| error.to_string())?;
        let mut conditions = scenario.conditions();
        if self.condition >= conditions.len() {
            return Err(format!("the scenario has no condition {}", self.condition));
        }
        let condition = conditions.swap_remove(self.condition);
        let Some((index, length)) = self.solo else { return Ok(condition) };
        let mut plan = solo_plan(&condition);
        if index >= plan.len() {
            return Err(format!("the condition has no solo run {index}"));
        }
        Ok(plan.swap_remove(index).condition.lasting(Duration::from_nanos(length)))
    }

    /// What the stations' agents are told.
    pub(crate) fn facts(&self) -> Vec<StationFacts> {
        let facts = self.facts.iter().map(|rates| {
            let [link_rate, max, max_down] = rates.map(|rate| rate.map(Rate::from_bps));
            StationFacts { link_rate, max, max_down }
        });
        facts.collect()
    }
}

/// The rates of a station's facts, bit/s.
pub(crate) fn rates(facts: &StationFacts) -> [Option<u64>; 3] {
    [facts.link_rate, facts.max, facts.max_down].map(|rate| rate.map(Rate::bits_per_second))
}

/// The place of a task's condition in the scenario: its index, and for a solo run the index of that run and its
/// length. `None` where the scenario has no such condition.
pub(crate) fn place(scenario: &Scenario, task: &Task<'_>) -> Option<(usize, Option<(usize, u64)>)> {
    let conditions = scenario.conditions();
    if task.place.is_some() {
        let at = conditions.iter().position(|one| one.name() == task.condition.name())?;
        return Some((at, None));
    }
    let length = task.condition.experiment.duration;
    let same = |one: &ResolvedCondition| {
        one.experiment.warmup < length
            && one.lasting(length).experiment == task.condition.experiment
    };
    conditions.iter().enumerate().find_map(|(index, condition)| {
        let plan = solo_plan(condition);
        let at = plan.iter().position(|solo| same(&solo.condition))?;
        Some((index, Some((at, length.as_nanos()))))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops where something fails")]

    use super::*;

    fn task(condition: &ResolvedCondition, place: Option<(usize, u32)>) -> Task<'_> {
        let name = String::new();
        Task { number: 0, name, condition, place, seed: 1, facts: Vec::new(), sink: None }
    }

    #[test]
    fn the_guest_finds_the_same_condition_and_the_same_solo_run() {
        let text = r#"
            name = "x"
            duration = "100s"
            access_point = { standard = "802.11n" }
            stations = [{ name = "a" }, { name = "b", rate = "13Mbit/s" }, { name = "c", max = "1Mbit/s" }]
            flows = [{ from = "a", to = "server" }, { from = "b", to = "server" }, { from = "server", to = "b" }]
            conditions = [{ name = "plain" }, { name = "far", set = { "stations.b.wired_delay" = "5ms" } }]
        "#;
        let scenario = Scenario::parse(text).unwrap();
        let mut order = Order {
            scenario: scenario.to_toml(),
            condition: 0,
            solo: None,
            name: String::new(),
            seed: 1,
            facts: Vec::new(),
            records: false,
            bounds: [0; 3],
            modules: Vec::new(),
        };
        let mut checked = 0;
        for (index, condition) in scenario.conditions().iter().enumerate() {
            let found = place(&scenario, &task(condition, Some((0, 0))));
            assert_eq!(found, Some((index, None)));
            for solo in solo_plan(condition) {
                let asked = solo.condition.lasting(Duration::from_secs(60));
                (order.condition, order.solo) = place(&scenario, &task(&asked, None)).unwrap();
                let resolved = order.resolved().unwrap();
                assert_eq!(resolved.experiment, asked.experiment);
                checked += 1;
            }
        }
        assert_eq!(checked, 6);
        order.condition = 2;
        assert!(order.resolved().is_err());
    }
}
