//! The content of a scenario file, typed and with all defaults.

use std::sync::Arc;

use wakeai_units::{Bytes, Duration, Rate};
use wakeai_wifi::{StationRadio, Wired};

use crate::condition::Condition;
use crate::radio::AccessPoint;

/// The content of a scenario file.
#[derive(Clone, Debug, PartialEq)]
pub struct Experiment {
    /// The name of the experiment.
    pub name: String,
    /// The length of a run, warmup included.
    pub duration: Duration,
    /// The time from the start that the figures leave out.
    pub warmup: Duration,
    /// The access point or the cellular link that the stations share.
    pub access_point: AccessPoint,
    /// The leg between the access point and the server.
    pub wired: Wired,
    /// The groups of equal stations, in the order of the file.
    pub stations: Vec<StationGroup>,
    /// The entries of `[[flows]]`, in the order of the file.
    pub flows: Vec<FlowSpec>,
    /// The changes during a run, in the order of the file.
    pub events: Vec<EventSpec>,
    /// The conditions that are compared; the first is the baseline. Never empty.
    pub conditions: Vec<Condition>,
}

/// A group of `count` equal stations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StationGroup {
    /// The group's name, and with a count of 1 the station's.
    pub name: String,
    /// The number of stations: 1 to 10000.
    pub count: u32,
    /// The radio of each; `None` on a cellular link.
    pub radio: Option<StationRadio>,
    /// The queue of each host, in packets of all flows together.
    pub queue: u32,
    /// The kind of that queue.
    pub host_queue: HostQueue,
    /// Lost MPDUs per million.
    pub frame_error_ppm: u32,
    /// The delay in each direction, in addition to [`Wired::delay`], to this station's server.
    pub wired_delay: Duration,
    /// The goodput that one of them reaches alone, where the file states it.
    pub max: Option<Rate>,
    /// The TCP at both ends of its flows.
    pub tcp: TcpProfile,
    /// Whether its senders are behind a proxy on it (the TCP-AV paper, figure 16), which carries their flows over
    /// the air.
    pub proxy: bool,
    /// The values that its agent announces instead of the true ones.
    pub announces: Announces,
}

/// The values that an agent announces instead of the true ones, to study faulty and lying members; a value
/// of `None` is announced truly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Announces {
    /// Whether it is sending.
    pub sending: Option<bool>,
    /// The rate that it delivers now.
    pub rate: Option<Rate>,
    /// The goodput that it reaches alone.
    pub max_rate: Option<Told>,
    /// Its PHY rate.
    pub link_rate: Option<Told>,
    /// Its minimum RTT.
    pub min_rtt: Option<Duration>,
    /// Its queueing delay: the RTT minus the minimum.
    pub growth: Option<Duration>,
    /// The share of airtime, in millionths, that it asks to be left free and claims in full, before
    /// all other requests.
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

/// The announcement of a rate that an agent may not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostQueue {
    /// A plain FIFO; an overflow is local congestion.
    Fifo,
    /// A FIFO with TCP small queues, which limit the bytes of a sender in it.
    Tsq,
    /// The queue of mac80211: TCP small queues, and FQ-CoDel (RFC 8290), whose drops TCP is not told of.
    Mac80211,
}

impl HostQueue {
    /// The name in a scenario file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fifo => "fifo",
            Self::Tsq => "tsq",
            Self::Mac80211 => "mac80211",
        }
    }

    /// The packets that it holds by default.
    pub const fn default_packets(self) -> u32 {
        match self {
            Self::Fifo | Self::Tsq => 1_000,
            Self::Mac80211 => 8_192,
        }
    }
}

/// How the simulator's TCP behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpProfile {
    /// As Linux does today.
    Linux,
    /// Without RACK-TLP, TSQ and local congestion; 4 MB buffers.
    Classic,
}

/// Some stations: a whole group or one of its members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Selector {
    /// Index into [`Experiment::stations`].
    pub group: usize,
    /// The member, from 1; all of them without.
    pub number: Option<u32>,
}

/// One end of an entry of `[[flows]]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// The host behind the wired leg.
    Server,
    /// All of these stations.
    Stations(Selector),
}

/// What a flow is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FlowKind {
    /// One TCP connection, or several in sequence.
    Tcp,
    /// Datagrams of 1472 bytes.
    Udp,
}

impl FlowKind {
    /// The name in a scenario file and in a result.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
        }
    }
}

/// The parameters of a congestion control; `None` is the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FlowKnobs {
    /// CUBIC's beta: the part by which a loss reduces the window, in millionths.
    pub beta_ppm: Option<u32>,
    /// The RTT at which `wakeai_rtt` is as fast as CUBIC.
    pub rtt_ref: Option<Duration>,
    /// Whether CUBIC has its Reno-friendly region (RFC 9438 section 4.3).
    pub tcp_friendliness: Option<bool>,
}

/// An entry of `[[flows]]`: one flow from each sender to each receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowSpec {
    /// The senders.
    pub from: Endpoint,
    /// The receivers.
    pub to: Endpoint,
    /// What it is made of.
    pub kind: FlowKind,
    /// The amount of data of each flow; `None`: it sends until the end of the run.
    pub size: Option<Bytes>,
    /// The time of the start, before jitter.
    pub start: Duration,
    /// The spread of the start: uniform in zero to this, drawn from the seed.
    pub jitter: Duration,
    /// The congestion control that the file names; `None` for UDP.
    pub algorithm: Option<Arc<str>>,
    /// The parameters of its congestion control.
    pub knobs: FlowKnobs,
    /// Connections that the size is split over, one after another.
    pub chunks: u32,
    /// The rate of UDP, or the target rate of a TCP sender.
    pub rate: Option<Rate>,
    /// The most that the application at a TCP sender produces, from the start on; `None`: as much as
    /// TCP takes.
    pub limit: Option<Rate>,
    /// Whether the peers are asked to leave `rate` free.
    pub reserve: bool,
}

/// An entry of `[[events]]`: a change during the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventSpec {
    /// The time from the start of the run.
    pub at: Duration,
    /// The stations that change.
    pub stations: Selector,
    /// The new delay in each direction.
    pub wired_delay: Option<Duration>,
    /// The new PHY rate.
    pub rate: Option<Rate>,
    /// The new loss of MPDUs per million.
    pub frame_error_ppm: Option<u32>,
}

impl Experiment {
    /// How many stations there are in all groups together.
    pub fn station_count(&self) -> u32 {
        self.stations.iter().map(|group| group.count).sum()
    }

    /// The station's index in [`Expanded::stations`](crate::Expanded::stations) of a group's first
    /// member. Panics where there is no such group.
    pub fn first_of(&self, group: usize) -> usize {
        self.stations[..group].iter().map(|group| group.count as usize).sum()
    }

    /// The indices in [`Expanded::stations`](crate::Expanded::stations) that `selector` selects.
    pub fn select(&self, selector: Selector) -> std::ops::Range<usize> {
        let first = self.first_of(selector.group);
        match selector.number {
            Some(number) => first + number as usize - 1..first + number as usize,
            None => first..first + self.stations[selector.group].count as usize,
        }
    }
}
