//! From the scenario's radio to the medium's.

use wakeai_medium::{
    CellularConfig, CellularStationConfig, HostQueueKind, MediumConfig, WifiConfig,
    WifiStationConfig,
};
use wakeai_scenario::{AccessPoint, Experiment, HostQueue, Medium, StationGroup};
use wakeai_wifi::{Bss, Cell};

/// Why no medium can be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RadioError {
    /// The scenario asks for something that the medium does not have.
    #[error("{asked}: {remedy}")]
    Unsupported {
        /// The key and its value.
        asked: String,
        /// What to do about it.
        remedy: String,
    },
    /// The medium refused the scenario's radio.
    #[error("the radio of the scenario cannot be built: {0}")]
    Medium(#[from] wakeai_medium::ConfigError),
}

/// What each station of a group keeps in the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StationQueue {
    /// So many packets.
    pub packets: u32,
    /// How they take turns. A cellular link knows but one way.
    pub kind: HostQueueKind,
}

impl StationQueue {
    /// The whole queue of the host, as the scenario has it.
    pub fn of(group: &StationGroup) -> Self {
        let kind = match group.host_queue {
            HostQueue::Fifo | HostQueue::Tsq => HostQueueKind::Fifo,
            HostQueue::Mac80211 => HostQueueKind::FqCodel,
        };
        Self { packets: group.queue, kind }
    }

    /// A plain FIFO of so many packets.
    pub fn fifo(packets: u32) -> Self {
        Self { packets, kind: HostQueueKind::Fifo }
    }
}

/// The network of `experiment`. `queue` says what each station of a group keeps there.
pub fn medium_config(
    experiment: &Experiment,
    queue: impl Fn(&StationGroup) -> StationQueue,
) -> MediumConfig {
    match experiment.access_point.medium {
        Medium::Wifi(bss) => MediumConfig::Wifi(wifi(experiment, bss, queue)),
        Medium::Cellular(cell) => MediumConfig::Cellular(cellular(experiment, cell, queue)),
    }
}

/// The 802.11 medium of `experiment`, see [`medium_config`].
///
/// # Errors
///
/// The experiment has a cellular link.
pub fn wifi_config(
    experiment: &Experiment,
    queue: impl Fn(&StationGroup) -> StationQueue,
) -> Result<WifiConfig, RadioError> {
    match medium_config(experiment, queue) {
        MediumConfig::Wifi(config) => Ok(config),
        MediumConfig::Cellular(_) => Err(RadioError::Unsupported {
            asked: "access_point.medium = \"cellular\"".to_owned(),
            remedy: "this version emulates 802.11 only".to_owned(),
        }),
    }
}

fn cellular(
    experiment: &Experiment,
    cell: Cell,
    queue: impl Fn(&StationGroup) -> StationQueue,
) -> CellularConfig {
    let stations = experiment.stations.iter().flat_map(|group| {
        let station = CellularStationConfig {
            queue: queue(group).packets as usize,
            wired_delay: group.wired_delay,
        };
        std::iter::repeat_n(station, group.count as usize)
    });
    CellularConfig {
        cell,
        buffer: experiment.access_point.buffer as usize,
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
        // All by name, so that no new key is forgotten here.
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
        buffer: buffer as usize,
        wired: experiment.wired,
        stations: stations.flatten().collect(),
        eifs_after_collision: false,
        hand_up_after_ppdu: false,
    }
}
