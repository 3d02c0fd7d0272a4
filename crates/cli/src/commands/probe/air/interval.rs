//! The figures of the time between two readings.

use std::time::Duration;

use serde::Serialize;
use wakeai_agent::Link;

/// The figures of the time between two readings. A figure is `None` if the driver does not report it, or if it would be
/// a share of zero.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Interval {
    pub(super) elapsed_ms: f64,
    pub(super) tx_packets: Option<u32>,
    pub(super) rx_packets: Option<u32>,
    /// Retransmissions for each packet that was sent.
    pub(super) retries_per_packet: Option<f64>,
    /// The share of the packets that were never acknowledged.
    pub(super) failed_per_packet: Option<f64>,
    /// The share of the time during which this station sent.
    pub(super) tx_airtime_share: Option<f64>,
    /// The share of the time during which this station received from its access point.
    pub(super) rx_airtime_share: Option<f64>,
    /// The share of the radio's time on the channel in which the channel was busy.
    pub(super) busy_share: Option<f64>,
    /// Whether the driver has counters of the channel's time that stood still between the readings.
    #[serde(skip)]
    stood_still: bool,
}

impl Interval {
    /// The figures between `before` and `after`, which were read `elapsed` apart. Returns `None` if the association is
    /// new, because the counters start again with each association.
    pub(super) fn between(before: &Link, after: &Link, elapsed: Duration) -> Option<Self> {
        let is_new = before.bssid != after.bssid || after.connected_s < before.connected_s;
        if is_new || elapsed.is_zero() {
            return None;
        }
        let tx_packets = grown(before.tx.packets, after.tx.packets);
        let per_packet = |count: Option<u32>| {
            let packets = tx_packets.filter(|packets| *packets > 0)?;
            Some(f64::from(count?) / f64::from(packets))
        };
        let share = |before: Option<u64>, after: Option<u64>| {
            let us = after?.checked_sub(before?)?;
            Some(us as f64 / 1e6 / elapsed.as_secs_f64())
        };
        let [was, is] = [&before.channel, &after.channel];
        let active_ms = is.active_ms.zip(was.active_ms).and_then(|(is, was)| is.checked_sub(was));
        let busy_ms = is.busy_ms.zip(was.busy_ms).and_then(|(is, was)| is.checked_sub(was));
        let counted_ms = active_ms.filter(|ms| *ms > 0);
        Some(Self {
            elapsed_ms: elapsed.as_micros() as f64 / 1e3,
            tx_packets,
            rx_packets: grown(before.rx.packets, after.rx.packets),
            retries_per_packet: per_packet(grown(before.retries, after.retries)),
            failed_per_packet: per_packet(grown(before.failed, after.failed)),
            tx_airtime_share: share(before.tx.airtime_us, after.tx.airtime_us),
            rx_airtime_share: share(before.rx.airtime_us, after.rx.airtime_us),
            busy_share: busy_ms.zip(counted_ms).map(|(busy, active)| busy as f64 / active as f64),
            stood_still: active_ms == Some(0),
        })
    }

    /// The figure that the driver does not report, although it has the counters. Some drivers count a channel's time
    /// only while they scan.
    pub(super) fn not_told(&self) -> Option<&'static str> {
        self.stood_still.then_some("busy share of the channel")
    }
}

/// The growth of a counter. It is `None` if the counter has fallen.
fn grown(before: Option<u32>, after: Option<u32>) -> Option<u32> {
    after?.checked_sub(before?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn link() -> Link {
        let mut link = Link { retries: Some(10), failed: Some(0), ..Link::default() };
        link.connected_s = Some(60);
        link.tx.packets = Some(100);
        link.tx.airtime_us = Some(1_000);
        link.channel.active_ms = Some(5_000);
        link.channel.busy_ms = Some(1_000);
        link
    }

    #[test]
    fn shares_are_of_the_packets_the_time_and_the_channel() {
        let mut after = link();
        after.tx.packets = Some(300);
        after.retries = Some(60);
        after.failed = Some(2);
        after.tx.airtime_us = Some(251_000);
        after.channel.active_ms = Some(5_800);
        after.channel.busy_ms = Some(1_200);
        let found = Interval::between(&link(), &after, SECOND).unwrap();
        assert_eq!(found.tx_packets, Some(200));
        assert_eq!((found.retries_per_packet, found.failed_per_packet), (Some(0.25), Some(0.01)));
        assert_eq!((found.tx_airtime_share, found.busy_share), (Some(0.25), Some(0.25)));
        let untold = (found.rx_packets, found.rx_airtime_share, found.not_told());
        assert_eq!(untold, (None, None, None));
    }

    #[test]
    fn a_share_of_nothing_is_none() {
        let found = Interval::between(&link(), &link(), SECOND).unwrap();
        assert_eq!((found.tx_packets, found.retries_per_packet), (Some(0), None));
        assert_eq!((found.tx_airtime_share, found.busy_share), (Some(0.0), None));
        assert_eq!(found.not_told(), Some("busy share of the channel"), "its times stood still");
    }

    #[test]
    fn a_new_association_has_no_interval() {
        let mut again = link();
        again.connected_s = Some(0);
        assert_eq!(Interval::between(&link(), &again, SECOND), None);
        let mut fallen = link();
        fallen.tx.packets = Some(3);
        assert_eq!(Interval::between(&link(), &fallen, SECOND).unwrap().tx_packets, None);
    }
}
