//! From the scenario's radio to the medium's.

use wakeai_medium::{
    AccessPointConfig, Contention, GuardInterval, MediumConfig, Protection, QueueKind, Standard,
    StationConfig, Width, WiredConfig,
};
use wakeai_scenario::{self as scenario, Experiment, StationRadio, Wifi};

use crate::error::LabError;

/// Two aggregates of 64 subframes: one on the air, one ready when it ends.
const AGGREGATING_PACKETS: u32 = 128;
/// A few single frames, each of which is on the air for about as long as the driver may be late.
const SINGLE_PACKETS: u32 = 16;

/// Where a station's packets wait: the host's own queue is the TUN device's, and the medium
/// keeps no more than it needs to be ready for its next turns. The driver reads a packet only
/// where the medium has room, so the two together hold what the scenario says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueueSplit {
    /// Packets in the TUN device, whose overflow TCP hears of.
    pub(crate) host: u32,
    /// Packets in the medium.
    pub(crate) medium: u32,
}

/// Divides a station's queue. At least one packet is on each side.
pub(crate) fn split_queue(queue: u32, aggregates: bool) -> QueueSplit {
    let wanted = if aggregates { AGGREGATING_PACKETS } else { SINGLE_PACKETS };
    let medium = wanted.min(queue / 2).max(1);
    QueueSplit { host: queue.saturating_sub(medium).max(1), medium }
}

/// The medium of `experiment`.
pub(crate) fn medium_config(experiment: &Experiment) -> Result<MediumConfig, LabError> {
    let Some(wifi) = experiment.access_point.wifi() else {
        return Err(LabError::Unsupported {
            asked: "access_point.medium = \"cellular\"".to_owned(),
            remedy: "this version emulates 802.11 only".to_owned(),
        });
    };
    let mut stations = Vec::new();
    for group in &experiment.stations {
        let Some(radio) = &group.radio else { continue };
        check_common(&group.name, radio, &wifi.station)?;
        let station = StationConfig {
            standard: standard(radio.standard),
            rate: radio.rate,
            queue: split_queue(group.queue, radio.standard.aggregates()).medium as usize,
            frame_error_ppm: group.frame_error_ppm,
            wired_delay: group.wired_delay,
            contention: Some(contention(&radio.contention)),
        };
        stations.extend(std::iter::repeat_n(station, group.count as usize));
    }
    let wired = WiredConfig {
        rate: experiment.wired.rate,
        delay: experiment.wired.delay,
        queue: experiment.wired.queue as usize,
    };
    let access_point = access_point(wifi, experiment.access_point.buffer)?;
    Ok(MediumConfig { access_point, wired, stations })
}

fn access_point(wifi: &Wifi, buffer: u32) -> Result<AccessPointConfig, LabError> {
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
    }
    config.retry_limit = u8::try_from(wifi.retry_limit).unwrap_or(u8::MAX);
    config.contention = Some(contention(&wifi.contention));
    Ok(config)
}

/// The medium has one setting of these for the whole BSS.
fn check_common(group: &str, radio: &StationRadio, common: &StationRadio) -> Result<(), LabError> {
    let same = [
        ("retry_limit", radio.retry_limit == common.retry_limit),
        ("control_rate", radio.given_control_rate == common.given_control_rate),
        (
            "ampdu",
            radio.ampdu == common.ampdu
                || !radio.standard.aggregates()
                || radio.standard != common.standard,
        ),
    ];
    match same.into_iter().find(|(_, same)| !same) {
        None => Ok(()),
        Some((key, _)) => Err(LabError::Unsupported {
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

fn width(mhz: u32) -> Result<Width, LabError> {
    match mhz {
        20 => Ok(Width::Mhz20),
        40 => Ok(Width::Mhz40),
        80 => Ok(Width::Mhz80),
        160 => Ok(Width::Mhz160),
        _ => Err(LabError::Unsupported {
            asked: format!("a channel of {mhz} MHz"),
            remedy: "20, 40, 80 or 160".to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_and_medium_hold_the_scenario_s_queue_together() {
        for aggregates in [false, true] {
            for queue in 2..2_000 {
                let split = split_queue(queue, aggregates);
                assert_eq!(split.host + split.medium, queue);
                assert!(split.host >= 1 && split.medium >= 1);
            }
        }
        assert_eq!(split_queue(1_000, true), QueueSplit { host: 872, medium: 128 });
    }
}
