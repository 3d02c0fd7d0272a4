//! The access point or cell that the stations share, and the groups of stations.

use wakeai_units::{Duration, Rate};
use wakeai_wifi::{Bss, Cell, QueueLimit, StationRadio};

/// The medium that carries the packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// An 802.11 BSS.
    Wifi(Bss),
    /// A cellular link.
    Cellular(Cell),
}

/// The access point of a BSS, or a cellular base station.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessPoint {
    /// The limit of the buffer towards the stations. On Wi-Fi all stations share the buffer; on a
    /// cellular link each has its own.
    pub buffer: QueueLimit,
    /// The medium that carries the packets.
    pub medium: Medium,
}

impl AccessPoint {
    /// The BSS, unless this is a cellular base station.
    pub fn wifi(&self) -> Option<&Bss> {
        match &self.medium {
            Medium::Wifi(bss) => Some(bss),
            Medium::Cellular(_) => None,
        }
    }
}

/// A group of `count` equal stations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StationGroup {
    /// The name of the group, which is also the station's name if the count is 1.
    pub name: String,
    /// The number of stations: 1 to 10000.
    pub count: u32,
    /// The radio of each station; `None` on a cellular link.
    pub radio: Option<StationRadio>,
    /// The length of each host's queue, in packets of all flows together.
    pub queue: u32,
    /// The kind of the host's queue.
    pub host_queue: HostQueue,
    /// The share of lost frames (MPDUs), in parts per million.
    pub frame_error_ppm: u32,
    /// The delay in each direction between one of these stations and the server, in addition to
    /// [`Wired::delay`].
    pub wired_delay: Duration,
    /// The goodput that one of the stations reaches alone, if the file states it.
    pub max: Option<Rate>,
    /// The TCP at both ends of the stations' flows.
    pub tcp: TcpProfile,
    /// Whether the station's senders are behind a proxy on the station, which carries their flows
    /// over the air (TCP-AV paper, figure 16).
    pub proxy: bool,
    /// The values that a station's agent announces instead of the true values.
    pub announces: Announces,
}

/// The values that an agent announces instead of the true values, to study faulty and lying members
/// of a fleet. For a value that is `None` the agent announces the truth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Announces {
    /// Whether the station is sending.
    pub sending: Option<bool>,
    /// The rate that the station delivers now.
    pub rate: Option<Rate>,
    /// The goodput that the station reaches alone.
    pub max_rate: Option<AnnouncedRate>,
    /// The PHY rate.
    pub link_rate: Option<AnnouncedRate>,
    /// The minimum RTT.
    pub min_rtt: Option<Duration>,
    /// The queueing delay: the RTT minus the minimum.
    pub growth: Option<Duration>,
    /// The share of airtime, in millionths, that the station asks its peers to leave free. The
    /// message says that the station uses all of it, and that it asked before all others.
    pub reservation: Option<u32>,
}

impl Announces {
    /// Whether all values are announced truly.
    pub fn is_truth(&self) -> bool {
        *self == Self::default()
    }

    /// The keys of the values that are replaced.
    pub fn keys(&self) -> Vec<&'static str> {
        let keys = [
            ("sending", self.sending.is_some()),
            ("rate", self.rate.is_some()),
            ("max_rate", self.max_rate.is_some()),
            ("link_rate", self.link_rate.is_some()),
            ("min_rtt", self.min_rtt.is_some()),
            ("growth", self.growth.is_some()),
            ("reservation", self.reservation.is_some()),
        ];
        keys.into_iter().filter(|(_, is_set)| *is_set).map(|(key, _)| key).collect()
    }
}

/// The announcement of a rate, which an agent may announce as unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnnouncedRate {
    /// The rate is not known.
    Unknown,
    /// The rate.
    Rate(Rate),
}

impl StationGroup {
    /// The name of the group's station number `number`, from 1.
    pub fn station_name(&self, number: u32) -> String {
        if self.count == 1 { self.name.clone() } else { format!("{}{number}", self.name) }
    }
}

/// The queue between a host's TCP and its radio.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum HostQueue {
    /// A plain FIFO. TCP takes its overflow for local congestion.
    Fifo,
    /// A FIFO with TCP small queues, which limit the bytes that a sender has in it.
    Tsq,
    /// The queue of mac80211: TCP small queues, and FQ-CoDel (RFC 8290), whose drops are not
    /// reported to TCP.
    Mac80211,
}

impl HostQueue {
    /// The name in a scenario file.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The number of packets that the queue holds by default.
    pub const fn default_packets(self) -> u32 {
        match self {
            Self::Fifo | Self::Tsq => 1_000,
            Self::Mac80211 => 8_192,
        }
    }
}

/// The behaviour of the simulator's TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpProfile {
    /// The TCP of today's Linux.
    Linux,
    /// A TCP without RACK-TLP, TCP small queues and local congestion, with buffers of 4 MB.
    Classic,
}

/// Some stations: a whole group or one of its members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Selector {
    /// The index of the group in [`Experiment::stations`].
    pub group: usize,
    /// The member's number, from 1; `None` selects all members.
    pub number: Option<u32>,
}
