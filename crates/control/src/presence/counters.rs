//! What became of every datagram.

/// Counts of datagrams since the start; each received one is in exactly one of the `u64`s but
/// `sent`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PresenceCounters {
    /// Messages sent.
    pub sent: u64,
    /// Messages of live peers, taken in.
    pub accepted: u64,
    /// Authentic messages of stations that have not yet proved to be live.
    pub unproven: u64,
    /// Not a message at all: wrong length or wrong magic.
    pub malformed: u64,
    /// Another version of the format.
    pub wrong_version: u64,
    /// The authenticator does not match: forged, damaged or of another group.
    pub forged: u64,
    /// Authentic, but a field is out of range.
    pub invalid: u64,
    /// Of another access point.
    pub wrong_bssid: u64,
    /// Our own message, echoed.
    pub own: u64,
    /// Our station id, but not our boot id: another station is configured with the same id.
    pub duplicate_id: u64,
    /// A sequence number that was seen, or a boot id that was retired.
    pub replayed: u64,
    /// Further from our clock than the tolerance, where clocks are synchronised.
    pub stale: u64,
    /// Of a new station while the table was full.
    pub table_full: u64,
}
