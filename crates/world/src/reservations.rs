//! Which stations reserve what, which flows ask in vain, and what becomes of the others.

mod course;

pub use course::{Course, of_flow};

use wakeai_scenario::{Endpoint, Expanded, Law, Node, ResolvedCondition};
use wakeai_units::Rate;

/// What the flows of each station that reserve ask for together; `None`: none does.
pub fn reserved(expanded: &Expanded) -> Vec<Option<Rate>> {
    let mut rates = vec![None; expanded.stations.len()];
    for flow in expanded.flows.iter().filter(|flow| flow.reserve) {
        if let (Node::Station(station), Some(rate)) = (flow.from, flow.rate) {
            let sum: &mut Option<Rate> = &mut rates[station];
            *sum = Some(sum.unwrap_or(Rate::ZERO).saturating_add(rate));
        }
    }
    rates
}

/// The keys `reserve` that nobody hears in one of `conditions`, and why, in words.
pub(crate) fn unheard(conditions: &[ResolvedCondition]) -> Vec<String> {
    conditions.iter().flat_map(unheard_in).collect()
}

fn unheard_in(condition: &ResolvedCondition) -> Vec<String> {
    let runs = condition.agents();
    let entries = condition.scenario.flows.iter().enumerate().filter(|(_, flow)| flow.reserve);
    let problems = entries.filter_map(|(index, flow)| {
        let why = match (flow.from, condition.law()) {
            (Endpoint::Server, _) => "its sender is the server, which runs no agent",
            (_, None) => "without `law` no agent runs",
            (_, Some(Law::Fixed)) => "the bounds of the law \"fixed\" give way to nothing",
            (Endpoint::Stations(of), _) => {
                let all = runs[condition.scenario.select(of)].iter().all(|runs| *runs);
                (!all).then_some("not all of its senders run an agent (`agents`)")?
            }
        };
        Some((index + 1, why))
    });
    let name = condition.name();
    let words = |(flow, why)| {
        format!("condition \"{name}\": flows.{flow}.reserve keeps nothing free: {why}")
    };
    problems.map(words).collect()
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
    fn a_station_reserves_what_its_flows_do_together() {
        let scenario = Scenario::parse(SCENARIO).unwrap();
        let rates = [Some(Rate::from_mbps(5)), Some(Rate::from_mbps(2))];
        assert_eq!(reserved(&scenario.expand(1)), rates);
    }

    #[test]
    fn what_nobody_hears_is_named() {
        let conditions = Scenario::parse(SCENARIO).unwrap().conditions();
        let all = unheard(&conditions);
        let count = |name: &str, why: &str| {
            let start = format!("condition \"{name}\": flows.");
            all.iter().filter(|text| text.starts_with(&start) && text.contains(why)).count()
        };
        assert_eq!(count("plain", "without `law`"), 2);
        assert_eq!(count("lawful", ""), 1);
        assert_eq!(count("lawful", "the server"), 1);
        assert_eq!(count("half", "not all"), 1);
        assert_eq!(count("hand", "give way to nothing"), 2);
    }
}
