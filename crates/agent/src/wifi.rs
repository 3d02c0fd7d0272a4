//! The association by nl80211: the access point's address, the last PHY rate, packets sent.

use std::time::Duration;

use futures_util::{StreamExt as _, TryStreamExt as _};
use wakeai_units::Rate;
use wl_nl80211::{Nl80211Attr, Nl80211Message, Nl80211RateInfo, Nl80211StationInfo};

/// The longest wait for an answer. It takes microseconds, and a driver that hangs must not delay the tick.
const PATIENCE: Duration = Duration::from_millis(200);

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
    /// The kernel has no nl80211, or the interface is not a Wi-Fi one.
    #[error("{0}")]
    NotWifi(String),
    /// No answer in time.
    #[error("nl80211 did not answer within {} ms", PATIENCE.as_millis())]
    Slow,
}

/// A netlink socket that stays open while the agent runs.
pub(crate) struct Wifi {
    handle: wl_nl80211::Nl80211Handle,
    connection: tokio::task::JoinHandle<()>,
}

impl std::fmt::Debug for Wifi {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Wifi")
    }
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
        let dump = async {
            let mut handle = self.handle.clone().station();
            let stations = handle.dump(index).execute().await;
            // In managed mode the only station is the access point (TDLS peers come after it).
            let mut stations = std::pin::pin!(stations.into_stream());
            stations.next().await.transpose()
        };
        match tokio::time::timeout(PATIENCE, dump).await {
            Err(_) => Err(WifiError::Slow),
            Ok(Err(error)) => Err(WifiError::NotWifi(error.to_string())),
            Ok(Ok(station)) => Ok(station.and_then(|message| association(&message.payload))),
        }
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

/// A rate in units of 100 kbit/s. The field of 16 bits is absent where the rate does not fit.
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
    fn a_message_without_address_is_no_association() {
        assert_eq!(association(&station(vec![Nl80211Attr::IfIndex(3)])), None);
    }
}
