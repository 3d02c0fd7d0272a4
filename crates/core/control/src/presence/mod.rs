//! Presence messages. From them a station learns which other stations share its access point.
//! `docs/concepts/presence.md` describes the format of a message, and the attacks that the format
//! prevents.
//!
//! [`Presence`] is one message. [`Codec`] writes and reads messages, and `seal` authenticates them.
//! `table` keeps the live peers, `challenge` proves that a peer is live (its messages are new and
//! not recordings), and `schedule` decides when to send. `endpoint` joins these three. `fleet` has
//! two further kinds of messages: a query by which a station asks the others for the figures of
//! their agents, and the answer to a query.

mod challenge;
mod codec;
mod endpoint;
mod fleet;
mod marks;
mod received;
mod schedule;
mod seal;
mod table;
mod wire;

pub use codec::{Codec, DecodeError, MESSAGE_LEN, Presence};
pub(crate) use endpoint::Endpoint;
pub use endpoint::Opened;
pub use fleet::{
    ANSWER_LEN, AgentFigures, ClockOffset, FAULT_KINDS, FleetAnswer, FleetCodec, FleetContent,
    FleetMessage, FleetQuery, Label, QUERY_LEN, StationFigures,
};
pub use schedule::{AIR_PARTS, airtime, airtime_of};
pub use seal::{MessageFormat, OtherVersion};

/// A message whose sequence number this number divides has the station's law also where the answers
/// would fill it. It is a prime, because queries and answers take numbers between presence messages.
const LAW_EVERY: u64 = 7;

/// The boot id: random bytes, new for each controller. The boot id names one incarnation of the
/// station. An incarnation is the run from one start to the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BootId(pub [u8; 16]);

/// A number that another station has to repeat, to prove that its message is new. Zero marks an
/// empty slot in a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Challenge(pub u64);

impl Challenge {
    /// The challenge `number` of the incarnation `boot`. Nobody can predict it without `key`.
    fn new(key: &[u8; 32], boot: BootId, number: u64) -> Self {
        let hash = blake3::keyed_hash(key, &[&boot.0[..], &number.to_be_bytes()].concat());
        let bytes = hash.as_bytes().first_chunk().expect("a hash has 32 bytes");
        Self(u64::from_be_bytes(*bytes).max(1))
    }
}

/// Counters of datagrams since the start. Each received datagram is counted in exactly one counter.
/// The datagrams are presence messages, queries and answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct PresenceCounters {
    /// Presence messages that this station has sent.
    pub sent: u64,
    /// Queries and answers that this station has sent.
    pub fleet_sent: u64,
    /// Presence messages of live peers, which have updated the table.
    pub accepted: u64,
    /// Authentic presence messages and queries of stations that have not yet proved to be live.
    pub unproven: u64,
    /// Datagrams with a wrong length or wrong first bytes.
    pub malformed: u64,
    /// Messages of another version of the format.
    pub wrong_version: u64,
    /// Messages whose authenticator does not match: forged, damaged or of another group.
    pub forged: u64,
    /// Authentic messages with a field out of range.
    pub invalid: u64,
    /// Messages of stations at another access point.
    pub wrong_bssid: u64,
    /// This station's own messages, received back.
    pub own: u64,
    /// Messages with this station's id and another boot id: another station has the same id.
    pub duplicate_id: u64,
    /// Messages with a sequence number that is not above the last one of their sender, messages of
    /// a replaced or removed incarnation, and second answers to one query.
    pub replayed: u64,
    /// Where clocks are synchronised: presence messages without a time, and those whose time
    /// differs from this station's time by more than the tolerance.
    pub stale: u64,
    /// Messages of new stations that arrived while the table was full, and queries and answers for
    /// which this station had no room.
    pub table_full: u64,
    /// Queries of peers in the table, which this station answers.
    pub queries: u64,
    /// Answers to this station's own queries.
    pub answers: u64,
    /// Answers to the queries of other stations, and to earlier queries of this station.
    pub unasked: u64,
}
