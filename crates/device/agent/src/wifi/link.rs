//! The values that a driver reports about a station and its access point.

#[cfg(test)]
mod tests;

use serde::{Serialize, Serializer};
use wakeai_api::config::Bssid;
use wakeai_units::Rate;
use wl_nl80211::{Nl80211Attr, Nl80211ChannelWidth, Nl80211Message, Nl80211StationInfo};

use super::phy::{PhyRate, megabits};
use super::survey::Survey;

/// A station's link to its access point at one moment. A value that the driver does not report is `None`. Counters
/// start at 0 when the station associates.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Link {
    /// The interface's name.
    pub interface: String,
    /// The network's name. Octets that are not UTF-8 are replaced.
    pub ssid: Option<String>,
    /// The access point's address.
    #[serde(serialize_with = "text")]
    pub bssid: Option<Bssid>,
    /// The centre of the primary channel.
    pub frequency_mhz: Option<u32>,
    /// The width of the whole channel.
    pub width_mhz: Option<u32>,
    /// The signal strength of the last frame.
    pub signal_dbm: Option<i8>,
    /// The average signal strength.
    pub signal_average_dbm: Option<i8>,
    /// Frames to the access point.
    pub tx: Traffic,
    /// Frames from the access point.
    pub rx: Traffic,
    /// The number of retransmissions.
    pub retries: Option<u32>,
    /// Packets that were never acknowledged.
    pub failed: Option<u32>,
    /// The throughput that the rate control expects.
    #[serde(rename = "expected_mbps", serialize_with = "optional_megabits")]
    pub expected: Option<Rate>,
    /// The number of beacon losses. A beacon loss means that too many consecutive beacons were
    /// missed.
    pub beacon_losses: Option<u32>,
    /// The time since the association.
    pub connected_s: Option<u32>,
    /// The time since the last frame.
    pub inactive_ms: Option<u32>,
    /// The channel.
    pub channel: Survey,
}

/// The frames of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Traffic {
    /// The PHY rate of the last frame. The frame may be a data frame or another frame.
    pub rate: Option<PhyRate>,
    /// The number of packets.
    pub packets: Option<u32>,
    /// The number of bytes, including the 802.11 headers.
    pub bytes: Option<u64>,
    /// The airtime of the frames.
    pub airtime_us: Option<u64>,
}

#[expect(clippy::ref_option, reason = "the signature that serde calls")]
#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn text<S: Serializer>(bssid: &Option<Bssid>, to: S) -> Result<S::Ok, S::Error> {
    bssid.map(|bssid| bssid.to_string()).serialize(to)
}

#[expect(clippy::ref_option, reason = "the signature that serde calls")]
fn optional_megabits<S: Serializer>(rate: &Option<Rate>, to: S) -> Result<S::Ok, S::Error> {
    match rate {
        Some(rate) => megabits(rate, to),
        None => to.serialize_none(),
    }
}

impl Link {
    /// Reads nl80211's answers about the interface, its access point and the channels of its radio. `station` is
    /// `None` if the driver does not list the access point.
    pub(super) fn read(
        interface: &Nl80211Message,
        station: Option<&Nl80211Message>,
        channels: &[Nl80211Message],
    ) -> Self {
        let mut link = Self::default();
        link.read_interface(interface);
        if let Some(station) = station {
            link.read_station(station);
        }
        link.channel = Survey::of(channels, link.frequency_mhz);
        link
    }

    fn read_interface(&mut self, interface: &Nl80211Message) {
        for attribute in &interface.attributes {
            match attribute {
                Nl80211Attr::IfName(name) => self.interface.clone_from(name),
                Nl80211Attr::SsidRaw(octets) => {
                    self.ssid = Some(String::from_utf8_lossy(octets).into_owned());
                }
                Nl80211Attr::WiphyFreq(mhz) => self.frequency_mhz = Some(*mhz),
                Nl80211Attr::ChannelWidth(width) => self.width_mhz = megahertz(*width),
                _ => {}
            }
        }
    }

    pub(super) fn read_station(&mut self, station: &Nl80211Message) {
        for attribute in &station.attributes {
            match attribute {
                Nl80211Attr::Mac(address) => self.bssid = Some(Bssid(*address)),
                Nl80211Attr::StationInfo(fields) => {
                    for field in fields {
                        self.read_field(field);
                    }
                }
                _ => {}
            }
        }
        for traffic in [&mut self.tx, &mut self.rx] {
            // mac80211 reports zero if the driver does not count airtime.
            let is_told = |us: &u64| *us > 0 || traffic.packets == Some(0);
            traffic.airtime_us = traffic.airtime_us.filter(is_told);
        }
    }

    fn read_field(&mut self, field: &Nl80211StationInfo) {
        use Nl80211StationInfo as Info;
        let Self { tx, rx, .. } = self;
        // The kernel reports each byte counter twice, with 32 bits and with 64 bits. The 64-bit
        // value is used.
        let wider = |known: Option<u64>, bytes: u32| known.or(Some(u64::from(bytes)));
        match field {
            Info::Signal(dbm) => self.signal_dbm = Some(*dbm),
            Info::SignalAvg(dbm) => self.signal_average_dbm = Some(*dbm),
            Info::TxBitrate(fields) => tx.rate = PhyRate::of(fields),
            Info::RxBitrate(fields) => rx.rate = PhyRate::of(fields),
            Info::TxPackets(packets) => tx.packets = Some(*packets),
            Info::RxPackets(packets) => rx.packets = Some(*packets),
            Info::TxBytes64(bytes) => tx.bytes = Some(*bytes),
            Info::RxBytes64(bytes) => rx.bytes = Some(*bytes),
            Info::TxBytes(bytes) => tx.bytes = wider(tx.bytes, *bytes),
            Info::RxBytes(bytes) => rx.bytes = wider(rx.bytes, *bytes),
            Info::TxDuration(us) => tx.airtime_us = Some(*us),
            Info::RxDuration(us) => rx.airtime_us = Some(*us),
            Info::TxRetries(retries) => self.retries = Some(*retries),
            Info::TxFailed(failed) => self.failed = Some(*failed),
            Info::ExpectedThroughput(kbps) => {
                self.expected = Some(Rate::from_bps(u64::from(*kbps) * 1_000));
            }
            Info::BeaconLoss(losses) => self.beacon_losses = Some(*losses),
            Info::ConnectedTime(seconds) => self.connected_s = Some(*seconds),
            Info::InactiveTime(ms) => self.inactive_ms = Some(*ms),
            _ => {}
        }
    }

    /// The names of the values that the driver does not report.
    pub fn not_told(&self) -> Vec<&'static str> {
        let Self { tx, rx, channel, .. } = self;
        let all = [
            ("SSID", self.ssid.is_some()),
            ("BSSID", self.bssid.is_some()),
            ("frequency", self.frequency_mhz.is_some()),
            ("channel width", self.width_mhz.is_some()),
            ("signal", self.signal_dbm.is_some()),
            ("average signal", self.signal_average_dbm.is_some()),
            ("TX bitrate", tx.rate.is_some()),
            ("RX bitrate", rx.rate.is_some()),
            ("expected throughput", self.expected.is_some()),
            ("TX packets", tx.packets.is_some()),
            ("RX packets", rx.packets.is_some()),
            ("TX bytes", tx.bytes.is_some()),
            ("RX bytes", rx.bytes.is_some()),
            ("retries", self.retries.is_some()),
            ("failed packets", self.failed.is_some()),
            ("beacon losses", self.beacon_losses.is_some()),
            ("TX airtime", tx.airtime_us.is_some()),
            ("RX airtime", rx.airtime_us.is_some()),
            ("connected time", self.connected_s.is_some()),
            ("inactive time", self.inactive_ms.is_some()),
            ("noise", channel.noise_dbm.is_some()),
            ("active time of the channel", channel.active_ms.is_some()),
            ("busy time of the channel", channel.busy_ms.is_some()),
            ("RX time of the channel", channel.rx_ms.is_some()),
            ("TX time of the channel", channel.tx_ms.is_some()),
        ];
        all.into_iter().filter(|(_, is_told)| !is_told).map(|(name, _)| name).collect()
    }
}

fn megahertz(width: Nl80211ChannelWidth) -> Option<u32> {
    match width {
        Nl80211ChannelWidth::NoHt20 => Some(20),
        Nl80211ChannelWidth::Mhz80Plus80 => Some(160),
        Nl80211ChannelWidth::Mhz(width) => Some(width),
        Nl80211ChannelWidth::Other(_) => None,
    }
}
