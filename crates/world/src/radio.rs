//! From the scenario's radio to the medium's.

use wakeai_medium::{
    AccessPointConfig, CellularConfig, CellularStationConfig, Contention, GuardInterval,
    HostQueueKind, MediumConfig, NetworkConfig, Protection, QueueKind, Scheduler, Standard,
    StationConfig, Width, WiredConfig,
};
use wakeai_scenario::{
    self as scenario, Cellular, Experiment, HostQueue, StationGroup, StationRadio, Wifi,
};

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
///
/// # Errors
///
/// A radio that the network does not have.
pub fn network_config(
    experiment: &Experiment,
    queue: impl Fn(&StationGroup) -> StationQueue,
) -> Result<NetworkConfig, RadioError> {
    match &experiment.access_point.medium {
        scenario::Medium::Wifi(_) => medium_config(experiment, queue).map(NetworkConfig::Wifi),
        scenario::Medium::Cellular(cellular) => {
            Ok(NetworkConfig::Cellular(cellular_config(experiment, cellular, queue)))
        }
    }
}

fn cellular_config(
    experiment: &Experiment,
    cellular: &Cellular,
    queue: impl Fn(&StationGroup) -> StationQueue,
) -> CellularConfig {
    let groups = experiment.stations.iter();
    let stations = groups.flat_map(|group| {
        let station = CellularStationConfig {
            queue: queue(group).packets as usize,
            wired_delay: group.wired_delay,
        };
        std::iter::repeat_n(station, group.count as usize)
    });
    CellularConfig {
        uplink: cellular.uplink,
        downlink: cellular.downlink,
        buffer: experiment.access_point.buffer as usize,
        scheduler: match cellular.scheduler {
            scenario::Scheduler::ProportionalFair => Scheduler::ProportionalFair,
            scenario::Scheduler::RoundRobin => Scheduler::RoundRobin,
        },
        wired: wired(experiment),
        stations: stations.collect(),
    }
}

/// The 802.11 medium of `experiment`, see [`network_config`].
///
/// # Errors
///
/// A radio that the medium does not have.
pub fn medium_config(
    experiment: &Experiment,
    queue: impl Fn(&StationGroup) -> StationQueue,
) -> Result<MediumConfig, RadioError> {
    let Some(wifi) = experiment.access_point.wifi() else {
        return Err(RadioError::Unsupported {
            asked: "access_point.medium = \"cellular\"".to_owned(),
            remedy: "this version emulates 802.11 only".to_owned(),
        });
    };
    let mut stations = Vec::new();
    for group in &experiment.stations {
        let Some(radio) = &group.radio else { continue };
        check_common(&group.name, radio, &wifi.station)?;
        let StationQueue { packets, kind } = queue(group);
        let station = StationConfig {
            standard: standard(radio.standard),
            rate: radio.rate,
            queue: packets as usize,
            host_queue: kind,
            frame_error_ppm: group.frame_error_ppm,
            wired_delay: group.wired_delay,
            contention: Some(contention(&radio.contention)),
        };
        stations.extend(std::iter::repeat_n(station, group.count as usize));
    }
    let access_point = access_point(wifi, experiment.access_point.buffer)?;
    Ok(MediumConfig { access_point, wired: wired(experiment), stations })
}

fn wired(experiment: &Experiment) -> WiredConfig {
    let scenario::Wired { rate, delay, queue } = experiment.wired;
    WiredConfig { rate, delay, queue: queue as usize }
}

fn access_point(wifi: &Wifi, buffer: u32) -> Result<AccessPointConfig, RadioError> {
    let radio = &wifi.station;
    let mut config = AccessPointConfig::new(standard(wifi.standard));
    config.buffer = buffer as usize;
    config.queue = match wifi.queue {
        scenario::QueueDiscipline::Fifo => QueueKind::Fifo,
        scenario::QueueDiscipline::Fq => QueueKind::Fq,
    };
    config.protection = match wifi.protection {
        scenario::Protection::None => Protection::None,
        scenario::Protection::CtsToSelf => Protection::CtsToSelf,
        scenario::Protection::RtsCts => Protection::RtsCts,
    };
    config.basic_rate = wifi.basic_rate;
    config.control_rate = wifi.control_rate;
    config.width = width(radio.width_mhz)?;
    config.streams = u8::try_from(radio.streams).unwrap_or(u8::MAX);
    config.guard_interval = GuardInterval::try_from(radio.guard_interval)?;
    if radio.standard.aggregates() {
        config.ampdu = radio.ampdu;
        config.ampdu_subframes = Some(u16::try_from(radio.ampdu_subframes).unwrap_or(u16::MAX));
    }
    config.rts_threshold = wifi.rts_threshold;
    config.retry_limit = u8::try_from(wifi.retry_limit).unwrap_or(u8::MAX);
    config.contention = Some(contention(&wifi.contention));
    Ok(config)
}

/// The medium has one setting of these for the whole BSS.
fn check_common(
    group: &str,
    radio: &StationRadio,
    common: &StationRadio,
) -> Result<(), RadioError> {
    let alike = radio.standard == common.standard;
    let same = [
        ("retry_limit", radio.retry_limit == common.retry_limit),
        ("control_rate", radio.given_control_rate == common.given_control_rate),
        ("ampdu", radio.ampdu == common.ampdu || !alike),
        ("ampdu_subframes", radio.ampdu_subframes == common.ampdu_subframes || !alike),
    ];
    match same.into_iter().find(|(_, same)| !same) {
        None => Ok(()),
        Some((key, _)) => Err(RadioError::Unsupported {
            asked: format!("stations.{group}.{key} of its own"),
            remedy: format!("set access_point.{key}: the emulated radio has one for all"),
        }),
    }
}

fn standard(standard: scenario::Standard) -> Standard {
    match standard {
        scenario::Standard::A => Standard::A,
        scenario::Standard::G => Standard::G,
        scenario::Standard::N => Standard::N,
        scenario::Standard::Ac => Standard::Ac,
        scenario::Standard::Ax => Standard::Ax,
    }
}

fn contention(from: &scenario::Contention) -> Contention {
    Contention {
        aifsn: u8::try_from(from.aifsn).unwrap_or(u8::MAX),
        cw_min: u16::try_from(from.cw_min).unwrap_or(u16::MAX),
        cw_max: u16::try_from(from.cw_max).unwrap_or(u16::MAX),
        txop: from.txop,
    }
}

fn width(mhz: u32) -> Result<Width, RadioError> {
    match mhz {
        20 => Ok(Width::Mhz20),
        40 => Ok(Width::Mhz40),
        80 => Ok(Width::Mhz80),
        160 => Ok(Width::Mhz160),
        _ => Err(RadioError::Unsupported {
            asked: format!("a channel of {mhz} MHz"),
            remedy: "20, 40, 80 or 160".to_owned(),
        }),
    }
}
