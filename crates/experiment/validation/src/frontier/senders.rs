//! The stations of a setting that send or receive, as far as their windows depend on it.

use std::collections::BTreeMap;

use wakeai_scenario::{
    Direction, Endpoint, Experiment, FlowKind, HostQueue, Scenario, StationGroup,
};
use wakeai_wifi::LONGEST_PPDU;

use crate::detailed::path;

/// The bytes of an MPDU in an aggregate that carries a full segment: 1500 of IP, and 40 of headers,
/// delimiter and padding.
const MPDU_BYTES: u64 = 1_540;

/// A group of equal stations that move data in this direction.
#[derive(Clone, Debug, PartialEq)]
pub struct SenderGroup {
    /// The name of the group.
    pub group: String,
    /// The direction: [`Direction::Up`] or [`Direction::Down`].
    pub direction: Direction,
    /// The number of directions among which each station divides its part of the air.
    pub directions: u32,
    /// The number of stations.
    pub count: u32,
    /// The TCP connections of each station in this direction.
    pub connections: u32,
    /// The goodput of a station alone, Mbit/s.
    pub solo_mbps: f64,
    /// The round-trip time of the path without load, seconds.
    pub path_s: f64,
    /// The packets of the largest aggregate; 1 where frames are not aggregated.
    pub aggregate: u32,
    /// The bytes that the law lets wait in the host's queue: one aggregate. `None` where the host
    /// has no small queue, or where frames are not aggregated.
    pub small_queue: Option<u64>,
}

/// All groups that send TCP to the server or receive it from there. The first is the reference: the one with the highest
/// solo goodput, and of several such groups the one with the shortest path.
#[derive(Clone, Debug, PartialEq)]
pub struct Senders(pub Vec<SenderGroup>);

impl Senders {
    /// The senders of a scenario. `solos` has the goodput of one station alone by group and direction,
    /// Mbit/s.
    pub fn new(scenario: &Scenario, solos: &BTreeMap<(String, Direction), f64>) -> Self {
        let of = |(index, group): (usize, &StationGroup)| {
            let both = [Direction::Up, Direction::Down];
            let both = both.map(|direction| (direction, connections(scenario, index, direction)));
            let active = both.into_iter().filter(|(_, connections)| *connections > 0);
            let directions = active.clone().count() as u32;
            let of = |(direction, connections): (Direction, u32)| SenderGroup {
                group: group.name.clone(),
                direction,
                directions,
                count: group.count,
                connections,
                solo_mbps: *solos.get(&(group.name.clone(), direction)).unwrap_or(&f64::NAN),
                path_s: path(scenario, group).as_secs_f64(),
                aggregate: aggregate(scenario, group).map_or(1, |(packets, _)| packets),
                small_queue: aggregate(scenario, group)
                    .filter(|_| group.host_queue != HostQueue::Fifo && direction == Direction::Up)
                    .map(|(_, bytes)| bytes),
            };
            active.map(of).collect::<Vec<_>>()
        };
        let mut senders: Vec<SenderGroup> =
            scenario.stations.iter().enumerate().flat_map(of).collect();
        senders.sort_by(|a, b| {
            let by_rate = b.solo_mbps.total_cmp(&a.solo_mbps);
            by_rate.then(a.path_s.total_cmp(&b.path_s))
        });
        Self(senders)
    }

    /// The number of stations.
    pub fn stations(&self) -> u32 {
        let parts =
            self.0.iter().map(|sender| f64::from(sender.count) / f64::from(sender.directions));
        parts.sum::<f64>().round() as u32
    }
}

/// The TCP flows between each station of a group and the server in this direction.
fn connections(experiment: &Experiment, group: usize, direction: Direction) -> u32 {
    let of_group = experiment.flows.iter().filter(|flow| {
        let (station, server) = match direction {
            Direction::Down => (&flow.to, &flow.from),
            _ => (&flow.from, &flow.to),
        };
        let is_own = matches!(station, Endpoint::Stations(own) if own.group == group);
        is_own && *server == Endpoint::Server && flow.kind == FlowKind::Tcp
    });
    u32::try_from(of_group.count()).unwrap_or(u32::MAX)
}

/// The packets and the bytes of the largest aggregate of a station; `None` without aggregation.
fn aggregate(experiment: &Experiment, group: &StationGroup) -> Option<(u32, u64)> {
    let (bss, radio) = (experiment.access_point_of(group).wifi()?, group.radio?);
    let longest = bss.ampdu_of(radio.standard).get();
    let bytes = longest.min(radio.rate.bytes_in(LONGEST_PPDU).get());
    let packets = (bytes / MPDU_BYTES).min(u64::from(bss.subframes_of(radio.standard)));
    (longest > 0).then_some((u32::try_from(packets).ok()?.max(1), bytes))
}
