//! The input of a law: the observation of one tick. It contains only figures that a real device can
//! know.

use std::fmt;

use wakeai_connection::Figures;
use wakeai_units::{Bytes, Duration, Rate, Segments};

use crate::{PeerLaw, Reservation, Turn};

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

/// One of this station's connections over the Wi-Fi interface, at a tick (a decision, one every
/// 0.5 s).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConnectionView {
    /// The kernel's socket cookie.
    pub id: u64,
    /// The figures of the connection.
    pub figures: Figures,
    /// Whether the connection's congestion control algorithm applies bounds.
    pub boundable: bool,
    /// The number of segments that the connection delivered since the last tick; 0 at its first
    /// tick.
    pub delivered: u32,
    /// Whether the connection counts as sending ([`Connection`](crate::Connection) has the rule).
    pub sending: bool,
}

/// This station at a tick.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StationView {
    /// The PHY rate of the data frames that this station sends, where it is known. The agent takes
    /// it from several reports of the driver, because the rate of the last frame varies.
    pub link_rate: Option<Rate>,
    /// The connections that are routed over the Wi-Fi interface.
    pub connections: Vec<ConnectionView>,
}

/// The figures and requests that a station announces about itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Announcement {
    /// Whether the station is sending.
    pub sending: bool,
    /// The delivery rate of the station, the mean over four ticks.
    pub delivery_rate: Rate,
    /// The rate that the station reaches alone, where it is known (`Max_i` of Matsuno et al.).
    pub max_rate: Option<Rate>,
    /// The PHY rate of the station, where it is known.
    pub link_rate: Option<Rate>,
    /// The minimum RTT of the station, where it has measured one.
    pub min_rtt: Option<Duration>,
    /// The queueing delay of the station: its RTT minus its minimum RTT.
    pub growth: Duration,
    /// The station's request to its peers to leave a rate free. It stays announced while it
    /// is refused, that is, while the airtime that is already reserved leaves no room for it.
    pub reservation: Option<Reservation>,
    /// The station's request for a turn, while it has transfers.
    pub turn: Option<Turn>,
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
    /// This station's own connections and link.
    pub own: StationView,
    /// The peers on the same access point that matter to others, by id. They are the live peers that
    /// send or have just sent (their delivery rate is above zero), or have asked for a rate since they
    /// are known.
    pub peers: Vec<PeerView>,
    /// The number of all live peers.
    pub live_peers: u32,
    /// The number of stations at the access point that are sending: the sending peers, and this
    /// station while it sends. At least 1.
    pub senders: u32,
    /// This station's RTT; `None` while no sending connection has a sample.
    pub rtt: Option<RttView>,
    /// The delivery rate of this station since the last tick.
    pub delivery_rate: Rate,
    /// The delivery rate that this station announces: the mean over four ticks.
    pub mean_rate: Rate,
    /// The aggregate goodput: the largest sum, in the last ten seconds, of the delivery rates that
    /// this station and its sending peers announce.
    pub total_rate: Rate,
    /// The rate that this station reaches alone, where it is configured or was measured.
    pub max_rate: Option<Rate>,
    /// The access point's buffer in packets, as configured.
    pub access_point_buffer: u32,
    /// The number of data segments that one ACK acknowledges.
    pub segments_per_ack: u32,
}

impl Default for Observation {
    fn default() -> Self {
        Self {
            own: StationView::default(),
            peers: Vec::new(),
            live_peers: 0,
            senders: 1,
            rtt: None,
            delivery_rate: Rate::ZERO,
            mean_rate: Rate::ZERO,
            total_rate: Rate::ZERO,
            max_rate: None,
            access_point_buffer: 300,
            segments_per_ack: 2,
        }
    }
}

impl Observation {
    /// The connections that count as sending.
    pub fn sending(&self) -> impl Iterator<Item = &ConnectionView> {
        self.own.connections.iter().filter(|connection| connection.sending)
    }

    /// The sum of the congestion windows of the sending connections.
    pub fn window(&self) -> Segments {
        self.sending().fold(Segments::ZERO, |sum, c| sum.saturating_add(c.figures.cwnd))
    }

    /// The largest segment size among the sending connections; 1448 bytes where none is known.
    pub fn mss(&self) -> Bytes {
        let largest = self.sending().map(|c| c.figures.mss).max().unwrap_or(Bytes::ZERO);
        if largest > Bytes::ZERO { largest } else { Bytes::new(1448) }
    }
}

/// An announcement for tests: the station sends at `mbps` Mbit/s, and announces nothing else.
#[cfg(test)]
pub(crate) fn announcement(mbps: u64) -> Announcement {
    let delivery_rate = Rate::from_mbps(mbps);
    Announcement { sending: true, delivery_rate, ..Announcement::default() }
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
    ConnectionView { id: 1, figures, boundable: true, delivered: 0, sending: true }
}
