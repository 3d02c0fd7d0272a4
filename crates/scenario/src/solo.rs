//! Plans the solo runs, which measure the goodput that each station reaches alone (its solo
//! goodput).

use std::collections::BTreeMap;

use wakeai_units::Duration;

use crate::expand::{Flow, Node, StationDirection};
use crate::experiment::FlowKnobs;
use crate::result::{Max, MaxFrom};
use crate::tree::{Node as Written, Origin, Table, Value};
use crate::{ResolvedCondition, Scenario};

/// The longest time that a solo run measures.
const LONGEST: Duration = Duration::from_secs(60);

/// A run with one endless flow of one station, and without other flows.
#[derive(Clone, Debug)]
pub struct SoloRun {
    /// The scenario to run. It has one condition without a law, and one endless flow. It lasts as
    /// long as the original, but at most 60 s. If the warmup takes 60 s or more, it lasts at most
    /// 60 s longer than the warmup. Runs whose [`Scenario::to_toml`] is equal are made only once.
    /// So conditions whose `set` does not change this station share a run.
    pub scenario: Scenario,
    /// The stations and directions whose solo goodput the run measures.
    pub applies_to: Vec<StationDirection>,
}

/// The properties of a flow on which its station's solo goodput depends.
type Class = (Node, Node, Option<std::sync::Arc<str>>, FlowKnobs);

/// The runs that measure the solo goodput of each station of a condition in each direction. A
/// station whose `max` the scenario states needs no run ([`given_maxima`]). If a station has
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

/// The solo goodputs that the scenario states.
pub fn given_maxima(condition: &ResolvedCondition) -> BTreeMap<StationDirection, Max> {
    let scenario = &condition.scenario;
    let stations = scenario.expand_stations();
    let given = first_flows(scenario).into_keys().filter_map(|key| {
        let rate = scenario.stations[stations[key.station].group].max?;
        Some((key, Max { mbps: rate.as_mbps_f64(), from: MaxFrom::Given }))
    });
    given.collect()
}

/// The first flow of every station and direction.
fn first_flows(scenario: &Scenario) -> BTreeMap<StationDirection, Flow> {
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
    let kept =
        entries.filter(|entry| matches!(&*entry.key, "name" | "warmup" | "access_point" | "wired"));
    let mut table = Table { entries: kept.cloned().collect() };
    table.insert("duration", text(solo_duration(scenario).to_string()));

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

fn solo_duration(scenario: &Scenario) -> Duration {
    let longest = if scenario.warmup < LONGEST { LONGEST } else { scenario.warmup + LONGEST };
    scenario.duration.min(longest)
}
