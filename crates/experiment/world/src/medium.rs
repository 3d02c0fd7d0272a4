//! Derives from a scenario what the medium (the emulated radio and wire) needs: its configuration,
//! its addresses, and its changes during a run.

use std::collections::VecDeque;
use std::net::Ipv4Addr;

use rand_core::SeedableRng;
use rand_pcg::Pcg64Mcg;
use wakeai_medium::{
    AccessPointConfig, CellularConfig, CellularStationConfig, Change, Counters, HostQueueKind,
    MediumConfig, StationId, WifiConfig, WifiStationConfig,
};
use wakeai_results::result::FrameCounts;
use wakeai_scenario::{AccessPoint, BssSpec, Experiment, HostQueue, StationGroup};
use wakeai_units::Instant;
use wakeai_wifi::{Bss, Cell};

/// The server's address. The stations are in another network.
pub const SERVER_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 74, 0, 1);
/// The broadcast address of the stations' network.
pub const STATION_BROADCAST: Ipv4Addr = Ipv4Addr::new(10, 73, 255, 255);

/// The address of station `id`. The first station has 10.73.0.1.
pub fn station_address(id: StationId) -> Ipv4Addr {
    let number = id.0 + 1;
    Ipv4Addr::new(10, 73, (number >> 8) as u8, number as u8)
}

/// Changes a run's seed for the medium, so that the medium gets other random numbers than
/// [`wakeai_scenario::Experiment::expand`], which draws the starts of flows with the seed itself.
const MEDIUM_STREAM: u64 = 0x6d65_6469_756d;

/// The random generator of a run's medium.
pub fn generator(seed: u64) -> Pcg64Mcg {
    Pcg64Mcg::seed_from_u64(seed ^ MEDIUM_STREAM)
}

/// What all senders of a medium have sent by radio.
pub fn frame_counts(counters: &Counters) -> FrameCounts {
    let mut sent = FrameCounts::default();
    for sender in counters.contenders() {
        sent.ppdus += sender.attempts;
        sent.mpdus += sender.mpdus;
    }
    sent
}

/// The queue that the medium emulates for each station of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StationQueue {
    /// The length of the queue in packets.
    pub packets: u32,
    /// The queueing discipline. It has no effect on a cellular link, which always has a FIFO.
    pub kind: HostQueueKind,
}

impl StationQueue {
    /// The whole queue of the host, as the scenario describes it.
    pub fn of(group: &StationGroup) -> Self {
        let kind = match group.host_queue {
            HostQueue::Fifo | HostQueue::Tsq => HostQueueKind::Fifo,
            HostQueue::Mac80211 => HostQueueKind::FqCodel,
        };
        Self { packets: group.queue, kind }
    }

    /// A FIFO of `packets`.
    pub fn fifo(packets: u32) -> Self {
        Self { packets, kind: HostQueueKind::Fifo }
    }
}

/// The configuration of the medium of `experiment`. `queue` gives the queue of each station of a
/// group.
pub fn medium_config(
    experiment: &Experiment,
    queue: impl Fn(&StationGroup) -> StationQueue,
) -> MediumConfig {
    match experiment.access_point.medium {
        wakeai_scenario::Medium::Wifi(bss) => MediumConfig::Wifi(wifi(experiment, bss, queue)),
        wakeai_scenario::Medium::Cellular(cell) => {
            MediumConfig::Cellular(cellular(experiment, cell, queue))
        }
    }
}

fn cellular(
    experiment: &Experiment,
    cell: Cell,
    queue: impl Fn(&StationGroup) -> StationQueue,
) -> CellularConfig {
    let stations = experiment.stations.iter().flat_map(|group| {
        let station =
            CellularStationConfig { queue: queue(group).packets, wired_delay: group.wired_delay };
        std::iter::repeat_n(station, group.count as usize)
    });
    CellularConfig {
        cell,
        buffer: experiment.access_point.buffer,
        wired: experiment.wired,
        stations: stations.collect(),
    }
}

fn wifi(
    experiment: &Experiment,
    bss: Bss,
    queue: impl Fn(&StationGroup) -> StationQueue,
) -> WifiConfig {
    let stations = experiment.stations.iter().enumerate().filter_map(|(number, group)| {
        let StationQueue { packets, kind } = queue(group);
        // Every field is named, so that the compiler reports a field that is added later.
        let StationGroup {
            name: _,
            count,
            bss,
            hears: _,
            radio,
            queue: _,
            host_queue: _,
            frame_error_ppm,
            wired_delay,
            max: _,
            tcp: _,
            send_buffer: _,
            proxy: _,
            departure_times: _,
            announces: _,
        } = *group;
        let station = WifiStationConfig {
            access_point: bss as u32,
            zone: number as u32,
            radio: radio?,
            queue: packets as usize,
            host_queue: kind,
            frame_error_ppm,
            wired_delay,
        };
        Some(std::iter::repeat_n(station, count as usize))
    });
    WifiConfig {
        access_points: access_points(experiment, bss),
        stations: stations.flatten().collect(),
        hidden: hidden(experiment),
        eifs_after_collision: false,
        hand_up_after_ppdu: false,
        radios: false,
    }
}

/// The access points: those of `[[bss]]`, or the one of `[access_point]`, whose settings are `plain`. Their zones
/// are numbered after those of the groups.
fn access_points(experiment: &Experiment, plain: Bss) -> Vec<AccessPointConfig> {
    let Experiment { access_point, wired, bsss, stations, .. } = experiment;
    let first = stations.len() as u32;
    if bsss.is_empty() {
        let AccessPoint { buffer, medium: _ } = *access_point;
        let wired = *wired;
        return vec![AccessPointConfig { channel: 0, zone: first, bss: plain, buffer, wired }];
    }
    let access_points = (first..).zip(bsss).filter_map(|(zone, spec)| {
        let BssSpec { name: _, channel, access_point, wired, hears: _ } = spec;
        let AccessPoint { buffer, medium: _ } = *access_point;
        let (channel, wired, bss) = (*channel, *wired, *access_point.wifi()?);
        Some(AccessPointConfig { channel, zone, bss, buffer, wired })
    });
    access_points.collect()
}

/// The pairs of zones that do not hear each other. A group or an access point hears those that its `hears` names,
/// or all, and two of them hear each other only where each hears the other.
fn hidden(experiment: &Experiment) -> Vec<(u32, u32)> {
    let groups = experiment.stations.iter().map(|group| (&group.name, &group.hears));
    let zones: Vec<_> =
        groups.chain(experiment.bsss.iter().map(|bss| (&bss.name, &bss.hears))).collect();
    let hears = |one: usize, other: usize| {
        zones[one].1.as_ref().is_none_or(|heard| heard.contains(zones[other].0))
    };
    let is_group = |zone: usize| zone < experiment.stations.len();
    let pairs = (0..zones.len()).flat_map(|one| (one..zones.len()).map(move |other| (one, other)));
    let pairs = pairs.filter(|&(one, other)| one != other || is_group(one));
    let pairs = pairs.filter(|&(one, other)| !(hears(one, other) && hears(other, one)));
    pairs.map(|(one, other)| (one as u32, other as u32)).collect()
}

/// A change at its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedChange {
    /// The time at which the change takes effect.
    pub at: Instant,
    /// The station that the change concerns.
    pub station: StationId,
    /// The setting's new value.
    pub change: Change,
}

/// The `[[events]]` of a run that are still to come, ordered by time. Events at the same time keep
/// the order of the file.
#[derive(Clone, Debug, Default)]
pub struct Changes(VecDeque<TimedChange>);

impl Changes {
    /// All changes of a run that begins at `origin`.
    pub fn new(experiment: &Experiment, origin: Instant) -> Self {
        let mut all = Vec::new();
        for event in &experiment.events {
            let at = origin + event.at;
            for station in experiment.select(event.stations) {
                let station = StationId(station as u32);
                let changes = [
                    event.wired_delay.map(Change::WiredDelay),
                    event.rate.map(Change::Rate),
                    event.frame_error_ppm.map(Change::FrameErrorPpm),
                ];
                let changes = changes.into_iter().flatten();
                all.extend(changes.map(|change| TimedChange { at, station, change }));
            }
        }
        all.sort_by_key(|change| change.at);
        Self(all.into())
    }

    /// The changes that `map` gives for these.
    #[must_use]
    pub fn filter_map(self, map: impl FnMut(TimedChange) -> Option<TimedChange>) -> Self {
        Self(self.0.into_iter().filter_map(map).collect())
    }

    /// The instant of the next change.
    pub fn next_timeout(&self) -> Option<Instant> {
        self.0.front().map(|change| change.at)
    }

    /// Takes the next change that is due at `now`.
    pub fn poll(&mut self, now: Instant) -> Option<TimedChange> {
        self.0.pop_front_if(|change| change.at <= now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_thousand_stations_have_addresses_of_their_own() {
        let mut addresses: Vec<_> = (0..10_000).map(|id| station_address(StationId(id))).collect();
        assert_eq!(addresses[0], Ipv4Addr::new(10, 73, 0, 1));
        assert_eq!(addresses[255], Ipv4Addr::new(10, 73, 1, 0));
        addresses.dedup();
        assert_eq!(addresses.len(), 10_000);
        assert!(!addresses.contains(&STATION_BROADCAST));
    }
}
