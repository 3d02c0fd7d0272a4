//! The agents of a condition: where they run, how each is configured, and how long they run before time zero.

use std::collections::BTreeMap;

use wakeai_control::presence::{AIR_PARTS, airtime};
use wakeai_control::{ControllerConfig, StationId};
use wakeai_results::result::Max;
use wakeai_scenario::{Direction, Experiment, ResolvedCondition, StationDirection};
use wakeai_units::{Duration, Rate};

/// The address of the emulated access point with this index. It is locally administered; that of the first
/// spells "WAKEA".
pub fn bssid(index: usize) -> [u8; 6] {
    [0x02, 0x57, 0x41, 0x4b, 0x45, 0x41 + index as u8]
}

/// What the configuration of an agent says about its station.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StationFacts {
    /// The station's PHY rate.
    pub link_rate: Option<Rate>,
    /// The goodput that the station reaches alone as a sender, if it was measured or given.
    pub max: Option<Rate>,
    /// The same as a receiver.
    pub max_down: Option<Rate>,
}

/// For every station: whether an agent bounds its connections.
pub fn bounded(condition: &ResolvedCondition) -> Vec<bool> {
    condition.laws().iter().map(Option::is_some).collect()
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
    let experiment = &condition.experiment;
    let group = experiment.group_of(index);
    let access_point = experiment.access_point_of(group);
    let bssid = bssid(group.bss);
    let mut config = ControllerConfig::new(StationId(station_number(index)), bssid, group_key);
    config.access_point_buffer = access_point.buffer.full_packets();
    config.max_rate = facts.max;
    config.max_down_rate = facts.max_down;
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
    let stations = &experiment.expand(0).stations;
    let of = |station, direction| {
        let max = maxima.get(&StationDirection { station, direction });
        let max = max.filter(|max| max.mbps > 0.0);
        max.map(|max| Rate::from_bps((max.mbps * 1e6) as u64))
    };
    let facts = stations.iter().enumerate().map(|(station, expanded)| StationFacts {
        link_rate: experiment.stations[expanded.group].radio.map(|radio| radio.rate),
        max: of(station, Direction::Up).or_else(|| of(station, Direction::Peer)),
        max_down: of(station, Direction::Down),
    });
    facts.collect()
}
