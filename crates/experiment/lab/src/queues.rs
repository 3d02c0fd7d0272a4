//! Divides the scenario's host queue between the TUN device and the medium (the emulated radio).

use wakeai_medium::MediumConfig;
use wakeai_scenario::{AccessPoint, Experiment, HostQueue, StationGroup};
use wakeai_world::StationQueue;

use crate::host::tun::MAX_QUEUE_PACKETS;

/// The number of aggregates (packets that one transmission carries) in the medium: one on the air,
/// and the next one, which must be ready when the first ends.
const AGGREGATES: u32 = 2;
/// The smallest number of packets in the medium. Without aggregation a transmission takes about as
/// long as the driver may be late, so one ready packet would not be enough.
const SINGLE_PACKETS: u32 = 16;

/// The two parts of a station's queue. The first part is the queue of the TUN device. The second
/// part is in the medium, and has only as much room as the station's next transmissions need; the
/// driver reads a packet from the device only if the medium has room. Together they are as long as
/// the scenario says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueueSplit {
    /// Packets in the TUN device. TCP takes the overflow of this queue for local congestion.
    pub(crate) host: u32,
    /// Packets in the medium.
    pub(crate) medium: u32,
}

/// Divides the queue of a station of `group`. Each part has at least one packet. If the queue
/// exceeds the kernel's limit for a device, the excess is in the medium.
pub(crate) fn split_queue(access_point: &AccessPoint, group: &StationGroup) -> QueueSplit {
    let radio = access_point.wifi().zip(group.radio);
    let subframes = radio.map_or(1, |(bss, radio)| bss.subframes_of(radio.standard));
    let wanted = (AGGREGATES * u32::from(subframes)).max(SINGLE_PACKETS);
    let queue = fifo_packets(group);
    let beyond = queue.saturating_sub(MAX_QUEUE_PACKETS);
    let medium = wanted.min(queue / 2).max(beyond).max(1);
    let split = QueueSplit { host: queue.saturating_sub(medium).max(1), medium };
    debug_assert!(split.host <= MAX_QUEUE_PACKETS && split.host + split.medium >= queue);
    split
}

/// The length, in packets, of a host's FIFO. A scenario may ask for the FQ-CoDel queue of mac80211
/// instead. Such a queue seldom reaches its length, while a FIFO of the same length would fill. So
/// the host gets a FIFO of at most the default length.
pub(crate) fn fifo_packets(group: &StationGroup) -> u32 {
    match group.host_queue {
        HostQueue::Fifo | HostQueue::Tsq => group.queue,
        HostQueue::Mac80211 => group.queue.min(HostQueue::Fifo.default_packets()),
    }
}

/// The configuration of the medium of `experiment`.
pub(crate) fn medium_config(experiment: &Experiment) -> MediumConfig {
    wakeai_world::medium_config(experiment, |group| {
        let access_point = experiment.access_point_of(group);
        StationQueue::fifo(split_queue(access_point, group).medium)
    })
}

#[cfg(test)]
mod tests {
    use wakeai_scenario::Scenario;

    use super::*;

    /// An access point and a group of stations.
    fn medium(access_point: &str) -> (AccessPoint, StationGroup) {
        let text = format!(
            "name = \"x\"\nduration = \"1s\"\naccess_point = {{ {access_point} }}\n\
             stations = [{{ name = \"a\" }}]\nflows = [{{ from = \"a\", to = \"server\" }}]\n"
        );
        let scenario = Scenario::parse(&text).unwrap();
        (scenario.access_point, scenario.stations[0].clone())
    }

    #[test]
    fn the_two_parts_hold_the_scenario_s_queue() {
        for standard in ["802.11g", "802.11n", "802.11ax"] {
            let (access_point, mut group) = medium(&format!("standard = \"{standard}\""));
            for queue in 2..2_000 {
                group.queue = queue;
                let split = split_queue(&access_point, &group);
                assert_eq!(split.host + split.medium, queue);
                assert!(split.host >= 1 && split.medium >= 1);
            }
        }
    }

    #[test]
    fn the_medium_keeps_two_aggregates() {
        let medium = |access_point: &str| {
            let (access_point, group) = medium(access_point);
            split_queue(&access_point, &group).medium
        };
        assert_eq!(medium("standard = \"802.11g\""), 16);
        assert_eq!(medium("standard = \"802.11n\""), 128);
        assert_eq!(medium("standard = \"802.11n\", ampdu_subframes = 20"), 40);
        assert_eq!(medium("standard = \"802.11n\", ampdu_subframes = 1"), 16);
        assert_eq!(medium("standard = \"802.11ax\", ampdu_subframes = 200"), 400);
        assert_eq!(medium("standard = \"802.11ax\""), 500, "at most half of the queue");
    }

    #[test]
    fn the_medium_has_the_access_point_s_subframes() {
        let text = "name = \"x\"\nduration = \"1s\"\n\
                    access_point = { standard = \"802.11n\", ampdu_subframes = 5 }\n\
                    stations = [{ name = \"a\" }]\nflows = [{ from = \"a\", to = \"server\" }]\n";
        let config = medium_config(&Scenario::parse(text).unwrap());
        let MediumConfig::Wifi(config) = config else { panic!("{config:?}") };
        assert_eq!(config.access_points[0].bss.ampdu_subframes, 5);
    }

    #[test]
    fn no_device_gets_a_longer_queue_than_every_kernel_takes() {
        for queue in [32_767, 32_768, 32_895, 32_896, 60_000, 1_000_000] {
            let (access_point, mut group) = medium("standard = \"802.11n\"");
            group.queue = queue;
            let split = split_queue(&access_point, &group);
            assert_eq!(split.host + split.medium, queue);
            assert!(split.host <= 32_767, "{queue}: {split:?}");
        }
    }
}
