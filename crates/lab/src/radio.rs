//! The scenario's queue, divided between the host and the medium.

use wakeai_medium::MediumConfig;
use wakeai_scenario::Experiment;
use wakeai_world::RadioError;

use crate::host::tun::MAX_QUEUE_PACKETS;

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

/// Divides a station's queue. At least one packet is on each side; of a queue that is longer than the
/// kernel gives a device, the rest waits in the medium.
pub(crate) fn split_queue(queue: u32, aggregates: bool) -> QueueSplit {
    let wanted = if aggregates { AGGREGATING_PACKETS } else { SINGLE_PACKETS };
    let beyond = queue.saturating_sub(MAX_QUEUE_PACKETS);
    let medium = wanted.min(queue / 2).max(beyond).max(1);
    QueueSplit { host: queue.saturating_sub(medium).max(1), medium }
}

/// The medium of `experiment`.
pub(crate) fn medium_config(experiment: &Experiment) -> Result<MediumConfig, RadioError> {
    wakeai_world::medium_config(experiment, |group| {
        let aggregates = group.radio.is_some_and(|radio| radio.standard.aggregates());
        split_queue(group.queue, aggregates).medium
    })
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

    #[test]
    fn no_device_gets_a_longer_queue_than_every_kernel_takes() {
        for queue in [32_767, 32_768, 32_895, 32_896, 60_000, 1_000_000] {
            let split = split_queue(queue, true);
            assert_eq!(split.host + split.medium, queue);
            assert!(split.host <= 32_767, "{queue}: {split:?}");
        }
    }
}
