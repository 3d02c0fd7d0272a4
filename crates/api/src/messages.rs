//! The local API: one JSON object per line and direction, over a Unix socket.
//!
//! A request is `{"version":1,"request":"status"}`. The answer repeats the version and has one
//! more key: the request's name, or `error`. `docs/reference/agent.md` lists every field. One
//! request changes something, `reserve`, with the key `rate`: `"9.66Mbit/s"` or `"none"`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use wakeai_control::Share;
use wakeai_units::Rate;

use crate::config::positive_rate;

/// The version of requests and answers. Fields may be added under the same number.
pub const VERSION: u32 = 1;

/// What may be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// From the next tick on, ask the peers to leave this rate free; `None`: none any more. Only
    /// root and the agent's own user may.
    Reserve(Option<Rate>),
}

/// What `rate` says where nothing is to be left free.
const NO_RATE: &str = "none";

impl Request {
    /// All of them, by name.
    pub const NAMES: [&'static str; 6] =
        ["status", "peers", "bounds", "targets", "metrics", "reserve"];

    /// The line that makes this request.
    pub fn question(self) -> Question {
        let (request, rate) = match self {
            Self::Status => ("status", None),
            Self::Peers => ("peers", None),
            Self::Bounds => ("bounds", None),
            Self::Targets => ("targets", None),
            Self::Metrics => ("metrics", None),
            Self::Reserve(rate) => {
                ("reserve", Some(rate.map_or(NO_RATE.to_owned(), |rate| rate.to_string())))
            }
        };
        Question { version: VERSION, request: request.to_owned(), rate }
    }
}

impl TryFrom<&Question> for Request {
    type Error = String;

    /// The error says what was found and what is allowed.
    fn try_from(question: &Question) -> Result<Self, String> {
        Ok(match question.request.as_str() {
            "status" => Self::Status,
            "peers" => Self::Peers,
            "bounds" => Self::Bounds,
            "targets" => Self::Targets,
            "metrics" => Self::Metrics,
            "reserve" => {
                let rate = question.rate.as_deref().ok_or_else(|| {
                    format!("found no rate, allowed is one above zero, or {NO_RATE:?}")
                })?;
                Self::Reserve(parse_reserve(rate)?)
            }
            name => {
                let names = Self::NAMES.join(", ");
                return Err(format!("found the request {name:?}, allowed are {names}"));
            }
        })
    }
}

/// Reads the rate of [`Request::Reserve`]: one above zero, or `none`.
///
/// # Errors
/// What was found and what is allowed.
pub fn parse_reserve(text: &str) -> Result<Option<Rate>, String> {
    match text {
        NO_RATE => Ok(None),
        _ => positive_rate(text).map(Some).map_err(|error| format!("{error}, or \"{NO_RATE}\"")),
    }
}

/// A line to the agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Question {
    /// [`VERSION`].
    pub version: u32,
    /// What is asked.
    pub request: String,
    /// Of [`Request::Reserve`] alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<String>,
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
    /// To [`Request::Reserve`]: it is taken over at the next tick.
    Reserve(Reserve),
    /// The request was refused: what was found and what is allowed.
    Error(String),
}

/// What is to be reserved from the next tick on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reserve {
    /// Null: nothing.
    pub rate_mbps: Option<f64>,
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
    /// Where presence messages go, while the interface is up.
    pub presence_to: Option<String>,
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
    /// `waiting`, `admitted`, `refused` or `unmeasured`.
    pub standing: Standing,
    /// Whether the peers leave it free.
    pub admitted: bool,
    /// That, or why not, in words.
    pub why: String,
    /// The part of the air that it takes, where it is announced.
    pub share: Option<f64>,
    /// Where it is refused: what those have that are admitted.
    pub taken: Option<f64>,
    /// Where it is refused: the most that may be reserved in all.
    pub limit: Option<f64>,
    /// The part of the air that the others have to leave just now.
    pub claim: Option<f64>,
    /// Whether less than the rate is delivered although there is data.
    pub short: bool,
}

/// How a reservation stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Standing {
    /// Nothing is sent, or the station has not listened long enough.
    Waiting,
    /// The peers leave it free.
    Admitted,
    /// It does not fit beside those that came first; it is admitted when there is room.
    Refused,
    /// No share of the air can be told.
    Unmeasured,
}

impl Reservation {
    /// A reservation of `rate` that stands like this; what is announced of it is filled in by the agent.
    pub fn new(rate: Rate, standing: wakeai_control::ReservationState) -> Self {
        use wakeai_control::ReservationState as Own;
        let (share, taken, limit) = match standing {
            Own::Refused { share, taken, limit } => (Some(share), Some(taken), Some(limit)),
            Own::Admitted { share } => (Some(share), None, None),
            _ => (None, None, None),
        };
        Self {
            rate_mbps: rate.as_mbps_f64(),
            standing: match standing {
                Own::None | Own::Waiting => Standing::Waiting,
                Own::Unmeasured => Standing::Unmeasured,
                Own::Refused { .. } => Standing::Refused,
                Own::Admitted { .. } => Standing::Admitted,
            },
            admitted: standing.is_admitted(),
            why: standing.to_string(),
            share: share.map(part_of_one),
            taken: taken.map(part_of_one),
            limit: limit.map(part_of_one),
            claim: None,
            short: false,
        }
    }

    /// How it stands, as [`Reservation::new`] was told.
    pub fn standing(&self) -> wakeai_control::ReservationState {
        use wakeai_control::ReservationState as Own;
        let (share, taken, limit) = (share(self.share), share(self.taken), share(self.limit));
        match self.standing {
            Standing::Waiting => Own::Waiting,
            Standing::Unmeasured => Own::Unmeasured,
            Standing::Admitted => Own::Admitted { share },
            Standing::Refused => Own::Refused { share, taken, limit },
        }
    }
}

/// A share of the air as a part of 1.
pub fn part_of_one(share: Share) -> f64 {
    f64::from(share.ppm()) / f64::from(Share::WHOLE.ppm())
}

/// The nearest share. One above the whole can be asked for, and is refused.
fn share(part: Option<f64>) -> Share {
    Share::from_ppm((part.unwrap_or(0.0) * f64::from(Share::WHOLE.ppm())).round() as u32)
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
    /// So many bytes may wait in the host's queue, where Linux would let less in.
    #[serde(default)]
    pub small_queue_bytes: Option<u64>,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_is_understood_as_it_is_written() {
        let rate = Some(Rate::from_bps(9_660_000));
        let all = [
            Request::Status,
            Request::Peers,
            Request::Bounds,
            Request::Targets,
            Request::Metrics,
            Request::Reserve(rate),
        ];
        assert_eq!(all.map(|request| request.question().request), Request::NAMES);
        for request in all.into_iter().chain([Request::Reserve(None)]) {
            assert_eq!(Request::try_from(&request.question()), Ok(request));
        }
    }

    #[test]
    fn a_reservation_reads_back_as_it_stands() {
        use wakeai_control::ReservationState as Own;
        let percent = Share::from_percent;
        let refused = Own::Refused { share: percent(120), taken: percent(40), limit: percent(80) };
        for own in [Own::Waiting, Own::Unmeasured, Own::Admitted { share: percent(40) }, refused] {
            let line = serde_json::to_string(&Reservation::new(Rate::from_mbps(5), own)).unwrap();
            assert_eq!(serde_json::from_str::<Reservation>(&line).unwrap().standing(), own);
        }
    }

    #[test]
    fn a_rate_is_above_zero_or_none() {
        let asked = |rate: Option<&str>| {
            let rate = rate.map(str::to_owned);
            Request::try_from(&Question { version: VERSION, request: "reserve".to_owned(), rate })
        };
        assert!(asked(None).unwrap_err().contains("found no rate"));
        assert!(asked(Some("0bit/s")).unwrap_err().contains("above zero"));
        assert!(asked(Some("-1")).is_err());
        assert_eq!(asked(Some("none")), Ok(Request::Reserve(None)));
    }
}
