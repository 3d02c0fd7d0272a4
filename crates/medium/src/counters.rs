//! The medium's counters.

use wakeai_units::Duration;

use crate::node::Kind;

/// Bytes of MPDUs, by [`Kind`].
pub(crate) type BytesByKind = [u64; 3];

/// All counters, since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Per station, in the order of their ids: its own sending (uplink).
    pub stations: Vec<ContenderCounters>,
    /// The access point's sending (downlink and broadcasts).
    pub access_point: ContenderCounters,
    /// Per station, the airtime of the access point's unicast frames to it, ACKs and CTS included.
    pub downlinks: Vec<Airtime>,
    /// The air as a whole. Its parts add up to the time until the end of the last exchange.
    pub airtime: Airtime,
    /// Accesses to the air, collided or not. A TXOP counts once.
    pub accesses: u64,
    /// From the access point to the server.
    pub wired_up: WireCounters,
    /// From the server to the access point.
    pub wired_down: WireCounters,
    /// Packets that were refused because nobody can receive them: from a node to itself, to or
    /// from a station that does not exist, or longer than [`MAX_PACKET`](crate::MAX_PACKET).
    pub refused: u64,
    /// Broadcasts sent on a cellular link, which carries none.
    pub unheard_broadcasts: u64,
}

/// Counters of one contender: a station, or the access point.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContenderCounters {
    /// Packets offered to the queue, accepted or not.
    pub offered: u64,
    /// Packets that were dropped at a full queue, or dropped from the queue later (by fq and FQ-CoDel).
    pub queue_drops: u64,
    /// Unicast data frames (an A-MPDU is one) put on the air.
    pub attempts: u64,
    /// Of [`Self::attempts`], those that no ACK or BlockAck answered.
    pub failures: u64,
    /// RTS frames sent.
    pub rts_attempts: u64,
    /// RTS frames that no CTS answered.
    pub rts_failures: u64,
    /// Accesses that ended in a collision.
    pub collisions: u64,
    /// MPDUs put on the air in unicast data frames, retries included.
    pub mpdus: u64,
    /// Of [`Self::mpdus`], those that were not acknowledged.
    pub mpdu_failures: u64,
    /// Packets given up after the retry limit.
    pub retry_drops: u64,
    /// Packets handed on at the other end of the air, unicast.
    pub delivered: u64,
    /// Broadcast frames sent; only the access point sends them.
    pub broadcasts: u64,
    /// Receptions of a broadcast that failed by a collision or an error, one per station.
    pub broadcast_losses: u64,
    /// Airtime of this contender's exchanges, ACKs and CTS included.
    pub airtime: Airtime,
}

/// Time on the air, by content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Airtime {
    /// Application data in unicast data frames that did not collide. The time of an A-MPDU with packets
    /// of several kinds is divided in proportion to their bytes.
    pub data: Duration,
    /// Acknowledgements of the transport protocol in the same frames.
    pub transport_ack: Duration,
    /// Messages of agents in the same frames, on their way to the access point.
    pub presence: Duration,
    /// ACK and BlockAck frames.
    pub ack: Duration,
    /// RTS and CTS frames that did not collide.
    pub protection: Duration,
    /// Broadcast frames that did not collide.
    pub broadcast: Duration,
    /// Collided frames. Frames that overlap count once for the air, and each for its sender.
    pub collision: Duration,
    /// Idle time: interframe spaces, backoff slots and an idle BSS. Zero for a contender.
    pub idle: Duration,
}

impl Airtime {
    /// Airtime of all unicast data frames that did not collide.
    pub fn carried(&self) -> Duration {
        self.data + self.transport_ack + self.presence
    }

    /// `time` of a data frame, divided by the bytes of each [`Kind`].
    pub(crate) fn of_data(time: Duration, bytes: BytesByKind) -> Self {
        let all: u64 = bytes.iter().sum();
        let part = |kind: Kind| {
            let own = bytes[kind as usize];
            if own == 0 { Duration::ZERO } else { time.mul_div(own, all).unwrap_or(time) }
        };
        let (transport_ack, presence) = (part(Kind::TransportAck), part(Kind::Presence));
        let data = time.saturating_sub(transport_ack + presence);
        Self { data, transport_ack, presence, ..Self::default() }
    }

    /// Adds each part of `other`.
    pub(crate) fn add(&mut self, other: &Self) {
        self.data += other.data;
        self.transport_ack += other.transport_ack;
        self.presence += other.presence;
        self.ack += other.ack;
        self.protection += other.protection;
        self.broadcast += other.broadcast;
        self.collision += other.collision;
        self.idle += other.idle;
    }

    /// All but the idle time.
    pub fn busy(&self) -> Duration {
        self.carried() + self.ack + self.protection + self.broadcast + self.collision
    }
}

/// Counters of one direction of the wired leg.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WireCounters {
    /// Packets offered to the wire's queue.
    pub offered: u64,
    /// Packets that were dropped because the queue was full.
    pub queue_drops: u64,
    /// Packets that arrived at the other end.
    pub delivered: u64,
}
