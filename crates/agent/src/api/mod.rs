//! The local API: one JSON object per line and direction, over a Unix socket.
//!
//! A request is `{"version":1,"request":"status"}`. The answer repeats the version and has one
//! more key: the request's name, or `error`. `docs/reference/agent.md` lists every field.

mod access;
mod client;
mod server;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use client::{AskError, ask};
pub(crate) use server::{Limits, Refusals, Server};

/// The version of requests and answers. Fields may be added under the same number.
pub const VERSION: u32 = 1;

/// What may be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Request {
    /// What the agent does and how its station fares.
    Status,
    /// The stations that it hears.
    Peers,
    /// The bounds in force, and why.
    Bounds,
    /// What the law aims at.
    Targets,
    /// Every counter.
    Metrics,
}

impl Request {
    /// All of them, by name.
    pub const NAMES: [&'static str; 5] = ["status", "peers", "bounds", "targets", "metrics"];
}

/// A line to the agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Question {
    /// [`VERSION`].
    pub version: u32,
    /// What is asked.
    pub request: String,
}

/// A line from the agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Answer {
    /// [`VERSION`].
    pub version: u32,
    /// The content.
    #[serde(flatten)]
    pub body: Body,
}

/// What an answer holds, under the name of what was asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Body {
    /// To [`Request::Status`].
    Status(Box<Status>),
    /// To [`Request::Peers`].
    Peers(Vec<Peer>),
    /// To [`Request::Bounds`].
    Bounds(BoundsReport),
    /// To [`Request::Targets`].
    Targets(Targets),
    /// To [`Request::Metrics`].
    Metrics(BTreeMap<String, u64>),
    /// The request was refused: what was found and what is allowed.
    Error(String),
}

/// What the agent is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// The interface is gone or down.
    WaitingForInterface,
    /// The interface is associated with no access point.
    WaitingForAccessPoint,
    /// Connections cannot be read; no bound binds.
    Blind,
    /// All is well.
    Controlling,
}

impl State {
    /// For people.
    pub fn words(self) -> &'static str {
        match self {
            Self::WaitingForInterface => "waiting for the interface",
            Self::WaitingForAccessPoint => "waiting for an access point",
            Self::Blind => "blind: connections cannot be read",
            Self::Controlling => "controlling",
        }
    }
}

/// What the agent does and how its station fares.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// What it is doing.
    pub state: State,
    /// Its process.
    pub pid: u32,
    /// The program's version.
    pub program: String,
    /// Seconds since it started.
    pub uptime_s: f64,
    /// Inode of its network namespace.
    pub netns: u64,
    /// Its interface.
    pub interface: String,
    /// This station's number, 16 hexadecimal digits.
    pub station: String,
    /// The access point, where there is one.
    pub bssid: Option<String>,
    /// PHY rate, where it is known.
    pub link_rate_mbps: Option<f64>,
    /// The law in force.
    pub law: String,
    /// What new connections of the namespace use.
    pub default_algorithm: Option<String>,
    /// Stations that send now, this one included.
    pub senders: u32,
    /// Stations heard.
    pub peers: usize,
    /// What this station delivered over the last tick.
    pub delivery_rate_mbps: f64,
    /// Smoothed RTT over the sending connections.
    pub rtt_ms: Option<f64>,
    /// Its minimum.
    pub min_rtt_ms: Option<f64>,
    /// Its growth over the minimum.
    pub growth_ms: Option<f64>,
    /// What it asks its peers to leave free; null where it asks for nothing.
    pub reservation: Option<Reservation>,
    /// The connections over the interface.
    pub connections: Vec<Connection>,
}

/// What became of a station's own reservation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reservation {
    /// What it asks for.
    pub rate_mbps: f64,
    /// Whether the peers leave it free.
    pub admitted: bool,
    /// That, or why not, in words.
    pub why: String,
    /// The part of the air that it takes, where it is announced.
    pub share: Option<f64>,
    /// The part of the air that the others have to leave just now.
    pub claim: Option<f64>,
    /// Whether less than the rate is delivered although there is data.
    pub short: bool,
}

/// A connection over the agent's interface.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Connection {
    /// This end.
    pub local: String,
    /// The other end.
    pub remote: String,
    /// Its congestion control algorithm; bounds bind `wakeai_` ones only.
    pub algorithm: String,
    /// Whether it has data to send.
    pub sending: bool,
    /// Congestion window in segments.
    pub cwnd: u32,
    /// Smoothed RTT.
    pub rtt_ms: f64,
}

/// A station that is heard.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Peer {
    /// Its number, 16 hexadecimal digits.
    pub station: String,
    /// Whether it is sending.
    pub sending: bool,
    /// What it delivers.
    pub delivery_rate_mbps: f64,
    /// What it reaches alone, where it knows.
    pub max_mbps: Option<f64>,
    /// Its minimum RTT, where it has one.
    pub min_rtt_ms: Option<f64>,
    /// How far its RTT is above that.
    pub growth_ms: f64,
    /// What it asks its peers to leave free.
    pub reserved_mbps: Option<f64>,
    /// The part of the air that this takes.
    pub reserved_share: Option<f64>,
    /// Whether this station leaves it free.
    pub admitted: bool,
    /// How often it announces itself.
    pub interval_ms: f64,
    /// How long ago it last did.
    pub age_ms: f64,
}

/// Bounds of the station as a whole, in segments; null binds nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BoundsReport {
    /// Which law.
    pub law: String,
    /// The windows together are not below this.
    pub floor: Option<u32>,
    /// The windows together are not above this.
    pub ceiling: Option<u32>,
    /// The data together leaves no faster than this.
    pub pacing_mbps: Option<f64>,
    /// Why, in words.
    pub why: Vec<String>,
    /// What happened before, the newest last.
    pub history: Vec<String>,
}

/// What the law aims at, from what the stations announce.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Targets {
    /// Stations that share the air now, this one included.
    pub senders: u32,
    /// What the air carries in total.
    pub total_mbps: f64,
    /// What this station reaches alone, where it is known.
    pub max_mbps: Option<f64>,
    /// This station's share of the air turned into a rate: `max_mbps` / `senders`.
    pub share_mbps: Option<f64>,
    /// What it delivers.
    pub delivery_rate_mbps: f64,
    /// Packets that the access point holds.
    pub access_point_buffer: u32,
}
