//! The medium's configuration for radios: each access point and each station of the scenario is a radio.

use wakeai_medium::{AccessPointConfig, MediumConfig, StationId, WifiConfig, WifiStationConfig};
use wakeai_scenario::{Experiment, Medium, Scenario};
use wakeai_wifi::{QueueDiscipline, QueueLimit, StationRadio, Wired};
use wakeai_world::{StationQueue, TimedChange, medium_config};

use super::MOST_KEPT;
use super::error::MediumError;

/// Refuses what no medium of hwsim's radios can do.
pub(crate) fn refuse(scenario: &Scenario, experiment: &Experiment) -> Result<(), MediumError> {
    let refused = |asked: String, remedy: &str| {
        Err(MediumError::Unsupported { asked, remedy: remedy.to_owned() })
    };
    if !matches!(experiment.access_point.medium, Medium::Wifi(_)) {
        return refused(
            "the scenario has a cellular link".to_owned(),
            "hwsim's radios are of Wi-Fi; `wakeai sim` and `wakeai lab` have that link",
        );
    }
    for key in ["host_queue", "queue"] {
        if scenario.has_key("stations", key) {
            return refused(
                format!("stations has the key {key}"),
                "the queue of a host is that of the kernel's 802.11 stack here; remove the key",
            );
        }
    }
    for table in ["stations", "bss"] {
        if scenario.has_key(table, "hears") {
            return refused(
                format!("{table} has the key hears"),
                "all radios on a channel hear each other here; remove the key",
            );
        }
    }
    for table in ["access_point", "bss"] {
        if scenario.has_key(table, "amsdu") {
            return refused(
                format!("{table} has the key amsdu"),
                "the kernel's 802.11 stack decides about A-MSDU here; remove the key",
            );
        }
    }
    let buffers = experiment.bsss.iter().map(|bss| ("bss", bss.access_point.buffer));
    let buffers = buffers.chain([("access_point", experiment.access_point.buffer)]);
    for (table, buffer) in buffers.filter(|(table, _)| scenario.has_key(table, "buffer")) {
        let fits = matches!(buffer, QueueLimit::Packets(packets) if packets <= MOST_KEPT);
        if !fits {
            return refused(
                format!("{table}.buffer is {}", words(buffer)),
                "at most 180 packets are possible (and no bytes): at 200 frames of a radio without a report the driver \
                 frees the oldest, although the medium has them",
            );
        }
    }
    Ok(())
}

/// The configuration: the radios of the access points, then those of the stations, and last a receiver that answers
/// nothing.
pub(crate) fn config(experiment: &Experiment) -> MediumConfig {
    let MediumConfig::Wifi(plain) = medium_config(experiment, StationQueue::of) else {
        unreachable!("a cellular link was refused")
    };
    let limit = |buffer: QueueLimit| match buffer {
        QueueLimit::Packets(packets) => QueueLimit::Packets(packets.min(MOST_KEPT)),
        QueueLimit::Bytes(_) => QueueLimit::Packets(MOST_KEPT),
    };
    let radio = |bss, buffer| AccessPointConfig {
        channel: 0,
        zone: 0,
        bss,
        buffer: limit(buffer),
        wired: Wired::default(),
    };
    let mut access_points = Vec::new();
    let mut stations = Vec::new();
    for one in &plain.access_points {
        let own = WifiStationConfig::new(one.bss.standard, &one.bss);
        stations.push(WifiStationConfig { access_point: access_points.len() as u32, ..own });
        access_points.push(radio(one.bss, one.buffer));
    }
    for station in &plain.stations {
        let of = plain.access_points[station.access_point as usize].bss;
        let StationRadio { contention, .. } = station.radio;
        let bss = wakeai_wifi::Bss { contention, queue: QueueDiscipline::Fifo, ..of };
        let place = access_points.len() as u32;
        stations.push(WifiStationConfig { access_point: place, zone: 0, ..station.clone() });
        access_points.push(radio(bss, QueueLimit::Packets(MOST_KEPT)));
    }
    let first = access_points[0].bss;
    let nobody = WifiStationConfig::new(first.standard, &first);
    stations.push(WifiStationConfig { frame_error_ppm: 1_000_000, ..nobody });
    MediumConfig::Wifi(WifiConfig {
        access_points,
        stations,
        hidden: Vec::new(),
        eifs_after_collision: plain.eifs_after_collision,
        hand_up_after_ppdu: plain.hand_up_after_ppdu,
        radios: true,
    })
}

/// The change of a radio for the change of a station; `None` for a change that the kernel decides.
pub(crate) fn change(access_points: usize, change: TimedChange) -> Option<TimedChange> {
    let station = StationId(change.station.0 + access_points as u32);
    let is_ours = matches!(change.change, wakeai_medium::Change::FrameErrorPpm(_));
    is_ours.then_some(TimedChange { station, ..change })
}

fn words(limit: QueueLimit) -> String {
    match limit {
        QueueLimit::Packets(packets) => format!("{packets} packets"),
        QueueLimit::Bytes(bytes) => bytes.to_string(),
    }
}
