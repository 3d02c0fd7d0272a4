//! Plans the solo runs, which measure the goodput that each station reaches alone (its solo
//! goodput).

use std::collections::BTreeMap;

use wakeai_units::Duration;

use crate::error::ScenarioError;
use crate::expand::{Flow, Node, StationDirection};
use crate::experiment::{Experiment, FlowKnobs};
use crate::tree::{Node as Written, Origin, Table, Value};
use crate::{ResolvedCondition, Scenario};

/// The time that a solo run measures at first.
const SHORT: Duration = Duration::from_secs(60);
/// The factor by which a solo run is longer than the one before it, whose flow was still gaining speed.
const LONGER: u64 = 4;

/// A run with one endless flow of one station, and without other flows.
#[derive(Clone, Debug)]
pub struct SoloRun {
    /// The scenario to run. It has one condition without a law, and one endless flow. It lasts as
    /// long as the original; the run is made with the [`solo_lengths`]. Runs whose [`Scenario::to_toml`] is
    /// equal are made only once. So conditions whose `set` does not change this station share a run.
    pub scenario: Scenario,
    /// The stations and directions whose solo goodput the run measures.
    pub applies_to: Vec<StationDirection>,
}

/// The properties of a flow on which its station's solo goodput depends.
type Class = (Node, Node, Option<std::sync::Arc<str>>, FlowKnobs);

/// The runs that measure the solo goodput of each station of a condition in each direction. A
/// station whose `max` the scenario states needs no run. If a station has
/// several flows in one direction, the first flow decides the kind and the algorithm.
pub fn solo_plan(condition: &ResolvedCondition) -> Vec<SoloRun> {
    let scenario = &condition.scenario;
    let stations = scenario.expand_stations();
    let mut runs = Vec::<SoloRun>::new();
    let mut run_of = BTreeMap::<Class, usize>::new();
    let mut run_of_text = BTreeMap::<String, usize>::new();
    for (key, flow) in first_flows(scenario) {
        if scenario.stations[stations[key.station].group].max.is_some() {
            continue;
        }
        let group = |node| match node {
            Node::Server => Node::Server,
            Node::Station(station) => Node::Station(stations[station].group),
        };
        let class = (group(flow.from), group(flow.to), flow.algorithm.clone(), flow.knobs);
        let run = *run_of.entry(class).or_insert_with_key(|(from, to, _, _)| {
            let alone = alone(scenario, &flow, *from, *to);
            // The text is the key, so that groups that differ only in name and count share a run,
            // too.
            *run_of_text.entry(alone.to_toml()).or_insert_with(|| {
                runs.push(SoloRun { scenario: alone, applies_to: Vec::new() });
                runs.len() - 1
            })
        });
        runs[run].applies_to.push(key);
    }
    runs
}

/// The first flow of every station and direction.
pub fn first_flows(scenario: &Experiment) -> BTreeMap<StationDirection, Flow> {
    let mut first = BTreeMap::new();
    for flow in scenario.expand(0).flows {
        let key = StationDirection { station: flow.station(), direction: flow.direction() };
        first.entry(key).or_insert(flow);
    }
    first
}

/// The scenario with only this flow, and with only the stations at its ends.
fn alone(scenario: &Scenario, flow: &Flow, from: Node, to: Node) -> Scenario {
    let node = |value| Written::new(Origin::START, value);
    let text = |text: String| node(Value::String(text));
    let list = |tables: Vec<Table>| {
        node(Value::Array(tables.into_iter().map(|table| node(Value::Table(table))).collect()))
    };
    let entries = scenario.table().entries.iter();
    let kept = entries.filter(|entry| {
        matches!(&*entry.key, "name" | "duration" | "warmup" | "access_point" | "wired")
    });
    let mut table = Table { entries: kept.cloned().collect() };

    let (mut stations, mut ends) = (Vec::new(), Vec::new());
    let other = if from == Node::Server { "solo" } else { "peer" };
    for (node, name) in [(from, "solo"), (to, other)] {
        match node {
            Node::Server => ends.push("server".to_owned()),
            // Both ends are members of one group.
            Node::Station(_) if from == to => ends.push(format!("solo{}", ends.len() + 1)),
            Node::Station(group) => {
                stations.push(member(scenario, group, text(name.to_owned())));
                ends.push(name.to_owned());
            }
        }
    }
    if let (Node::Station(group), true) = (from, from == to) {
        let mut both = member(scenario, group, text("solo".to_owned()));
        both.insert("count", node(Value::Integer(2)));
        stations.push(both);
    }
    table.insert("stations", list(stations));

    let mut endless = Table::default();
    for (key, value) in ["from", "to"].into_iter().zip(ends) {
        endless.insert(key, text(value));
    }
    endless.insert("kind", text(flow.kind.name().to_owned()));
    if let Some(algorithm) = &flow.algorithm {
        endless.insert("algorithm", text(algorithm.to_string()));
    }
    if let Some(beta_ppm) = flow.knobs.beta_ppm {
        endless.insert("beta", node(Value::Float(f64::from(beta_ppm) / 1e6)));
    }
    if let Some(rtt_ref) = flow.knobs.rtt_ref {
        endless.insert("rtt_ref", text(rtt_ref.to_string()));
    }
    if let Some(friendly) = flow.knobs.tcp_friendliness {
        endless.insert("tcp_friendliness", node(Value::Boolean(friendly)));
    }
    table.insert("flows", list(vec![endless]));

    let mut condition = Table::default();
    condition.insert("name", text("solo".to_owned()));
    table.insert("conditions", list(vec![condition]));
    scenario.derive(table).expect("made of parts that were read before")
}

/// The keys of one member of `group`, under another name.
fn member(scenario: &Scenario, group: usize, name: Written) -> Table {
    let stations = scenario.table().get("stations").map(|entry| &entry.node);
    let group = stations.and_then(Written::as_array).and_then(|nodes| nodes[group].as_table());
    let mut member = group.expect("every group comes from a table").clone();
    member.insert("name", name);
    member.remove("count");
    member.remove("max");
    member.remove("announces");
    member
}

/// The lengths with which a solo run is made, until its flow is no longer gaining speed or the run
/// is as long as `scenario`, which has the length of the runs of the conditions. The first is 60 s, or 60 s more than
/// a warmup of 60 s or more.
pub fn solo_lengths(scenario: &Scenario) -> impl Iterator<Item = Duration> + use<> {
    let (whole, warmup) = (scenario.duration, scenario.warmup);
    let first = if warmup < SHORT { SHORT } else { warmup.saturating_add(SHORT) };
    let next = move |length: &Duration| {
        (*length < whole).then(|| length.saturating_mul(LONGER).min(whole))
    };
    std::iter::successors(Some(first.min(whole)), next)
}

impl ResolvedCondition {
    /// The same condition in a run of this length, which is longer than the warmup.
    ///
    /// # Errors
    ///
    /// The scenario cannot have this duration.
    pub fn lasting(&self, length: Duration) -> Result<Self, ScenarioError> {
        let mut table = self.scenario.table().clone();
        let text = Value::String(length.to_string());
        table.insert("duration", Written::new(Origin::START, text));
        let scenario = self.scenario.derive(table)?;
        Ok(Self { condition: self.condition.clone(), scenario })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(duration: &str, warmup: &str) -> Vec<u64> {
        let text = format!(
            "name = \"x\"\nduration = \"{duration}\"\nwarmup = \"{warmup}\"\n\
             access_point = {{ standard = \"802.11g\" }}\nstations = [{{ name = \"a\" }}]\n\
             flows = [{{ from = \"a\", to = \"server\" }}]\n"
        );
        let scenario = Scenario::parse(&text).unwrap();
        solo_lengths(&scenario).map(Duration::as_millis).collect()
    }

    #[test]
    fn a_solo_run_is_made_with_60_s_and_then_longer_up_to_the_whole_length() {
        assert_eq!(lengths("500ms", "0s"), [500]);
        assert_eq!(lengths("60s", "20s"), [60_000]);
        assert_eq!(lengths("61s", "0s"), [60_000, 61_000]);
        assert_eq!(lengths("600s", "20s"), [60_000, 240_000, 600_000]);
        assert_eq!(lengths("100s", "70s"), [100_000]);
        assert_eq!(lengths("1000s", "70s"), [130_000, 520_000, 1_000_000]);
    }

    #[test]
    fn a_condition_of_another_length_differs_in_nothing_else() {
        let text = "name = \"x\"\nduration = \"600s\"\naccess_point = { standard = \"802.11g\" }\n\
                    stations = [{ name = \"a\" }]\nflows = [{ from = \"a\", to = \"server\" }]\n";
        let scenario = Scenario::parse(text).unwrap();
        let plan = solo_plan(&scenario.conditions()[0]);
        assert_eq!(plan[0].scenario.duration, Duration::from_secs(600));
        let condition = plan[0].scenario.conditions().swap_remove(0);
        let short = condition.lasting(Duration::from_secs(60)).unwrap();
        let expected = condition.scenario.to_toml().replace("600s", "60s");
        let read = |text: &str| Scenario::parse(text).unwrap();
        assert_eq!(*read(&short.scenario.to_toml()), *read(&expected));
    }
}
