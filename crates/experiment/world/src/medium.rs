//! Derives from a scenario what the medium (the emulated radio and wire) needs: its configuration,
//! its addresses, and its changes during a run.

use std::collections::VecDeque;
use std::net::Ipv4Addr;

use rand_core::SeedableRng;
use rand_pcg::Pcg64Mcg;
use wakeai_medium::{
    CellularConfig, CellularStationConfig, Change, HostQueueKind, MediumConfig, StationId,
    WifiConfig, WifiStationConfig,
};
use wakeai_scenario::{AccessPoint, Experiment, HostQueue, StationGroup};
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
    let AccessPoint { buffer, medium: _ } = experiment.access_point;
    let stations = experiment.stations.iter().filter_map(|group| {
        let StationQueue { packets, kind } = queue(group);
        // Every field is named, so that the compiler reports a field that is added later.
        let StationGroup {
            name: _,
            count,
            radio,
            queue: _,
            host_queue: _,
            frame_error_ppm,
            wired_delay,
            max: _,
            tcp: _,
            proxy: _,
            announces: _,
        } = *group;
        let (queue, host_queue) = (packets as usize, kind);
        let radio = radio?;
        let station = WifiStationConfig { radio, queue, host_queue, frame_error_ppm, wired_delay };
        Some(std::iter::repeat_n(station, count as usize))
    });
    WifiConfig {
        bss,
        buffer,
        wired: experiment.wired,
        stations: stations.flatten().collect(),
        eifs_after_collision: false,
        hand_up_after_ppdu: false,
    }
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
