//! The keys of a scenario that have no effect in a run.

use std::collections::BTreeSet;

use wakeai_control::LawName;
use wakeai_scenario::{Endpoint, Experiment, FlowSpec, ResolvedCondition};

/// One sentence, with the reason, for each key that has no effect in one of `conditions`. Equal
/// sentences appear once. `of_world` returns the sentences for keys that this world (the simulator
/// or the lab) ignores.
pub fn keys_without_effect(
    conditions: &[ResolvedCondition],
    of_world: impl Fn(&Experiment) -> Vec<String>,
) -> Vec<String> {
    let mut all: Vec<String> =
        conditions.iter().flat_map(|condition| of_world(&condition.experiment)).collect();
    all.extend(conditions.iter().flat_map(|of| in_flows(of, "reserve", |flow| flow.reserve)));
    all.extend(conditions.iter().flat_map(|of| in_flows(of, "turns", |flow| flow.turns)));
    all.extend(conditions.iter().flat_map(bounds));
    let mut known = BTreeSet::new();
    all.retain(|text| known.insert(text.clone()));
    all
}

/// A sentence for each flow that `has` this key, but for which no peer leaves a rate free, or which does not wait for
/// turns.
fn in_flows(condition: &ResolvedCondition, key: &str, has: fn(&FlowSpec) -> bool) -> Vec<String> {
    let runs = condition.agents();
    let why = |flow: &FlowSpec| {
        let Endpoint::Stations(of) = flow.from else {
            return Some("its sender is the server, which runs no agent");
        };
        let mut runs = runs[condition.experiment.select(of)].iter();
        match (condition.law(), key) {
            (None, _) => Some("without `law` no agent runs"),
            (Some(LawName::Fixed), "reserve") => {
                Some("the bounds of the law \"fixed\" do not adapt to reservations")
            }
            (_, "reserve") => (!runs.all(|runs| *runs))
                .then_some("not all of its senders run an agent (`agents`)"),
            _ => runs.all(|runs| !runs).then_some("none of its senders runs an agent (`agents`)"),
        }
    };
    let entries = (1..).zip(&condition.experiment.flows).filter(|(_, flow)| has(flow));
    let name = condition.name();
    let words = |(number, flow)| {
        let why = why(flow)?;
        Some(format!("condition \"{name}\": flows.{number}.{key} has no effect: {why}"))
    };
    entries.filter_map(words).collect()
}

/// A sentence for each entry of `bounds` without effect, because none of its stations runs an
/// agent.
fn bounds(condition: &ResolvedCondition) -> Vec<String> {
    let runs = condition.agents();
    let rules = condition.condition.bounds.iter().enumerate();
    let without = rules.filter(|(_, rule)| {
        runs[condition.experiment.select(rule.stations)].iter().all(|runs| !runs)
    });
    let name = condition.name();
    let words = |(index, _)| {
        format!(
            "condition \"{name}\": bounds.{} applies to no station: none of its stations runs an agent \
             (`agents`)",
            index + 1
        )
    };
    without.map(words).collect()
}

#[cfg(test)]
mod tests {
    use wakeai_scenario::Scenario;

    use super::*;

    const SCENARIO: &str = r#"
name = "reserving"
duration = "60s"
access_point = { standard = "802.11g" }
stations = [{ name = "camera", count = 2 }]
flows = [
    { from = "camera", to = "server", rate = "2Mbit/s", algorithm = "wakeai_av", reserve = true },
    { from = "camera1", to = "server", rate = "3Mbit/s", reserve = true },
    { from = "server", to = "camera", rate = "3Mbit/s", reserve = true },
    { from = "camera", to = "server" },
]
conditions = [
    { name = "plain" },
    { name = "lawful", law = "airtime" },
    { name = "half", law = "airtime", agents = "camera1" },
    { name = "hand", law = "fixed", bounds = [{ stations = "camera", ceiling = 9 }] },
]
"#;

    #[test]
    fn a_reservation_without_effect_is_named() {
        let conditions = Scenario::parse(SCENARIO).unwrap().conditions();
        let all = keys_without_effect(&conditions, |_| Vec::new());
        let count = |name: &str, why: &str| {
            let start = format!("condition \"{name}\": flows.");
            all.iter().filter(|text| text.starts_with(&start) && text.contains(why)).count()
        };
        assert_eq!(count("plain", "without `law`"), 2);
        assert_eq!(count("lawful", ""), 1);
        assert_eq!(count("lawful", "the server"), 1);
        assert_eq!(count("half", "not all"), 1);
        assert_eq!(count("hand", "do not adapt"), 2);
    }

    #[test]
    fn bounds_of_stations_without_an_agent_are_named() {
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
        let texts =
            keys_without_effect(&Scenario::parse(text).unwrap().conditions(), |_| Vec::new());
        assert_eq!(texts.len(), 3, "{texts:?}");
        assert!(texts[0].starts_with("condition \"plain\": flows.1.reserve"), "{texts:?}");
        assert!(texts[1].starts_with("condition \"hand\": flows.1.reserve"), "{texts:?}");
        assert!(
            texts[2].starts_with("condition \"hand\": bounds.2 applies to no station"),
            "{texts:?}"
        );
    }
}
