//! The content of a scenario file as typed values, with all defaults filled in.

use std::sync::Arc;

use wakeai_control::LawConfig;
use wakeai_units::{Bytes, Duration, Rate};
use wakeai_wifi::{Bss, Cell, QueueLimit, StationRadio, Wired};

/// The content of a scenario file.
#[derive(Clone, Debug, PartialEq)]
pub struct Experiment {
    /// The name of the experiment.
    pub name: String,
    /// The length of a run, including the warmup.
    pub duration: Duration,
    /// The time at the start of a run that the figures leave out.
    pub warmup: Duration,
    /// The access point or the cellular link that the stations share.
    pub access_point: AccessPoint,
    /// The leg between the access point and the server.
    pub wired: Wired,
    /// The entries of `[[bss]]`, in the order of the file. Empty where the file has none: then there is one BSS,
    /// that of [`Self::access_point`] and [`Self::wired`].
    pub bsss: Vec<BssSpec>,
    /// What is between the hosts and the air.
    pub stack: Stack,
    /// The groups of equal stations, in the order of the file.
    pub stations: Vec<StationGroup>,
    /// The entries of `[[flows]]`, in the order of the file.
    pub flows: Vec<FlowSpec>,
    /// The changes during a run, in the order of the file.
    pub events: Vec<EventSpec>,
    /// The conditions that are compared. There is at least one, and the first is the baseline.
    pub conditions: Vec<Condition>,
}

/// One end of an entry of `[[flows]]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// The host behind the wired leg.
    Server,
    /// All of these stations.
    Stations(Selector),
}

/// The protocol of a flow.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, strum::IntoStaticStr, strum::Display,
)]
#[strum(serialize_all = "lowercase")]
pub enum FlowKind {
    /// One TCP connection, or several in sequence.
    Tcp,
    /// Datagrams of 1472 bytes.
    Udp,
    /// One QUIC connection.
    Quic,
}

impl FlowKind {
    /// Whether a sender of this kind has a congestion control, repeats what is lost, and sends no more than its application
    /// has written.
    pub fn is_reliable(self) -> bool {
        self != Self::Udp
    }
}

/// The parameters of a congestion control; `None` stands for the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FlowKnobs {
    /// CUBIC's beta: the part of the window that a loss takes away, in millionths.
    pub beta_ppm: Option<u32>,
    /// The RTT at which `wakeai_rtt` grows as fast as CUBIC.
    pub rtt_ref: Option<Duration>,
    /// Whether CUBIC has its Reno-friendly region (RFC 9438 section 4.3).
    pub tcp_friendliness: Option<bool>,
}

/// The connections over which a flow's size is split, one after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chunks {
    /// This number of connections, each with an equal part.
    Count(u32),
    /// As many as the sender decides while it sends (`wakeai_control::Pieces`).
    Auto,
}

/// An entry of `[[flows]]`: one flow from each sender to each receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowSpec {
    /// The senders.
    pub from: Endpoint,
    /// The receivers.
    pub to: Endpoint,
    /// TCP, UDP or QUIC.
    pub kind: FlowKind,
    /// The amount of data of each flow; with `None` the flow sends until the end of the run.
    pub size: Option<Bytes>,
    /// The time of the start, before jitter.
    pub start: Duration,
    /// The largest random delay of the start. The delay is drawn uniformly from zero to this time.
    pub jitter: Duration,
    /// The congestion control that the file names; `None` for UDP.
    pub algorithm: Option<Arc<str>>,
    /// The parameters of the congestion control.
    pub knobs: FlowKnobs,
    /// The connections over which the size is split, one after another.
    pub chunks: Chunks,
    /// Whether the transfer waits for its turn among those of other stations (docs/concepts/turns.md).
    pub turns: bool,
    /// The rate of a UDP flow, or the target rate of a TCP sender.
    pub rate: Option<Rate>,
    /// The rate at which the application at a TCP sender produces data, from the flow's start on.
    /// With `None` it produces as much as TCP takes.
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
    /// The new delay of the wired leg in each direction.
    pub wired_delay: Option<Duration>,
    /// The new PHY rate.
    pub rate: Option<Rate>,
    /// The new share of lost frames (MPDUs), in parts per million.
    pub frame_error_ppm: Option<u32>,
}

impl Experiment {
    /// The access point of the stations of `group`.
    pub fn access_point_of(&self, group: &StationGroup) -> &AccessPoint {
        self.bsss.get(group.bss).map_or(&self.access_point, |bss| &bss.access_point)
    }

    /// The number of stations in all groups together.
    pub fn station_count(&self) -> u32 {
        self.stations.iter().map(|group| group.count).sum()
    }

    /// The group of the station at `index` in [`Expanded::stations`](crate::Expanded::stations). Panics if there is no
    /// such station.
    pub fn group_of(&self, index: usize) -> &StationGroup {
        let mut first = 0;
        let mut groups = self.stations.iter();
        let group = groups.find(|group| {
            first += group.count as usize;
            index < first
        });
        group.expect("the station is a member of a group")
    }

    /// The index of a group's first station in [`Expanded::stations`](crate::Expanded::stations).
    /// Panics if there is no such group.
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

/// A law for some stations, as in a fleet whose agents were not all updated or configured alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LawRule {
    /// The stations.
    pub stations: Selector,
    /// Their law.
    pub law: LawConfig,
}

/// An entry of `[[conditions]]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Condition {
    /// The name of the condition, which is unique in the file.
    pub name: String,
    /// The law of the agents; with `None` no agent runs.
    pub law: Option<LawConfig>,
    /// The stations that run an agent; empty means all.
    pub agents: Vec<Selector>,
    /// The stations with another law than the condition's.
    pub laws: Vec<LawRule>,
    /// The bounds of the law `fixed`, for some stations each.
    pub bounds: Vec<LawRule>,
    /// The path and the value of each key that `set` changes, as they are written in the file.
    pub set: Vec<(String, String)>,
}

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

/// An entry of `[[bss]]`: one of several access points.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BssSpec {
    /// The name, which is unique among the BSSs and the groups of stations.
    pub name: String,
    /// The channel. BSSs on one channel share its air.
    pub channel: u32,
    /// The access point.
    pub access_point: AccessPoint,
    /// The leg between the access point and the server.
    pub wired: Wired,
    /// The groups and the other BSSs that the access point hears beside its own stations; `None` for all.
    pub hears: Option<Vec<String>>,
}

/// A group of `count` equal stations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StationGroup {
    /// The name of the group, which is also the station's name if the count is 1.
    pub name: String,
    /// The number of stations: 1 to 10000.
    pub count: u32,
    /// The index of their BSS in [`Experiment::bsss`]; 0 where that is empty.
    pub bss: usize,
    /// The groups, and the BSSs (their access points), that the stations hear beside their own access point;
    /// `None` for all. Stations of the group hear each other only where the list has the group itself.
    pub hears: Option<Vec<String>>,
    /// The radio of each station; `None` on a cellular link.
    pub radio: Option<StationRadio>,
    /// The length of each host's queue, in packets of all flows together.
    pub queue: u32,
    /// The kind of the host's queue.
    pub host_queue: HostQueue,
    /// Whether the host's queueing discipline obeys departure times, as Linux's `fq`: datagrams above the rate that an agent gives
    /// them wait, and are not dropped.
    pub departure_times: bool,
    /// The share of lost frames (MPDUs), in parts per million.
    pub frame_error_ppm: u32,
    /// The delay in each direction between one of these stations and the server, in addition to
    /// [`Wired::delay`].
    pub wired_delay: Duration,
    /// The goodput that one of the stations reaches alone, if the file states it.
    pub max: Option<Rate>,
    /// The TCP at both ends of the stations' flows.
    pub tcp: TcpProfile,
    /// The most memory of the buffer of each sender of the stations' flows; `None`: that of the TCP.
    pub send_buffer: Option<u32>,
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

/// What is between the hosts and the air.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, strum::IntoStaticStr, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum Stack {
    /// A queue: [`HostQueue`].
    #[default]
    None,
    /// The 802.11 stack of Linux: association, queues, and TCP small queues that end at the radio. Each station sends at
    /// its rate of the scenario. The simulator models it as [`HostQueue::Tsq`].
    Mac80211,
    /// The same, where Linux's rate control, Minstrel, chooses the rates. The simulator's stay those of the scenario.
    #[strum(serialize = "mac80211-minstrel")]
    Minstrel,
}

impl Stack {
    /// Whether it is the 802.11 stack of Linux.
    pub fn is_linux(self) -> bool {
        self != Self::None
    }

    /// The largest buffer of an access point, in packets. The driver of the radios, `mac80211_hwsim`, frees the oldest frames of a
    /// radio at 200 that are not reported yet, and some of these are on their way to the air.
    pub const MOST_PACKETS: u32 = 180;
}

/// The queue between a host's TCP and its radio.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr, strum::Display)]
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
    /// The TCP of Linux 3.4, with its buffers.
    Linux34,
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
