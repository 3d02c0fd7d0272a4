//! Presence messages, by which stations learn which others share their access point.
//! `docs/concepts/presence.md` describes the format of a message and the attacks that it prevents.
//!
//! [`Presence`] is one message. [`Codec`] writes and reads messages, and `seal` authenticates them.
//! Four modules use them: `table` keeps the live peers, `challenge` proves that a peer is live,
//! `schedule` decides when to send, and `endpoint` joins the other three. `fleet` has a second kind
//! of messages: on request a station asks the others for the figures of their agents.

mod challenge;
mod codec;
mod endpoint;
mod fleet;
mod schedule;
mod seal;
mod table;

pub use codec::{Codec, DecodeError, MESSAGE_LEN, Presence};
pub(crate) use endpoint::Endpoint;
pub use fleet::{
    ANSWER_LEN, AgentFigures, ClockOffset, FAULT_KINDS, FleetAnswer, FleetCodec, FleetContent,
    FleetMessage, FleetQuery, Label, QUERY_LEN, StationFigures,
};
pub use schedule::{AIR_PARTS, airtime, airtime_of};
pub use seal::{MessageFormat, OtherVersion};

/// Random bytes that are drawn for each controller. They name one incarnation of the station: its
/// run from one start to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BootId(pub [u8; 16]);

/// A number that another station has to repeat. Zero marks an empty slot in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Challenge(pub u64);

/// Counters of datagrams since the start. Each received datagram is counted in exactly one of them:
/// presence messages, and the queries and answers of a fleet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PresenceCounters {
    /// Presence messages sent.
    pub sent: u64,
    /// Queries to the fleet and answers to such queries, sent.
    pub fleet_sent: u64,
    /// Messages of live peers that were taken in.
    pub accepted: u64,
    /// Authentic messages of stations that have not yet proved to be live.
    pub unproven: u64,
    /// Datagrams that are no message: their length or their first bytes are wrong.
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
    /// Messages whose sequence number was received before, or whose incarnation was replaced.
    pub replayed: u64,
    /// Messages whose time differs by more than the tolerance, where clocks are synchronised.
    pub stale: u64,
    /// Messages of new stations that arrived while the table was full, and queries and answers for
    /// which there was no room.
    pub table_full: u64,
    /// Queries of live peers to the fleet, which this station answers.
    pub queries: u64,
    /// Answers to this station's own queries.
    pub answers: u64,
    /// Answers to the queries of other stations.
    pub unasked: u64,
}
