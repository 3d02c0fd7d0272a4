//! The content of a scenario file as typed values, with all defaults filled in.

use std::sync::Arc;

use wakeai_control::LawConfig;
use wakeai_units::{Bytes, Duration, Rate};
use wakeai_wifi::Wired;

use crate::stations::{AccessPoint, Selector, StationGroup};

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
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum FlowKind {
    /// One TCP connection, or several in sequence.
    Tcp,
    /// Datagrams of 1472 bytes.
    Udp,
}

impl FlowKind {
    /// The name in a scenario file and in a result.
    pub fn name(self) -> &'static str {
        self.into()
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
    /// TCP or UDP.
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
    /// The number of stations in all groups together.
    pub fn station_count(&self) -> u32 {
        self.stations.iter().map(|group| group.count).sum()
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
#[derive(Clone, Debug, PartialEq, Eq)]
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

impl Condition {
    /// A condition without a law.
    pub(crate) fn plain(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            law: None,
            agents: Vec::new(),
            laws: Vec::new(),
            bounds: Vec::new(),
            set: Vec::new(),
        }
    }
}
