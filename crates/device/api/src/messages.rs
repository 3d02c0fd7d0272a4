//! The local API. Each message is one line with one JSON object, over a Unix socket.
//!
//! A request is `{"version":1,"request":"status"}`. The answer repeats the version and has one more
//! key: the request's name, or `error`. `docs/reference/agent.md` lists every field. Only the
//! request `reserve` changes something. It also has the key `rate`, such as `"9.66Mbit/s"` or
//! `"none"`.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};
use strum::VariantArray as _;
use wakeai_control::{Permission, Share};
use wakeai_units::{ParseQuantityError, Rate};

use crate::fleet::{Fleet, Holds, OtherLaw, OtherVersion};

/// The version of requests and answers. A new field does not change the version.
pub const VERSION: u32 = 1;

/// A request to an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "request")]
pub enum Request {
    /// The agent's state and its station's figures.
    Status,
    /// The stations from which the agent receives presence messages.
    Peers,
    /// The bounds in force and the reasons for them.
    Bounds,
    /// The rates that the law aims at.
    Targets,
    /// Every counter.
    Metrics,
    /// Asks the peers to leave a rate free. The request takes effect at the agent's next decision (its
    /// next tick). The agent accepts this request only from root and from its own user.
    Reserve {
        /// The rate; `None` ends the reservation.
        #[serde(with = "reserved")]
        rate: Option<Rate>,
    },
    /// Says how much of this client's transfer is left, and asks whether it may send now. The transfer
    /// also ends when the connection to the agent closes. A client repeats this request several times
    /// per second while its transfer lasts.
    Transfer {
        /// The number of bytes; `None` means that the transfer has ended.
        #[serde(skip_serializing_if = "Option::is_none")]
        left: Option<u64>,
    },
    /// Asks for the figures of all stations at the access point.
    Fleet {
        /// The number of a query, whose answers so far are returned. Without it the request begins a
        /// query, unless one is under way.
        #[serde(skip_serializing_if = "Option::is_none")]
        query: Option<u64>,
    },
}

/// The value of `rate` that ends a reservation.
const NO_RATE: &str = "none";

/// The rate of a reservation, as [`parse_reserve`] reads it.
mod reserved {
    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};
    use wakeai_units::Rate;

    #[expect(clippy::ref_option, reason = "the signature that serde calls")]
    pub(super) fn serialize<S: Serializer>(rate: &Option<Rate>, to: S) -> Result<S::Ok, S::Error> {
        match rate {
            Some(rate) => to.collect_str(rate),
            None => to.serialize_str(super::NO_RATE),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Rate>, D::Error> {
        super::parse_reserve(&String::deserialize(from)?).map_err(D::Error::custom)
    }
}

impl Request {
    /// The line that sends this request.
    pub fn question(self) -> Question {
        Question { version: VERSION, request: self }
    }

    /// Parses a line to the agent.
    ///
    /// # Errors
    /// A message that names the problem and the allowed values.
    pub fn parse(line: &[u8]) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Version {
            version: u32,
        }
        let strange =
            |error| format!("the request is not {{\"version\":1,\"request\":…}}: {error}");
        let Version { version } = serde_json::from_slice(line).map_err(strange)?;
        if version != VERSION {
            return Err(format!("found version {version}, allowed is {VERSION}"));
        }
        serde_json::from_slice(line).map_err(strange)
    }
}

/// Reads the rate of [`Request::Reserve`]. The text is a rate above zero, or `none`.
///
/// # Errors
/// A message that names the problem and the allowed values.
pub fn parse_reserve(text: &str) -> Result<Option<Rate>, String> {
    match text {
        NO_RATE => Ok(None),
        _ => match text.parse() {
            Ok(Rate::ZERO) => {
                Err(format!("found {text:?}, expected a rate above zero, or \"{NO_RATE}\""))
            }
            Ok(rate) => Ok(Some(rate)),
            Err(error) => {
                let error: ParseQuantityError = error;
                Err(format!("{error}, or \"{NO_RATE}\""))
            }
        },
    }
}

/// A line to the agent.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Question {
    /// The version of the request, [`VERSION`].
    version: u32,
    #[serde(flatten)]
    request: Request,
}

/// A line from the agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Answer {
    /// The version of the answer, [`VERSION`].
    pub version: u32,
    /// The content.
    #[serde(flatten)]
    pub body: Body,
}

/// The content of an answer. Its key is the name of the request.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Body {
    /// The answer to [`Request::Status`].
    Status(Box<Status>),
    /// The answer to [`Request::Peers`].
    Peers(Vec<Peer>),
    /// The answer to [`Request::Bounds`].
    Bounds(BoundsReport),
    /// The answer to [`Request::Targets`].
    Targets(Targets),
    /// The answer to [`Request::Metrics`]: every counter by its name.
    Metrics(BTreeMap<String, u64>),
    /// The answer to [`Request::Reserve`]: the reservation that the agent applies at the next tick.
    Reserve(Reserve),
    /// The answer to [`Request::Transfer`].
    Transfer(Transfer),
    /// The answer to [`Request::Fleet`].
    Fleet(Fleet),
    /// The reason why the request was refused. It says what was found and what is allowed.
    Error(String),
}

/// Whether a transfer may send now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transfer {
    /// `wait`, `try` or `send`. With `try` the client sends small pieces, because the permission
    /// may end within seconds.
    pub permission: Permission,
    /// The number of peers that are sending.
    pub sending_peers: u32,
}

/// The reservation that applies from the next tick on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reserve {
    /// The reserved rate in Mbit/s. Null means no reservation.
    pub rate_mbps: Option<f64>,
}

/// The agent's state.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum State {
    /// The interface does not exist or is down.
    WaitingForInterface,
    /// The interface has no IP address that is valid beyond the link.
    WaitingForAddress,
    /// The interface is not associated with an access point.
    WaitingForAccessPoint,
    /// The agent cannot read connections. The bounds have expired.
    Blind,
    /// The agent cannot write bounds or heartbeats, or the bounds have no effect because the
    /// algorithms are no longer registered in the kernel.
    WithoutBounds,
    /// The agent reads connections and writes bounds.
    Controlling,
}

impl State {
    /// Every state.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// The name, as in an answer.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The state in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::WaitingForInterface => "waiting for the interface",
            Self::WaitingForAddress => "waiting for an IP address",
            Self::WaitingForAccessPoint => "waiting for an access point",
            Self::Blind => "blind: connections cannot be read",
            Self::WithoutBounds => "without bounds: they cannot be written, or nothing obeys them",
            Self::Controlling => "controlling",
        }
    }
}

/// The agent's state and its station's figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The agent's state.
    pub state: State,
    /// The agent's process id.
    pub pid: u32,
    /// The program's version.
    pub program: String,
    /// The seconds since the agent started.
    pub uptime_s: f64,
    /// The inode of the agent's network namespace.
    pub netns: u64,
    /// The agent's interface.
    pub interface: String,
    /// This station's number, 16 hexadecimal digits.
    pub station: String,
    /// The access point, if there is one.
    pub bssid: Option<String>,
    /// The PHY rate, if it is known.
    pub link_rate_mbps: Option<f64>,
    /// The address and port that presence messages are sent to, while the interface is up.
    pub presence_to: Option<String>,
    /// The counts of presence messages since the association began. They have the names of the
    /// metrics `presence_*`.
    #[serde(default)]
    pub presence: BTreeMap<String, u64>,
    /// The law in force.
    pub law: String,
    /// The version of the law's formula.
    #[serde(default)]
    pub law_version: Option<u8>,
    /// The default congestion control algorithm of new connections in the namespace.
    pub default_algorithm: Option<String>,
    /// The number of stations that send now, this one included.
    pub senders: u32,
    /// The number of stations from which the agent receives presence messages.
    pub peers: usize,
    /// The rate that this station delivered over the last tick.
    pub delivery_rate_mbps: f64,
    /// The smoothed RTT over the sending connections.
    pub rtt_ms: Option<f64>,
    /// The minimum of the smoothed RTT.
    pub min_rtt_ms: Option<f64>,
    /// The queueing delay: the smoothed RTT minus its minimum.
    pub growth_ms: Option<f64>,
    /// What the station receives; null while it receives nothing.
    #[serde(default)]
    pub received: Option<Received>,
    /// The reservation of this station. Null means no reservation.
    pub reservation: Option<Reservation>,
    /// The station's turn among the stations with transfers, in words. It is null if the station
    /// has no transfers.
    #[serde(default)]
    pub turn: Option<String>,
    /// The connections over the interface.
    pub connections: Vec<Connection>,
    /// The number of idle connections that are not listed, because there are too many.
    #[serde(default)]
    pub connections_left_out: u32,
    /// The flows of UDP over the interface that have sent something in the last ten seconds, at most 64:
    /// those with a rate, and then those that send most. Null where they are not counted.
    #[serde(default)]
    pub datagrams: Option<Vec<DatagramFlow>>,
    /// Whether datagrams above their flow's rate wait for their departure times. If not, they are marked and dropped as
    /// in a queue that is full. Null where they are not counted.
    #[serde(default)]
    pub departure_times: Option<bool>,
    /// The rate at which the interface sends what no rule bounds, such as tunnels of the kernel, containers
    /// and tethering, in Mbit/s with all headers. Null while that is not known.
    #[serde(default)]
    pub not_governed_mbps: Option<f64>,
    /// The members of the group whose messages have a version that this agent does not read. At most
    /// 16 members are listed.
    #[serde(default)]
    pub other_versions: Vec<OtherVersion>,
    /// The peers that hold another law than this agent, or other parameters of it.
    #[serde(default)]
    pub other_laws: Vec<OtherLaw>,
    /// What other programs have changed of what the agent holds on the host, the last first.
    #[serde(default)]
    pub drifts: Vec<Drift>,
}

/// Something that a process holds on the host, and that another program has changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Drift {
    /// What it is, such as `sysctl net.ipv4.tcp_congestion_control`.
    pub change: String,
    /// What was found in its place.
    pub found: String,
    /// What was done about it, in words.
    pub outcome: String,
    /// The seconds since it was found.
    pub age_s: f64,
}

impl Drift {
    /// The finding in one sentence.
    pub fn words(&self) -> String {
        let Self { change, found, outcome, age_s } = self;
        format!(
            "{change} was changed by another program {age_s:.0} s ago: found {found}: {outcome}"
        )
    }
}

/// A station's own reservation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reservation {
    /// The rate that the station asks its peers to leave free.
    pub rate_mbps: f64,
    /// `waiting`, `admitted`, `refused` or `unmeasured`.
    #[serde(rename = "standing")]
    pub status: ReservationStatus,
    /// Whether the peers leave the rate free.
    pub admitted: bool,
    /// The status in words, with the reason.
    pub why: String,
    /// The share of the airtime that the reservation takes, while it is announced.
    pub share: Option<f64>,
    /// The share of the airtime that the admitted reservations take. It is stated if this
    /// reservation is refused.
    pub taken: Option<f64>,
    /// The largest share of the airtime that may be reserved in total. It is stated if this
    /// reservation is refused.
    pub limit: Option<f64>,
    /// The share of airtime that the other stations have to leave free now.
    pub claim: Option<f64>,
    /// Whether the station delivers less than the rate, although data waits.
    pub short: bool,
}

/// The current status of a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReservationStatus {
    /// The station sends nothing, or it has not yet listened for long enough.
    Waiting,
    /// The peers leave the rate free.
    Admitted,
    /// The reservation does not fit beside earlier ones. It will be admitted when there is room.
    Refused,
    /// The share of airtime that the reservation needs is not known.
    Unmeasured,
}

impl Reservation {
    /// A reservation of `rate` in this state. The agent adds `claim` and `short`.
    pub fn new(rate: Rate, state: wakeai_control::ReservationState) -> Self {
        use wakeai_control::ReservationState as Own;
        let (status, share, taken, limit) = match state {
            Own::None | Own::Waiting => (ReservationStatus::Waiting, None, None, None),
            Own::Unmeasured => (ReservationStatus::Unmeasured, None, None, None),
            Own::Refused { share, taken, limit } => {
                (ReservationStatus::Refused, Some(share), Some(taken), Some(limit))
            }
            Own::Admitted { share } => (ReservationStatus::Admitted, Some(share), None, None),
        };
        Self {
            rate_mbps: rate.as_mbps_f64(),
            status,
            admitted: state.is_admitted(),
            why: state.to_string(),
            share: share.map(part_of_one),
            taken: taken.map(part_of_one),
            limit: limit.map(part_of_one),
            claim: None,
            short: false,
        }
    }

    /// The state that [`Reservation::new`] was given.
    pub fn state(&self) -> wakeai_control::ReservationState {
        use wakeai_control::ReservationState as Own;
        let (share, taken, limit) = (share(self.share), share(self.taken), share(self.limit));
        match self.status {
            ReservationStatus::Waiting => Own::Waiting,
            ReservationStatus::Unmeasured => Own::Unmeasured,
            ReservationStatus::Admitted => Own::Admitted { share },
            ReservationStatus::Refused => Own::Refused { share, taken, limit },
        }
    }
}

/// Converts a share of the airtime to a number from 0 to 1.
pub fn part_of_one(share: Share) -> f64 {
    f64::from(share.ppm()) / f64::from(Share::WHOLE.ppm())
}

/// The share nearest to this number, where 1 is the whole airtime. The number may be above 1,
/// because a reservation that is refused may ask for more than the whole airtime.
fn share(part: Option<f64>) -> Share {
    Share::from_ppm((part.unwrap_or(0.0) * f64::from(Share::WHOLE.ppm())).round() as u32)
}

/// A connection over the agent's interface.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Connection {
    /// The address and port of this end.
    pub local: SocketAddr,
    /// The address and port of the other end.
    pub remote: SocketAddr,
    /// The congestion control algorithm. Only algorithms whose names begin with `wakeai_` apply
    /// bounds.
    pub algorithm: String,
    /// Whether the connection has data to send.
    pub sending: bool,
    /// The congestion window in segments.
    pub cwnd: u32,
    /// The smoothed RTT.
    pub rtt_ms: f64,
}

/// A flow of UDP over the agent's interface.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DatagramFlow {
    /// The address and port of this end.
    pub local: String,
    /// The address and port of the other end.
    pub remote: String,
    /// The rate of payload since the last tick.
    pub rate_mbps: f64,
    /// The mean size of its datagrams, payload bytes.
    pub datagram_bytes: u64,
    /// The rate to which the flow is held, if there is one.
    pub bound_mbps: Option<f64>,
    /// The time for which the next datagram would wait in a queue that is served at this rate.
    pub queue_ms: f64,
    /// The datagrams whose departure was delayed.
    pub delayed: u64,
    /// The datagrams that were marked as in a congested queue (ECN, RFC 3168).
    pub marked: u64,
    /// The datagrams that were dropped.
    pub dropped: u64,
    /// Whether the flow may carry a tunnel. Its datagrams are never dropped.
    pub tunnel: bool,
}

/// A station from which presence messages are received.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Peer {
    /// The peer's number, 16 hexadecimal digits.
    pub station: String,
    /// Whether the peer is sending.
    pub sending: bool,
    /// The rate that the peer delivers.
    pub delivery_rate_mbps: f64,
    /// The goodput that the peer reaches alone, if the peer knows it.
    pub max_mbps: Option<f64>,
    /// The peer's minimum RTT, if it has one.
    pub min_rtt_ms: Option<f64>,
    /// The peer's queueing delay: its RTT minus the minimum.
    pub growth_ms: f64,
    /// What the peer receives; null while it receives nothing.
    #[serde(default)]
    pub received: Option<Received>,
    /// The rate that the peer asks other stations to leave free.
    pub reserved_mbps: Option<f64>,
    /// The share of airtime that the reserved rate takes.
    pub reserved_share: Option<f64>,
    /// Whether this agent's station leaves the reserved rate free.
    pub admitted: bool,
    /// The name of the peer's law, if the peer has announced it.
    #[serde(default)]
    pub law: Option<String>,
    /// The version of that law's formula.
    #[serde(default)]
    pub law_version: Option<u8>,
    /// Whether the peer holds what this agent holds. It is null if no message has said it yet.
    #[serde(default)]
    pub holds: Option<Holds>,
    /// The interval of the peer's messages.
    pub interval_ms: f64,
    /// The time since the peer's last message.
    pub age_ms: f64,
}

/// What a station receives by TCP.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Received {
    /// The rate of payload.
    pub rate_mbps: f64,
    /// The goodput that the station reaches alone as a receiver, if it is known.
    pub max_mbps: Option<f64>,
    /// The minimum of the receiver's RTT, if there is one.
    pub min_rtt_ms: Option<f64>,
    /// The queueing delay: the receiver's RTT minus the minimum.
    pub growth_ms: f64,
}

/// The bounds of the station as a whole. Null means no bound.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BoundsReport {
    /// The law's name.
    pub law: String,
    /// The smallest sum of the congestion windows, in segments.
    pub floor: Option<u32>,
    /// The largest sum of the congestion windows, in segments.
    pub ceiling: Option<u32>,
    /// The largest rate of all connections together.
    pub pacing_mbps: Option<f64>,
    /// The number of bytes that may wait in the host's queue. It is stated only if it is larger than
    /// Linux's own limit per connection (TCP small queues).
    #[serde(default)]
    pub small_queue_bytes: Option<u64>,
    /// The largest sum of the receive windows, in segments.
    #[serde(default)]
    pub receive: Option<u32>,
    /// The largest rate of all that obeys no window: datagrams.
    #[serde(default)]
    pub unwindowed_mbps: Option<f64>,
    /// The law's reasons, in words.
    pub why: Vec<String>,
    /// Earlier events, the newest last.
    pub history: Vec<String>,
}

/// The rates that the law aims at. They follow from the announcements of the stations.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Targets {
    /// The number of stations that send now, this one included.
    pub senders: u32,
    /// The aggregate goodput of all stations.
    pub total_mbps: f64,
    /// The goodput that this station reaches alone, if it is known.
    pub max_mbps: Option<f64>,
    /// This station's share of the airtime as a rate (`docs/reference/figures.md`).
    pub share_mbps: Option<f64>,
    /// The rate that this station delivers.
    pub delivery_rate_mbps: f64,
    /// The access point's buffer, in packets.
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
            Request::Reserve { rate },
            Request::Transfer { left: Some(7) },
            Request::Fleet { query: Some(3) },
        ];
        let names =
            ["status", "peers", "bounds", "targets", "metrics", "reserve", "transfer", "fleet"];
        let line = |request: Request| serde_json::to_string(&request.question()).unwrap();
        for (request, name) in all.into_iter().zip(names) {
            let begins = format!("{{\"version\":1,\"request\":\"{name}\"");
            assert!(line(request).starts_with(&begins), "{}", line(request));
        }
        let empty = [
            Request::Reserve { rate: None },
            Request::Transfer { left: None },
            Request::Fleet { query: None },
        ];
        for request in all.into_iter().chain(empty) {
            assert_eq!(Request::parse(line(request).as_bytes()), Ok(request));
        }
    }

    #[test]
    fn the_name_of_a_state_is_the_one_in_an_answer() {
        for &state in State::ALL {
            assert_eq!(serde_json::to_value(state).unwrap(), state.name());
            assert!(state.name().len() <= 24, "it fits into an answer to a fleet's query");
        }
    }

    #[test]
    fn the_state_of_a_reservation_reads_back() {
        use wakeai_control::ReservationState as Own;
        let percent = Share::from_percent;
        let refused = Own::Refused { share: percent(120), taken: percent(40), limit: percent(80) };
        for own in [Own::Waiting, Own::Unmeasured, Own::Admitted { share: percent(40) }, refused] {
            let line = serde_json::to_string(&Reservation::new(Rate::from_mbps(5), own)).unwrap();
            assert_eq!(serde_json::from_str::<Reservation>(&line).unwrap().state(), own);
        }
    }

    #[test]
    fn a_rate_is_above_zero_or_none() {
        let asked = |rate: &str| {
            let line = format!("{{\"version\":1,\"request\":\"reserve\"{rate}}}");
            Request::parse(line.as_bytes())
        };
        assert!(asked("").unwrap_err().contains("missing field `rate`"));
        assert!(asked(",\"rate\":\"0bit/s\"").unwrap_err().contains("above zero"));
        assert!(asked(",\"rate\":\"-1\"").is_err());
        assert_eq!(asked(",\"rate\":\"none\""), Ok(Request::Reserve { rate: None }));
    }
}
