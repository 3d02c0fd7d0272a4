//! The association as nl80211 reports it: the access point's address, the last PHY rate, and the
//! packets sent.

use std::time::Duration;

use futures_util::{StreamExt as _, TryStreamExt as _};
use wakeai_units::{Duration as Span, Instant, Rate};
use wl_nl80211::{
    Nl80211Attr, Nl80211InterfaceType, Nl80211Message, Nl80211RateInfo, Nl80211StationInfo,
};

/// The longest wait for an answer. An answer takes microseconds, and a driver that hangs must not delay the start.
const PATIENCE: Duration = Duration::from_millis(200);
/// An association is kept for this long while nl80211 gives errors. A driver that scans or is reset
/// may not answer for a second or two, and a new association would forget all peers.
const KEPT_OVER_ERRORS: Span = Span::from_secs(5);

/// The association of a station (802.11-2020, 11.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Association {
    /// The access point's address.
    pub(crate) bssid: [u8; 6],
    /// The PHY rate of the last frame that was sent, data or not.
    pub(crate) rate: Option<Rate>,
    /// Packets sent since the association began, where the driver counts them.
    pub(crate) sent_packets: Option<u32>,
}

/// nl80211 could not be asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WifiError {
    /// The kernel has no nl80211, or the interface is not a Wi-Fi interface.
    #[error("{0}")]
    NotWifi(String),
    /// The interface is no client of an access point.
    #[error(
        "the interface is of type {0}, not a station; to use it all the same, state bssid and link_rate \
         in the configuration"
    )]
    NotStation(String),
    /// The driver does not list the access point, although the interface has joined a network.
    #[error(
        "the interface has joined a network, but its driver does not name the access point; if this lasts, \
         state bssid in the configuration"
    )]
    Unlisted,
    /// No answer in time.
    #[error("nl80211 did not answer within {} ms", PATIENCE.as_millis())]
    Slow,
}

/// A netlink socket that stays open while the agent runs.
pub(crate) struct Wifi {
    handle: wl_nl80211::Nl80211Handle,
    connection: tokio::task::JoinHandle<()>,
}

impl Drop for Wifi {
    fn drop(&mut self) {
        self.connection.abort();
    }
}

impl Wifi {
    /// Opens the netlink socket, in the network namespace of the calling thread.
    pub(crate) fn open() -> std::io::Result<Self> {
        let (connection, handle, _) = wl_nl80211::new_connection()?;
        Ok(Self { handle, connection: tokio::spawn(connection) })
    }

    /// The association of an interface; `None` while it is not associated.
    pub(crate) async fn association(&self, index: u32) -> Result<Option<Association>, WifiError> {
        let found = async {
            // This comes before the dump. The kernel reports a dump's error in the last message of
            // the dump, and this netlink library does not show that message.
            let joined = self.joined_network(index).await?;
            let mut handle = self.handle.clone().station();
            let stations = handle.dump(index).execute().await;
            // In managed mode the first station is the access point. Any TDLS peers come after it.
            let mut stations = std::pin::pin!(stations.into_stream());
            match stations.next().await.transpose().map_err(not_wifi)? {
                Some(message) => Ok(association(&message.payload)),
                None if joined => Err(WifiError::Unlisted),
                None => Ok(None),
            }
        };
        tokio::time::timeout(PATIENCE, found).await.unwrap_or(Err(WifiError::Slow))
    }

    /// Whether the interface with this index has joined a network; see [`joined`].
    async fn joined_network(&self, index: u32) -> Result<bool, WifiError> {
        let asked = self.handle.interface().get(vec![Nl80211Attr::IfIndex(index)]).execute().await;
        let mut answers = std::pin::pin!(asked.into_stream());
        let interface = answers.next().await.transpose().map_err(not_wifi)?;
        let interface = interface.ok_or_else(|| not_wifi("no answer about the interface"))?;
        joined(&interface.payload)
    }
}

fn not_wifi(reason: impl std::fmt::Display) -> WifiError {
    WifiError::NotWifi(reason.to_string())
}

/// Whether this interface has an SSID. It is an error where the interface is not a station.
fn joined(interface: &Nl80211Message) -> Result<bool, WifiError> {
    let kind = interface.attributes.iter().find_map(|attribute| match attribute {
        Nl80211Attr::IfType(kind) => Some(*kind),
        _ => None,
    });
    match kind {
        Some(Nl80211InterfaceType::Station | Nl80211InterfaceType::P2pClient) => {}
        Some(other) => return Err(WifiError::NotStation(format!("{other:?}"))),
        None => return Err(not_wifi("the kernel does not give the interface's type")),
    }
    Ok(interface.attributes.iter().any(|attribute| matches!(attribute, Nl80211Attr::Ssid(_))))
}

/// The last association that nl80211 gave.
#[derive(Debug, Default)]
pub(crate) struct LastAssociation(Option<(Instant, Association)>);

impl LastAssociation {
    /// Takes an answer of nl80211. It must not be called where nl80211 gave an error.
    pub(crate) fn set(&mut self, now: Instant, answer: Option<Association>) {
        self.0 = answer.map(|found| (now, found));
    }

    /// The association, unless nl80211 has given errors for too long.
    pub(crate) fn get(&self, now: Instant) -> Option<Association> {
        let recent = self.0.filter(|(at, _)| now.saturating_since(*at) <= KEPT_OVER_ERRORS);
        recent.map(|(_, found)| found)
    }
}

fn association(station: &Nl80211Message) -> Option<Association> {
    let (mut bssid, mut rate, mut sent_packets) = (None, None, None);
    for attribute in &station.attributes {
        match attribute {
            Nl80211Attr::Mac(address) => bssid = Some(*address),
            Nl80211Attr::StationInfo(all) => {
                for info in all {
                    match info {
                        Nl80211StationInfo::TxBitrate(found) => rate = bit_rate(found),
                        Nl80211StationInfo::TxPackets(packets) => sent_packets = Some(*packets),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    bssid.map(|bssid| Association { bssid, rate, sent_packets })
}

/// The rate in nl80211's fields, which are in units of 100 kbit/s. The 16-bit field is absent where
/// the rate does not fit.
fn bit_rate(rate: &[Nl80211RateInfo]) -> Option<Rate> {
    let units = rate.iter().filter_map(|info| match info {
        Nl80211RateInfo::Bitrate32(units) => Some(u64::from(*units)),
        Nl80211RateInfo::Bitrate(units) => Some(u64::from(*units)),
        _ => None,
    });
    units.max().filter(|units| *units > 0).map(|units| Rate::from_bps(units * 100_000))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wl_nl80211::Nl80211Command;

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
        assert_eq!(association(&message), Some(expected));
    }

    #[test]
    fn a_rate_above_16_bits_is_read_and_zero_is_unknown() {
        assert_eq!(
            bit_rate(&[Nl80211RateInfo::Bitrate32(96_078)]),
            Some(Rate::from_bps(9_607_800_000))
        );
        assert_eq!(bit_rate(&[Nl80211RateInfo::Bitrate(0)]), None);
        assert_eq!(bit_rate(&[]), None);
    }

    #[test]
    fn only_a_client_of_an_access_point_is_a_station() {
        let interface =
            |attributes| Nl80211Message { cmd: Nl80211Command::NewInterface, attributes };
        let of = |kind, ssid: Option<&str>| {
            let ssid = ssid.map(|name| Nl80211Attr::Ssid(name.to_owned()));
            joined(&interface([Nl80211Attr::IfType(kind)].into_iter().chain(ssid).collect()))
        };
        assert!(of(Nl80211InterfaceType::Station, Some("school")).unwrap());
        assert!(!of(Nl80211InterfaceType::P2pClient, None).unwrap());
        for kind in [Nl80211InterfaceType::Ap, Nl80211InterfaceType::Monitor] {
            assert!(matches!(of(kind, Some("school")), Err(WifiError::NotStation(_))));
        }
        assert!(matches!(joined(&interface(Vec::new())), Err(WifiError::NotWifi(_))));
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
        assert_eq!(association(&station(vec![Nl80211Attr::IfIndex(3)])), None);
    }
}
