//! Plans the solo runs, which measure the goodput that each station reaches alone (its solo
//! goodput).

use std::collections::BTreeMap;
use std::sync::Arc;

use wakeai_units::Duration;

use crate::expand::{Flow, Node, StationDirection};
use crate::experiment::{
    Announces, Chunks, Condition, Endpoint, Experiment, FlowKnobs, FlowSpec, Selector, StationGroup,
};
use crate::scenario::ResolvedCondition;

/// The time that a solo run measures at first.
const SHORT: Duration = Duration::from_secs(60);
/// The factor by which a solo run is longer than the one before it, whose flow was still gaining speed.
const LONGER: u64 = 4;

/// A run with one endless flow of one station, and without other flows.
#[derive(Clone, Debug)]
pub struct SoloRun {
    /// The condition to run. It has no law, and its experiment has one endless flow and lasts as long
    /// as the original; the run is made with the [`solo_lengths`].
    pub condition: ResolvedCondition,
    /// The stations and directions whose solo goodput the run measures.
    pub applies_to: Vec<StationDirection>,
}

impl SoloRun {
    /// A text that is equal for two runs exactly if they are the same. Such runs are made only once:
    /// conditions whose `set` does not change this station share a run. The text is for comparisons,
    /// not for readers.
    pub fn key(&self) -> String {
        format!("{:?}", self.condition.experiment)
    }
}

/// The properties of a flow on which its station's solo goodput depends.
type Class = (Node, Node, Option<Arc<str>>, FlowKnobs);

/// The runs that measure the solo goodput of each station of a condition in each direction. A
/// station whose `max` the scenario states needs no run. If a station has
/// several flows in one direction, the first flow decides the kind and the algorithm.
pub fn solo_plan(condition: &ResolvedCondition) -> Vec<SoloRun> {
    let experiment = &condition.experiment;
    let stations = experiment.expand_stations();
    let mut runs = Vec::<SoloRun>::new();
    let mut run_of = BTreeMap::<Class, usize>::new();
    let mut run_of_key = BTreeMap::<String, usize>::new();
    for (key, flow) in first_flows(experiment) {
        if experiment.stations[stations[key.station].group].max.is_some() {
            continue;
        }
        let group = |node| match node {
            Node::Server => Node::Server,
            Node::Station(station) => Node::Station(stations[station].group),
        };
        let class = (group(flow.from), group(flow.to), flow.algorithm.clone(), flow.knobs);
        let run = *run_of.entry(class).or_insert_with_key(|(from, to, _, _)| {
            let alone = alone(experiment, &flow, *from, *to);
            // Groups that differ only in name and count share a run, too.
            *run_of_key.entry(alone.key()).or_insert_with(|| {
                runs.push(alone);
                runs.len() - 1
            })
        });
        runs[run].applies_to.push(key);
    }
    runs
}

/// The first flow of every station and direction.
pub fn first_flows(experiment: &Experiment) -> BTreeMap<StationDirection, Flow> {
    let mut first = BTreeMap::new();
    for flow in experiment.expand(0).flows {
        let key = StationDirection { station: flow.station(), direction: flow.direction() };
        first.entry(key).or_insert(flow);
    }
    first
}

/// The run of only this flow, between stations of the groups `from` and `to`.
fn alone(experiment: &Experiment, flow: &Flow, from: Node, to: Node) -> SoloRun {
    let mut stations: Vec<StationGroup> = Vec::new();
    let mut end = |node, name: &str| match node {
        Node::Server => Endpoint::Server,
        // Both ends are members of one group.
        Node::Station(_) if from == to && !stations.is_empty() => {
            stations[0].count = 2;
            Endpoint::Stations(Selector { group: 0, number: Some(2) })
        }
        Node::Station(group) => {
            stations.push(StationGroup {
                name: name.to_owned(),
                count: 1,
                max: None,
                announces: Announces::default(),
                ..experiment.stations[group].clone()
            });
            let number = (from == to).then_some(1);
            Endpoint::Stations(Selector { group: stations.len() - 1, number })
        }
    };
    let other = if from == Node::Server { "solo" } else { "peer" };
    let endless = FlowSpec {
        from: end(from, "solo"),
        to: end(to, other),
        size: None,
        start: Duration::ZERO,
        jitter: Duration::ZERO,
        chunks: Chunks::Count(1),
        turns: false,
        rate: None,
        limit: None,
        reserve: false,
        ..experiment.flows[flow.entry].clone()
    };
    let condition = Condition { name: "solo".to_owned(), ..Condition::default() };
    let experiment = Experiment {
        name: experiment.name.clone(),
        bsss: experiment.bsss.clone(),
        stations,
        flows: vec![endless],
        events: Vec::new(),
        conditions: vec![condition.clone()],
        ..*experiment
    };
    let condition = ResolvedCondition { condition, experiment: experiment.into() };
    SoloRun { condition, applies_to: Vec::new() }
}

/// The lengths with which a solo run is made, until its flow is no longer gaining speed or the run
/// is as long as `experiment`, which has the length of the runs of the conditions. The first is 60 s, or 60 s more than
/// a warmup of 60 s or more.
pub fn solo_lengths(experiment: &Experiment) -> impl Iterator<Item = Duration> + use<> {
    let (whole, warmup) = (experiment.duration, experiment.warmup);
    let first = if warmup < SHORT { SHORT } else { warmup.saturating_add(SHORT) };
    let next = move |length: &Duration| {
        (*length < whole).then(|| length.saturating_mul(LONGER).min(whole))
    };
    std::iter::successors(Some(first.min(whole)), next)
}

impl ResolvedCondition {
    /// The same condition in a run of this length, which is longer than the warmup.
    pub fn lasting(&self, duration: Duration) -> Self {
        assert!(duration > self.experiment.warmup, "a run is longer than its warmup");
        let experiment = Experiment { duration, ..Experiment::clone(&self.experiment) };
        Self { condition: self.condition.clone(), experiment: experiment.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scenario;

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
        let condition = &plan[0].condition;
        assert_eq!(condition.experiment.duration, Duration::from_secs(600));
        let short = condition.lasting(Duration::from_secs(60));
        assert_eq!(short.experiment.duration, Duration::from_secs(60));
        assert_eq!(short.lasting(Duration::from_secs(600)).experiment, condition.experiment);
    }
}
