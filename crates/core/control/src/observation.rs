//! The input of a law: the observation of one tick. It contains only figures that a real device can
//! know.

use std::fmt;

use wakeai_connection::{Direction, Figures};
use wakeai_units::{Bytes, Duration, Rate, Segments};

use crate::{Limit, PeerLaw, Reservation, Turn};

/// The id of a station among the stations of one access point. The configuration gives it, or the
/// agent derives it. The id need not be secret. Where two stations have the same id, other stations
/// see only one of the two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StationId(pub u64);

impl fmt::Display for StationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// One of this station's connections over the Wi-Fi interface, in one direction at a tick (a
/// decision, one every 0.5 s).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConnectionView {
    /// The kernel's socket cookie.
    pub id: u64,
    /// The figures of the connection. Those of a receiving end are in a sender's terms: the congestion
    /// window is what the peer has in flight, and the RTT is the receiver's own estimate.
    pub figures: Figures,
    /// What limits the connection in this direction.
    pub limit: Limit,
    /// The number of segments that the connection moved in this direction since the last tick; 0 at
    /// its first tick.
    pub delivered: u32,
    /// Whether the connection counts as sending or receiving ([`Connection`](crate::Connection) has
    /// the rule).
    pub active: bool,
    /// Whether the connection sends and did not at the last tick, so that what it sent since is that of less than a
    /// tick. False of a receiving end, which is active only once it has received more than an initial window.
    pub begins: bool,
}

/// What this station moves in one direction, at a tick.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnTraffic {
    /// The connections that are routed over the Wi-Fi interface.
    pub connections: Vec<ConnectionView>,
    /// The RTT; `None` while no active connection has a sample.
    pub rtt: Option<RttView>,
    /// The rate of payload since the last tick.
    pub delivery_rate: Rate,
    /// The rate that this station announces: the mean over four ticks.
    pub mean_rate: Rate,
    /// The rate that this station reaches alone in this direction, where it is configured or was
    /// measured.
    pub max_rate: Option<Rate>,
}

impl ConnectionView {
    /// The bytes that the connection moved since the last tick.
    pub(crate) fn moved(&self) -> Bytes {
        Bytes::new(self.figures.mss.get().saturating_mul(u64::from(self.delivered)))
    }
}

impl OwnTraffic {
    /// The connections that count as active.
    pub fn active(&self) -> impl Iterator<Item = &ConnectionView> {
        self.connections.iter().filter(|connection| connection.active)
    }

    /// Whether a connection is active.
    pub fn is_active(&self) -> bool {
        self.active().next().is_some()
    }

    /// The active connections that obey a window.
    pub fn windowed(&self) -> impl Iterator<Item = &ConnectionView> {
        self.active().filter(|connection| connection.limit == Limit::Window)
    }

    /// The active flows of datagrams, which obey no window, but a rate.
    pub fn unwindowed(&self) -> impl Iterator<Item = &ConnectionView> {
        self.active().filter(|connection| connection.limit == Limit::Rate)
    }

    /// The sum of the windows of the active connections that obey a window.
    pub fn window(&self) -> Segments {
        Self::sum_of_windows(self.windowed())
    }

    /// The sum of the windows of the active connections that were not active at the last tick.
    pub fn window_of_beginning(&self) -> Segments {
        Self::sum_of_windows(self.windowed().filter(|connection| connection.begins))
    }

    fn sum_of_windows<'a>(of: impl Iterator<Item = &'a ConnectionView>) -> Segments {
        of.fold(Segments::ZERO, |sum, c| sum.saturating_add(c.figures.cwnd))
    }

    /// The rate at which the active connections with this limit delivered in the last tick, which
    /// lasted for `tick`.
    pub(crate) fn rate_of(&self, limit: Limit, tick: Duration) -> Rate {
        let of = self.active().filter(|connection| connection.limit == limit);
        of.map(|connection| Rate::of(connection.moved(), tick)).sum()
    }

    /// The largest segment size among the active connections that obey a window; of all active ones where none
    /// does, and 1448 bytes where none is known.
    pub fn mss(&self) -> Bytes {
        let windowed = self.windowed().map(|c| c.figures.mss).max();
        let largest = windowed.or_else(|| self.active().map(|c| c.figures.mss).max());
        let largest = largest.unwrap_or(Bytes::ZERO);
        if largest > Bytes::ZERO { largest } else { Bytes::new(1448) }
    }
}

/// What a station announces about its traffic in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Whether the station sends, or receives.
    pub active: bool,
    /// The rate of payload, the mean over four ticks.
    pub rate: Rate,
    /// The rate that the station reaches alone in this direction, where it is known (`Max_i` of
    /// Matsuno et al.).
    pub max_rate: Option<Rate>,
    /// The minimum RTT, where it was measured.
    pub min_rtt: Option<Duration>,
    /// The queueing delay: the RTT minus its minimum.
    pub growth: Duration,
}

/// The figures and requests that a station announces about itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Announcement {
    /// What the station sends.
    pub up: Traffic,
    /// What the station receives.
    pub down: Traffic,
    /// The PHY rate of the station, where it is known.
    pub link_rate: Option<Rate>,
    /// The station's request to its peers to leave a rate free. It stays announced while it
    /// is refused, that is, while the airtime that is already reserved leaves no room for it.
    pub reservation: Option<Reservation>,
    /// The station's request for a turn, while it has transfers.
    pub turn: Option<Turn>,
}

impl Announcement {
    /// The traffic in one direction.
    pub fn of(&self, direction: Direction) -> &Traffic {
        match direction {
            Direction::Up => &self.up,
            Direction::Down => &self.down,
        }
    }

    /// Whether the station sends or receives.
    pub fn is_active(&self) -> bool {
        self.up.active || self.down.active
    }
}

/// A live peer, as its last message describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerView {
    /// The id of the peer.
    pub station: StationId,
    /// The longest time from the peer's last message to its next one.
    pub interval: Duration,
    /// The time since the peer's last message.
    pub age: Duration,
    /// The announcement of the peer.
    pub announced: Announcement,
    /// What is known of the law that the peer holds.
    pub law: PeerLaw,
}

/// The RTT of a station: the mean over its sending connections, weighted by their congestion
/// windows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RttView {
    /// The smoothed RTT.
    pub current: Duration,
    /// The minimum RTT.
    pub min: Duration,
    /// The queueing delay: `current - min`.
    pub growth: Duration,
}

/// The observation of a law at one tick.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    /// The PHY rate of the data frames that this station sends, where it is known. The agent takes
    /// it from several reports of the driver, because the rate of the last frame varies.
    pub link_rate: Option<Rate>,
    /// What this station sends.
    pub up: OwnTraffic,
    /// What this station receives.
    pub down: OwnTraffic,
    /// The peers on the same access point that matter to others, by id. They are the live peers that
    /// are active or have just been (a rate is above zero), or have asked for a rate since they are
    /// known.
    pub peers: Vec<PeerView>,
    /// The number of all live peers.
    pub live_peers: u32,
    /// The number of stations at the access point that send or receive: the active peers, and this
    /// station while it is active. At least 1.
    pub senders: u32,
    /// The Unix time of this tick as the system's clock has it, where it is known.
    pub unix_time: Option<Duration>,
    /// The aggregate goodput of both directions: for each, the largest sum, in the last ten seconds,
    /// of the rates that this station and its active peers announce.
    pub total_rate: Rate,
    /// The access point's buffer in packets, as configured.
    pub access_point_buffer: u32,
    /// The number of data segments that one ACK acknowledges.
    pub segments_per_ack: u32,
}

impl Default for Observation {
    fn default() -> Self {
        Self {
            link_rate: None,
            up: OwnTraffic::default(),
            down: OwnTraffic::default(),
            peers: Vec::new(),
            live_peers: 0,
            senders: 1,
            unix_time: None,
            total_rate: Rate::ZERO,
            access_point_buffer: 300,
            segments_per_ack: 2,
        }
    }
}

impl Observation {
    /// What this station moves in one direction.
    pub fn of(&self, direction: Direction) -> &OwnTraffic {
        match direction {
            Direction::Up => &self.up,
            Direction::Down => &self.down,
        }
    }

    pub(crate) fn of_mut(&mut self, direction: Direction) -> &mut OwnTraffic {
        match direction {
            Direction::Up => &mut self.up,
            Direction::Down => &mut self.down,
        }
    }

    /// Whether this station sends or receives.
    pub fn is_active(&self) -> bool {
        self.up.is_active() || self.down.is_active()
    }

    /// Whether stations send and stations receive.
    pub(crate) fn has_both_directions(&self) -> bool {
        let moves = |direction| {
            let peers = self.peers.iter().map(|peer| peer.announced.of(direction));
            self.of(direction).is_active() || peers.into_iter().any(|traffic| traffic.active)
        };
        moves(Direction::Up) && moves(Direction::Down)
    }

    /// The largest segment size among the active connections of both directions; 1448 bytes where none
    /// is known.
    pub fn mss(&self) -> Bytes {
        if self.up.is_active() { self.up.mss() } else { self.down.mss() }
    }

    /// The observation as the part of a law for one direction sees it.
    pub(crate) fn side(&self, direction: Direction) -> Side<'_> {
        Side { seen: self, direction }
    }
}

/// An observation from the side of one direction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Side<'a> {
    pub(crate) seen: &'a Observation,
    pub(crate) direction: Direction,
}

impl<'a> Side<'a> {
    /// What this station moves in this direction.
    pub(crate) fn own(self) -> &'a OwnTraffic {
        self.seen.of(self.direction)
    }

    /// The announced traffic of the peers that are active in this direction.
    pub(crate) fn active_peers(self) -> impl Iterator<Item = &'a Traffic> {
        let traffic = self.seen.peers.iter().map(move |peer| peer.announced.of(self.direction));
        traffic.filter(|traffic| traffic.active)
    }
}

/// The announced traffic of a peer that moves `mbps` Mbit/s, for tests.
#[cfg(test)]
pub(crate) fn traffic(mbps: u64) -> Traffic {
    Traffic { active: true, rate: Rate::from_mbps(mbps), ..Traffic::default() }
}

/// An announcement of uploads for tests.
#[cfg(test)]
pub(crate) fn uploads(up: Traffic) -> Announcement {
    Announcement { up, ..Announcement::default() }
}

/// A peer for tests. Its message has just arrived.
#[cfg(test)]
pub(crate) fn peer(station: u64, announced: Announcement) -> PeerView {
    let interval = Duration::from_secs(1);
    let law = PeerLaw::Unknown;
    PeerView { station: StationId(station), interval, age: Duration::ZERO, announced, law }
}

/// A connection for tests: 100 segments in flight, and an RTT of 50 ms that is also the minimum
/// RTT.
#[cfg(test)]
pub(crate) fn example() -> ConnectionView {
    let rtt = Some(Duration::from_millis(50));
    let figures = Figures {
        cwnd: Segments::new(100),
        mss: Bytes::new(1448),
        smoothed_rtt: rtt,
        latest_rtt: rtt,
        min_rtt: rtt,
        packets_out: Segments::new(100),
        ..Figures::default()
    };
    ConnectionView {
        id: 1,
        figures,
        limit: Limit::Window,
        delivered: 0,
        active: true,
        begins: false,
    }
}
