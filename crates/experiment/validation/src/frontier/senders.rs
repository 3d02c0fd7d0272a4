//! The stations of a setting that send, as far as their windows depend on it.

use std::collections::BTreeMap;

use wakeai_scenario::{Endpoint, Experiment, FlowKind, HostQueue, Scenario, StationGroup};
use wakeai_wifi::LONGEST_PPDU;

use crate::detailed::path;

/// The bytes of an MPDU in an aggregate that carries a full segment: 1500 of IP, and 40 of headers,
/// delimiter and padding.
const MPDU_BYTES: u64 = 1_540;

/// A group of equal stations that send.
#[derive(Clone, Debug, PartialEq)]
pub struct SenderGroup {
    /// The name of the group.
    pub group: String,
    /// The number of stations.
    pub count: u32,
    /// The TCP connections of each station.
    pub connections: u32,
    /// The goodput of a station that sends alone, Mbit/s.
    pub solo_mbps: f64,
    /// The round-trip time of the path without load, seconds.
    pub path_s: f64,
    /// The packets of the largest aggregate; 1 where frames are not aggregated.
    pub aggregate: u32,
    /// The bytes that the law lets wait in the host's queue: one aggregate. `None` where the host
    /// has no small queue, or where frames are not aggregated.
    pub small_queue: Option<u64>,
}

/// All groups that send TCP to the server. The first is the reference: the one with the highest
/// solo goodput, and of several such groups the one with the shortest path.
#[derive(Clone, Debug, PartialEq)]
pub struct Senders(pub Vec<SenderGroup>);

impl Senders {
    /// The senders of a scenario. `solos` has the goodput of one station alone by group, Mbit/s.
    pub fn new(scenario: &Scenario, solos: &BTreeMap<String, f64>) -> Self {
        let of = |(index, group): (usize, &StationGroup)| {
            let connections = connections(scenario, index);
            (connections > 0).then(|| SenderGroup {
                group: group.name.clone(),
                count: group.count,
                connections,
                solo_mbps: solos.get(&group.name).copied().unwrap_or(f64::NAN),
                path_s: path(scenario, group).as_secs_f64(),
                aggregate: aggregate(scenario, group).map_or(1, |(packets, _)| packets),
                small_queue: aggregate(scenario, group)
                    .filter(|_| group.host_queue != HostQueue::Fifo)
                    .map(|(_, bytes)| bytes),
            })
        };
        let mut senders: Vec<SenderGroup> =
            scenario.stations.iter().enumerate().filter_map(of).collect();
        senders.sort_by(|a, b| {
            let by_rate = b.solo_mbps.total_cmp(&a.solo_mbps);
            by_rate.then(a.path_s.total_cmp(&b.path_s))
        });
        Self(senders)
    }

    /// The number of stations that send.
    pub fn stations(&self) -> u32 {
        self.0.iter().map(|sender| sender.count).sum()
    }
}

/// The TCP flows of each station of a group to the server.
fn connections(experiment: &Experiment, group: usize) -> u32 {
    let of_group = experiment.flows.iter().filter(|flow| {
        let from = matches!(flow.from, Endpoint::Stations(from) if from.group == group);
        from && flow.to == Endpoint::Server && flow.kind == FlowKind::Tcp
    });
    u32::try_from(of_group.count()).unwrap_or(u32::MAX)
}

/// The packets and the bytes of the largest aggregate of a station; `None` without aggregation.
fn aggregate(experiment: &Experiment, group: &StationGroup) -> Option<(u32, u64)> {
    let (bss, radio) = (experiment.access_point.wifi()?, group.radio?);
    let longest = bss.ampdu_of(radio.standard).get();
    let bytes = longest.min(radio.rate.bytes_in(LONGEST_PPDU).get());
    let packets = (bytes / MPDU_BYTES).min(u64::from(bss.subframes_of(radio.standard)));
    (longest > 0).then_some((u32::try_from(packets).ok()?.max(1), bytes))
}
