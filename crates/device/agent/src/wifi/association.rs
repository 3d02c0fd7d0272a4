//! The association of the agent's interface, as of the last answer of nl80211.

use wakeai_units::{Duration as Span, Instant, Rate};
use wl_nl80211::Nl80211Message;

use super::Link;

/// The time for which an association is kept while nl80211 gives errors. A driver that scans or is reset may not
/// answer for a second or two. With a new association the agent would forget all peers.
const KEPT_OVER_ERRORS: Span = Span::from_secs(5);

/// The association of a station (802.11-2020, 11.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Association {
    /// The access point's address.
    pub(crate) bssid: [u8; 6],
    /// The PHY rate of the last frame that the station sent. The frame may be a data frame or
    /// another frame.
    pub(crate) rate: Option<Rate>,
    /// The number of packets sent since the association began, if the driver counts them.
    pub(crate) sent_packets: Option<u32>,
}

impl Association {
    /// Reads the association in nl80211's message about the access point.
    pub(super) fn of(station: &Nl80211Message) -> Option<Self> {
        let mut link = Link::default();
        link.read_station(station);
        let Link { bssid, tx, .. } = link;
        let rate = tx.rate.map(|phy| phy.rate);
        bssid.map(|bssid| Self { bssid: bssid.0, rate, sent_packets: tx.packets })
    }
}

/// The last association that nl80211 gave.
#[derive(Debug, Default)]
pub(crate) struct LastAssociation(Option<(Instant, Association)>);

impl LastAssociation {
    /// Takes an answer of nl80211. Do not call this function with an error of nl80211.
    pub(crate) fn set(&mut self, now: Instant, answer: Option<Association>) {
        self.0 = answer.map(|found| (now, found));
    }

    /// The last association. It is `None` if nl80211 has given errors for too long.
    pub(crate) fn get(&self, now: Instant) -> Option<Association> {
        let recent = self.0.filter(|(at, _)| now.saturating_since(*at) <= KEPT_OVER_ERRORS);
        recent.map(|(_, found)| found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wl_nl80211::{Nl80211Attr, Nl80211Command, Nl80211RateInfo, Nl80211StationInfo};

    fn station(attributes: Vec<Nl80211Attr>) -> Nl80211Message {
        Nl80211Message { cmd: Nl80211Command::NewStation, attributes }
    }

    #[test]
    fn the_station_of_a_managed_interface_is_its_access_point() {
        let rate = vec![Nl80211RateInfo::Bitrate(540), Nl80211RateInfo::Bitrate32(540)];
        let message = station(vec![
            Nl80211Attr::IfIndex(3),
            Nl80211Attr::Mac([2, 0, 0, 0, 0, 1]),
            Nl80211Attr::StationInfo(vec![
                Nl80211StationInfo::TxPackets(7),
                Nl80211StationInfo::TxBitrate(rate),
            ]),
        ]);
        let expected = Association {
            bssid: [2, 0, 0, 0, 0, 1],
            rate: Some(Rate::from_mbps(54)),
            sent_packets: Some(7),
        };
        assert_eq!(Association::of(&message), Some(expected));
    }

    #[test]
    fn an_association_outlives_errors_of_five_seconds() {
        let at = |ms| Instant::ZERO + Span::from_millis(ms);
        let found = Association { bssid: [2; 6], ..Association::default() };
        let mut last = LastAssociation::default();
        assert_eq!(last.get(at(0)), None);
        last.set(at(500), Some(found));
        for ms in [500, 3_000, 5_500] {
            assert_eq!(last.get(at(ms)), Some(found), "after {ms} ms");
        }
        assert_eq!(last.get(at(5_501)), None);
        last.set(at(6_000), Some(found));
        assert_eq!(last.get(at(6_000)), Some(found));
        last.set(at(6_500), None);
        assert_eq!(last.get(at(6_500)), None, "it has left");
    }

    #[test]
    fn a_message_without_address_is_no_association() {
        assert_eq!(Association::of(&station(vec![Nl80211Attr::IfIndex(3)])), None);
    }
}
