//! The PHY rate of a station's data, derived from nl80211's reports on the last frame.

use std::collections::VecDeque;

use wakeai_units::Rate;

use crate::wifi::Association;

/// A poll counts as a poll with data if the station has sent at least this many packets since the
/// previous poll. Fewer packets may be presence messages, ARP, null frames or a keystroke.
const DATA_PACKETS: u32 = 50;
/// The rate is the median of this many polls with data.
const KEPT: usize = 5;
/// The rate is unknown until this many polls had data, because a single poll may have read the rate
/// of a slow frame.
const ENOUGH: usize = 3;
/// After this many consecutive polls with a delivery rate above the PHY rate, the PHY rate is
/// ignored. A PHY rate that has risen is not ignored, because the median follows it sooner.
const DOUBTED_AFTER: u32 = 4;
/// After this many consecutive polls with a delivery rate below the PHY rate, the PHY rate is used
/// again.
const BELIEVED_AFTER: u32 = 10;

/// The PHY rate of data frames to one access point, for the laws.
///
/// nl80211 reports the rate of the *last* frame. On an idle link this frame is a management or a
/// null frame at a low rate, so the value changes between 13 and 130 Mbit/s, for example. Therefore
/// a poll counts only if the station has sent data since the previous poll. The rate is the median
/// of the last five polls that count. A single slow frame (a retry, or a probe of the rate control)
/// does not change the median. Unlike a mean, the median is a rate that the radio used. A lasting
/// change takes effect with the third poll.
///
/// The driver's expected throughput is not used. Only drivers with the rate control of mac80211
/// report this throughput. It includes the overhead of a transmission, so it cannot be compared
/// with the PHY rates of other stations.
///
/// Order of calls: [`LinkRate::on_poll`] once per answer of nl80211, then [`LinkRate::get`].
#[derive(Clone, Debug, Default)]
pub(crate) struct LinkRate {
    access_point: [u8; 6],
    /// The driver's counter of sent packets at the last poll.
    sent: Option<u32>,
    /// The rates of the last polls with data, the newest last.
    recent: VecDeque<Rate>,
    /// Whether the driver's rate is ignored. It is ignored while the station delivers more than
    /// this rate.
    doubted: bool,
    /// The number of consecutive polls with data that contradict `doubted`.
    otherwise: u32,
}

impl LinkRate {
    /// Takes an answer of nl80211, and the recent delivery rate of this station's connections.
    pub(crate) fn on_poll(&mut self, heard: &Association, delivered: Rate) {
        if heard.bssid != self.access_point {
            *self = Self { access_point: heard.bssid, ..Self::default() };
        }
        let before = std::mem::replace(&mut self.sent, heard.sent_packets);
        let had_data = match heard.sent_packets {
            // A counter that has fallen belongs to a new association.
            Some(sent) => before.and_then(|before| sent.checked_sub(before)) >= Some(DATA_PACKETS),
            None => delivered > Rate::ZERO,
        };
        let Some(rate) = heard.rate.filter(|_| had_data) else { return };
        if self.recent.len() == KEPT {
            self.recent.pop_front();
        }
        self.recent.push_back(rate);
        self.judge(delivered);
    }

    /// Updates `doubted`. No station can deliver more than its PHY rate. If the delivery rate is
    /// higher, the driver's rate is wrong.
    fn judge(&mut self, delivered: Rate) {
        let Some(claimed) = self.median() else { return };
        if (delivered > claimed) == self.doubted {
            self.otherwise = 0;
            return;
        }
        self.otherwise += 1;
        let enough = if self.doubted { BELIEVED_AFTER } else { DOUBTED_AFTER };
        if self.otherwise >= enough {
            self.doubted = !self.doubted;
            self.otherwise = 0;
        }
    }

    fn median(&self) -> Option<Rate> {
        let mut sorted: Vec<Rate> = self.recent.iter().copied().collect();
        sorted.sort();
        sorted.get(sorted.len() / 2).copied().filter(|_| sorted.len() >= ENOUGH)
    }

    /// The PHY rate. It is `None` until enough data was sent, and while the driver's rate is
    /// ignored. It keeps its value while the station sends nothing.
    pub(crate) fn get(&self) -> Option<Rate> {
        self.median().filter(|_| !self.doubted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A link that is polled once a second.
    #[derive(Default)]
    struct Link {
        rate: LinkRate,
        packets: u32,
        access_point: u8,
    }

    impl Link {
        fn poll(&mut self, mbps: u64, packets: u32, delivered: u64) -> Option<u64> {
            self.packets += packets;
            let heard = Association {
                bssid: [self.access_point; 6],
                rate: Some(Rate::from_mbps(mbps)),
                sent_packets: Some(self.packets),
            };
            self.rate.on_poll(&heard, Rate::from_mbps(delivered));
            self.mbps()
        }

        fn mbps(&self) -> Option<u64> {
            self.rate.get().map(|rate| rate.bits_per_second() / 1_000_000)
        }

        /// A link after some seconds with data at 130 Mbit/s.
        fn busy() -> Self {
            let mut link = Self::default();
            for _ in 0..10 {
                link.poll(130, 4_000, 50);
            }
            assert_eq!(link.mbps(), Some(130));
            link
        }

        fn polls<const N: usize>(&mut self, mbps: [u64; N]) -> [Option<u64>; N] {
            mbps.map(|mbps| self.poll(mbps, 1_000, 5))
        }
    }

    #[test]
    fn rates_of_an_idle_link_change_nothing() {
        let mut link = Link::busy();
        for _ in 0..100 {
            assert_eq!(link.poll(13, 5, 0), Some(130));
            assert_eq!(link.poll(6, 0, 0), Some(130));
        }
    }

    #[test]
    fn the_rate_is_unknown_until_data_was_sent() {
        let mut link = Link::default();
        for _ in 0..10 {
            assert_eq!(link.poll(13, 20, 0), None);
        }
        assert_eq!(link.polls([130, 13, 130, 130]), [None, None, Some(130), Some(130)]);
        assert_eq!(link.poll(13, 20, 0), Some(130), "and it is kept while the link is idle");
    }

    #[test]
    fn a_slow_frame_now_and_then_changes_nothing() {
        let mut link = Link::busy();
        let all = link.polls([130, 13, 130, 130, 6, 130, 130, 13, 130, 13, 130]);
        assert_eq!(all, [Some(130); 11]);
    }

    #[test]
    fn a_lasting_change_is_followed_with_the_third_poll() {
        let mut link = Link::busy();
        assert_eq!(link.polls([13; 4]), [Some(130), Some(130), Some(13), Some(13)]);
        let mut link = Link::busy();
        link.polls([13; 5]);
        let risen = [(); 4].map(|()| link.poll(130, 4_000, 50));
        assert_eq!(risen, [Some(13), Some(13), Some(130), Some(130)]);
    }

    #[test]
    fn a_station_that_delivers_more_than_its_rate_has_none() {
        let mut link = Link::default();
        let rates = [(); 8].map(|()| link.poll(54, 20_000, 400));
        let believed = Some(54);
        assert_eq!(rates, [None, None, None, believed, believed, believed, None, None]);
        for _ in 0..100 {
            assert_eq!(link.poll(54, 3, 0), None, "an idle link proves nothing");
        }
        for _ in 1..BELIEVED_AFTER {
            assert_eq!(link.poll(54, 1_000, 5), None);
        }
        assert_eq!(link.poll(54, 1_000, 5), Some(54));
    }

    #[test]
    fn another_access_point_resets_the_rate() {
        let mut link = Link::busy();
        link.packets = 0;
        assert_eq!(link.poll(6, 3, 0), Some(130), "associated anew");
        link.access_point = 1;
        assert_eq!(link.poll(6, 1_000, 5), None);
    }

    #[test]
    fn without_a_packet_counter_the_delivery_rate_shows_data() {
        let mut rate = LinkRate::default();
        let mut poll = |mbps, delivered| {
            let heard = Association { rate: Some(Rate::from_mbps(mbps)), ..Association::default() };
            rate.on_poll(&heard, Rate::from_mbps(delivered));
            rate.get()
        };
        assert_eq!([poll(13, 0), poll(13, 0), poll(13, 0)], [None; 3]);
        let found = [poll(65, 9), poll(65, 9), poll(65, 9)];
        assert_eq!(found, [None, None, Some(Rate::from_mbps(65))]);
    }
}
