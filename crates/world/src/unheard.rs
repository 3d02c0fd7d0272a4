//! The keys that nobody hears, in either world.

use wakeai_scenario::ResolvedCondition;

use crate::reservations;

/// The keys that change nothing in one of `conditions`, and why, in words.
pub fn unheard(conditions: &[ResolvedCondition]) -> Vec<String> {
    let mut all = reservations::unheard(conditions);
    all.extend(conditions.iter().flat_map(bounds));
    all
}

/// Bounds by hand of stations that run no agent.
fn bounds(condition: &ResolvedCondition) -> Vec<String> {
    let runs = condition.agents();
    let rules = condition.condition.bounds.iter().enumerate();
    let unheard = rules.filter(|(_, rule)| {
        runs[condition.scenario.select(rule.stations)].iter().all(|runs| !runs)
    });
    let name = condition.name();
    let words = |(index, _)| {
        format!(
            "condition \"{name}\": bounds.{} binds nobody: none of its stations runs an agent \
             (`agents`)",
            index + 1
        )
    };
    unheard.map(words).collect()
}

#[cfg(test)]
mod tests {
    use wakeai_scenario::Scenario;

    use super::*;

    #[test]
    fn bounds_that_nobody_obeys_and_reservations_that_nobody_hears_are_named() {
        let text = r#"
            name = "x"
            duration = "1s"
            access_point = { standard = "802.11n" }
            stations = [{ name = "a", count = 2 }, { name = "b" }]
            flows = [{ from = "a", to = "server", rate = "1Mbit/s", reserve = true }]
            conditions = [
                { name = "plain" },
                { name = "hand", law = "fixed", agents = "a1", bounds = [
                    { stations = "a", ceiling = 9 },
                    { stations = "b", ceiling = 9 },
                ] },
            ]
        "#;
        let told = unheard(&Scenario::parse(text).unwrap().conditions());
        assert_eq!(told.len(), 3, "{told:?}");
        assert!(told[0].starts_with("condition \"plain\": flows.1.reserve"), "{told:?}");
        assert!(told[1].starts_with("condition \"hand\": flows.1.reserve"), "{told:?}");
        assert!(told[2].starts_with("condition \"hand\": bounds.2 binds nobody"), "{told:?}");
    }
}
