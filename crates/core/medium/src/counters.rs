//! The medium's counters.

use wakeai_units::Duration;

use crate::node::Kind;

/// Bytes of MPDUs (the frames that an aggregate consists of), by [`Kind`].
pub(crate) type BytesByKind = [u64; 3];

/// All counters, since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// The sending of each station (uplink), in the order of the stations' ids.
    pub stations: Vec<ContenderCounters>,
    /// The access point's sending (downlink and broadcasts).
    pub access_point: ContenderCounters,
    /// For each station, the airtime of the access point's unicast frames to it, including ACKs and
    /// CTS.
    pub downlinks: Vec<Airtime>,
    /// The air as a whole. Its parts add up to the time until the end of the last exchange.
    pub airtime: Airtime,
    /// The number of accesses to the air, collided or not. A TXOP (several exchanges in one access)
    /// counts once.
    pub accesses: u64,
    /// From the access point to the server.
    pub wired_up: WireCounters,
    /// From the server to the access point.
    pub wired_down: WireCounters,
    /// Packets that were refused because no node can receive them. Their two ends are the same
    /// node, an end does not exist, or they are longer than [`MAX_PACKET`](crate::MAX_PACKET).
    pub refused: u64,
    /// Broadcasts sent on a cellular link, which carries none.
    pub unheard_broadcasts: u64,
}

impl Counters {
    /// The counters of all contenders: the stations', and the access point's.
    pub fn contenders(&self) -> impl Iterator<Item = &ContenderCounters> {
        self.stations.iter().chain([&self.access_point])
    }
}

/// Counters of one contender: a station, or the access point.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContenderCounters {
    /// Packets offered to the queue, accepted or not.
    pub offered: u64,
    /// Packets that were dropped at a full queue, or dropped from the queue later (by fq and
    /// FQ-CoDel).
    pub queue_drops: u64,
    /// Unicast data frames that were put on the air. An A-MPDU (aggregate) is one.
    pub attempts: u64,
    /// The part of [`Self::attempts`] that no ACK or BlockAck answered.
    pub failures: u64,
    /// RTS frames sent.
    pub rts_attempts: u64,
    /// RTS frames that no CTS answered.
    pub rts_failures: u64,
    /// Accesses that ended in a collision.
    pub collisions: u64,
    /// MPDUs put on the air in unicast data frames, retries included.
    pub mpdus: u64,
    /// The part of [`Self::mpdus`] that was not acknowledged.
    pub mpdu_failures: u64,
    /// Packets given up after the retry limit.
    pub retry_drops: u64,
    /// Packets handed on at the other end of the air, unicast.
    pub delivered: u64,
    /// Broadcast frames sent; only the access point sends them.
    pub broadcasts: u64,
    /// Receptions of a broadcast that failed because of a collision or an error. Each station
    /// counts.
    pub broadcast_losses: u64,
    /// Airtime of this contender's exchanges, including ACKs and CTS.
    pub airtime: Airtime,
}

/// Time on the air, by content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Airtime {
    /// Application data in unicast data frames that did not collide. The time of an A-MPDU with
    /// packets of several kinds is divided in proportion to the bytes of each kind.
    pub data: Duration,
    /// Acknowledgements of the transport protocol in the data frames of [`Self::data`].
    pub transport_ack: Duration,
    /// Messages of agents on their way to the access point, in the data frames of [`Self::data`].
    pub presence: Duration,
    /// ACK and BlockAck frames.
    pub ack: Duration,
    /// RTS and CTS frames that did not collide.
    pub protection: Duration,
    /// Broadcast frames that did not collide.
    pub broadcast: Duration,
    /// Collided frames. For the air, frames that overlap count once. For a contender, each of its
    /// own frames counts.
    pub collision: Duration,
    /// Idle time: interframe spaces, backoff slots, and the time without frames. Zero for a
    /// contender.
    pub idle: Duration,
}

impl Airtime {
    /// Airtime of all unicast data frames that did not collide.
    pub fn carried(&self) -> Duration {
        self.data + self.transport_ack + self.presence
    }

    /// Divides the `time` of a data frame in proportion to the bytes of each [`Kind`].
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

    /// All airtime except the idle time.
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
    /// Packets that the wire lost at random.
    pub losses: u64,
    /// Packets that arrived at the other end.
    pub delivered: u64,
}
