//! What a scenario file says, typed and with every default in place.

use std::sync::Arc;

use wakeai_units::{Bytes, Duration, Rate};
use wakeai_wifi::{StationRadio, Wired};

use crate::condition::Condition;
use crate::radio::AccessPoint;

/// The content of a scenario file.
#[derive(Clone, Debug, PartialEq)]
pub struct Experiment {
    /// What the experiment is called.
    pub name: String,
    /// How long a run lasts, warmup included.
    pub duration: Duration,
    /// What is left out of the figures, from the start.
    pub warmup: Duration,
    /// What the stations share.
    pub access_point: AccessPoint,
    /// The leg between the access point and the server.
    pub wired: Wired,
    /// The groups of equal stations, in the order of the file.
    pub stations: Vec<StationGroup>,
    /// The entries of `[[flows]]`, in the order of the file.
    pub flows: Vec<FlowSpec>,
    /// What changes in mid-run, in the order of the file.
    pub events: Vec<EventSpec>,
    /// What is compared; the first is the baseline. Never empty.
    pub conditions: Vec<Condition>,
}

/// A group of `count` equal stations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StationGroup {
    /// The group's name, and with a count of 1 the station's.
    pub name: String,
    /// How many: 1 to 10000.
    pub count: u32,
    /// The radio of each; `None` on a cellular link.
    pub radio: Option<StationRadio>,
    /// The queue of each host, in packets; those of all flows together.
    pub queue: u32,
    /// What kind of queue that is.
    pub host_queue: HostQueue,
    /// Lost MPDUs per million.
    pub frame_error_ppm: u32,
    /// Delay each way on top of [`Wired::delay`], to this station's server.
    pub wired_delay: Duration,
    /// The goodput that one of them reaches alone, where the file states it.
    pub max: Option<Rate>,
    /// The TCP at both ends of its flows.
    pub tcp: TcpProfile,
    /// Whether its senders are behind a proxy on it (the TCP-AV paper, figure 16), which carries their flows over
    /// the air.
    pub proxy: bool,
    /// What its agent says of itself instead of the truth.
    pub announces: Announces,
}

/// What an agent tells its peers whatever is true, so that faulty and lying members can be studied; what
/// is `None` is the truth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Announces {
    /// Whether it is sending.
    pub sending: Option<bool>,
    /// What it delivers now.
    pub rate: Option<Rate>,
    /// The goodput that it reaches alone.
    pub max_rate: Option<Told>,
    /// Its PHY rate.
    pub link_rate: Option<Told>,
    /// Its minimum RTT.
    pub min_rtt: Option<Duration>,
    /// How far its RTT is above that.
    pub growth: Option<Duration>,
    /// The part of the air, in millionths, that it asks to be left free and claims in full, before
    /// all other requests.
    pub reservation: Option<u32>,
}

impl Announces {
    /// Whether all is true.
    pub fn is_truth(&self) -> bool {
        *self == Self::default()
    }

    /// The keys that say something else than the truth.
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

/// What is said of a rate that need not be known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// It is not known.
    Unknown,
    /// It is this.
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
    /// A FIFO with TCP small queues: the sender is held back.
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

    /// Packets that it holds where the file does not say.
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
    /// Each of these stations.
    Stations(Selector),
}

/// What a flow is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FlowKind {
    /// A TCP connection, or several after one another.
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

/// What can be turned on a congestion control; what is `None` is as it comes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FlowKnobs {
    /// CUBIC's beta: what a loss takes of the window, in millionths.
    pub beta_ppm: Option<u32>,
    /// The RTT at which `wakeai_rtt` is as fast as CUBIC.
    pub rtt_ref: Option<Duration>,
    /// Whether CUBIC has its Reno-friendly region (RFC 9438 section 4.3).
    pub tcp_friendliness: Option<bool>,
}

/// An entry of `[[flows]]`: one flow from each sender to each receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowSpec {
    /// Who sends.
    pub from: Endpoint,
    /// Who receives.
    pub to: Endpoint,
    /// What it is made of.
    pub kind: FlowKind,
    /// How much; without it as much as fits until the end.
    pub size: Option<Bytes>,
    /// When it starts, before jitter.
    pub start: Duration,
    /// The spread of the start: uniform in zero to this, drawn from the seed.
    pub jitter: Duration,
    /// The congestion control that is asked for; `None` for UDP.
    pub algorithm: Option<Arc<str>>,
    /// What is turned on it.
    pub knobs: FlowKnobs,
    /// Connections that the size is split over, one after another.
    pub chunks: u32,
    /// What UDP sends, or a TCP sender's target.
    pub rate: Option<Rate>,
    /// What the application at a TCP sender offers at most, from the start on; without it as much as
    /// TCP takes.
    pub limit: Option<Rate>,
    /// Whether the peers are asked to leave `rate` free.
    pub reserve: bool,
}

/// An entry of `[[events]]`: what changes in mid-run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventSpec {
    /// When, from the start of the run.
    pub at: Duration,
    /// At which stations.
    pub stations: Selector,
    /// The new delay each way.
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
