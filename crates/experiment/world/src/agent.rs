//! The agents of a condition: where they run, how each is configured, and which law each follows
//! (the rule by which it bounds its station's connections).

use std::collections::BTreeMap;

use wakeai_control::presence::{AIR_PARTS, airtime};
use wakeai_control::{AirtimeKnobs, ControllerConfig, LawConfig, StationId};
use wakeai_results::result::Max;
use wakeai_scenario::{
    Direction, Experiment, FixedBounds, Flow, Law, LawParameters, ResolvedCondition,
    StationDirection,
};
use wakeai_units::{Duration, Rate};

/// The emulated access point's address. It is locally administered and spells "WAKEA".
pub const BSSID: [u8; 6] = [0x02, 0x57, 0x41, 0x4b, 0x45, 0x41];

/// What the configuration of an agent says about its station.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StationFacts {
    /// The station's PHY rate.
    pub link_rate: Option<Rate>,
    /// The goodput that the station reaches alone, if it was measured or given.
    pub max: Option<Rate>,
}

/// The law that an agent follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentLaw {
    /// No law: the agent only observes, because the condition's law is `fixed` and has no `bounds`
    /// for this station.
    Watch,
    /// The law `fixed`, with the condition's `bounds`.
    Fixed(FixedBounds),
    /// A law that computes bounds, with its parameters.
    Named(Law, LawParameters),
}

impl AgentLaw {
    /// The law that the agent of each station follows; `None` where no agent runs.
    pub fn of_stations(condition: &ResolvedCondition) -> Vec<Option<Self>> {
        let runs = condition.agents().into_iter().zip(condition.bounds());
        let laws = condition.laws().into_iter();
        let new = |(law, parameters), bounds| Self::new(law, parameters, bounds);
        let of = |((runs, bounds), law): ((bool, _), Option<_>)| {
            law.filter(|_| runs).map(|law| new(law, bounds))
        };
        runs.zip(laws).map(of).collect()
    }

    fn new(law: Law, parameters: LawParameters, bounds: Option<FixedBounds>) -> Self {
        match (law, bounds) {
            (Law::Fixed, None) => Self::Watch,
            (Law::Fixed, Some(bounds)) => Self::Fixed(bounds),
            (other, _) => Self::Named(other, parameters),
        }
    }

    /// Whether the agent bounds its station's connections.
    pub fn binds(self) -> bool {
        self != Self::Watch
    }

    /// The configuration of the controller's law.
    pub fn config(self) -> LawConfig {
        match self {
            Self::Watch => LawConfig::UNBOUND,
            Self::Fixed(FixedBounds { floor, ceiling, small_queue }) => {
                LawConfig::Fixed { floor, ceiling, small_queue }
            }
            Self::Named(Law::Airtime, parameters) => LawConfig::Airtime(knobs(parameters)),
            Self::Named(law, _) => {
                LawConfig::from_name(law.name()).expect("every law has its name")
            }
        }
    }
}

fn knobs(parameters: LawParameters) -> AirtimeKnobs {
    let LawParameters { queue_rounds_percent, queue_min, queue_max } = parameters;
    let default = AirtimeKnobs::default();
    AirtimeKnobs {
        queue_rounds_percent: queue_rounds_percent.unwrap_or(default.queue_rounds_percent),
        queue_min: queue_min.unwrap_or(default.queue_min),
        queue_max: queue_max.unwrap_or(default.queue_max),
    }
}

/// For every station: whether an agent bounds its connections.
pub fn bounded(condition: &ResolvedCondition) -> Vec<bool> {
    let laws = AgentLaw::of_stations(condition).into_iter();
    laws.map(|law| law.is_some_and(AgentLaw::binds)).collect()
}

/// The number by which agents know the station at `index`.
pub fn station_number(index: usize) -> u64 {
    index as u64 + 1
}

/// The time that the agents run before time zero of a run. They then know each other, as in a fleet
/// that has been on for a while. The time is zero without agents.
///
/// With n stations an agent sends a presence message every n/6 s, and each message acknowledges 16
/// peers ([`wakeai_control`]'s presence). So it takes n^2/96 s to acknowledge n peers. Half of that
/// is added for lost messages.
pub fn acquaintance(stations: usize) -> Duration {
    const LEAST: Duration = Duration::from_secs(2);
    const MOST: Duration = Duration::from_secs(200);
    if stations == 0 {
        return Duration::ZERO;
    }
    let stations = stations as u64;
    (LEAST + Duration::from_secs(stations * stations) / 64).min(MOST)
}

/// The time between two presence messages of a station while nothing changes. `stations` is the
/// number of stations that run agents.
pub fn presence_interval(experiment: &Experiment, stations: usize) -> Duration {
    let basic_rate =
        experiment.access_point.wifi().map_or(Rate::from_mbps(6), |wifi| wifi.basic_rate);
    let radios = experiment.stations.iter().filter_map(|group| group.radio);
    let slowest = radios.map(|radio| radio.rate).min();
    airtime(basic_rate, slowest).saturating_mul(AIR_PARTS).saturating_mul(stations as u64)
}

/// The configuration of the controller of the station at `index`.
pub fn controller_config(
    condition: &ResolvedCondition,
    index: usize,
    facts: StationFacts,
    group_key: [u8; 32],
) -> ControllerConfig {
    let access_point = &condition.experiment.access_point;
    let mut config = ControllerConfig::new(StationId(station_number(index)), BSSID, group_key);
    config.access_point_buffer = access_point.buffer.full_packets();
    config.max_rate = facts.max;
    if let Some(wifi) = access_point.wifi() {
        config.basic_rate = wifi.basic_rate;
    }
    config
}

/// For every station, the facts that its agent's configuration states.
pub fn facts(
    condition: &ResolvedCondition,
    maxima: &BTreeMap<StationDirection, Max>,
) -> Vec<StationFacts> {
    let experiment = &*condition.experiment;
    let expanded = experiment.expand(0);
    let mut directions = vec![Direction::Up; expanded.stations.len()];
    // Bounds apply to the direction of a station's first flow. The loop goes backwards, so that
    // this flow's direction is the one that stays.
    for flow in expanded.flows.iter().rev() {
        directions[flow.station()] = Flow::direction(flow);
    }
    let stations = expanded.stations.iter().zip(directions).enumerate();
    stations
        .map(|(station, (of, direction))| {
            let max = maxima.get(&StationDirection { station, direction });
            let max = max.filter(|max| max.mbps > 0.0);
            StationFacts {
                link_rate: experiment.stations[of.group].radio.map(|radio| radio.rate),
                max: max.map(|max| Rate::from_bps((max.mbps * 1e6) as u64)),
            }
        })
        .collect()
}
