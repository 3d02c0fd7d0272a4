//! What a law may see: only what a real device can know.

use std::fmt;

use wakeai_connection::Figures;
use wakeai_units::{Bytes, Duration, Rate, Segments};

use crate::Reservation;

/// Names a station among those that share an access point. The operator gives it; it need not be
/// secret, but two stations with the same id see only one of each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StationId(pub u64);

impl fmt::Display for StationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// One of this station's connections over the Wi-Fi interface, at a tick.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConnectionView {
    /// Names the connection while it lives (the kernel's socket cookie).
    pub id: u64,
    /// Its figures.
    pub figures: Figures,
    /// Whether its congestion control obeys bounds.
    pub boundable: bool,
    /// Segments that it delivered since the tick before; 0 at its first.
    pub delivered: u32,
    /// Whether it counts as sending ([`Connection`](crate::Connection) has the rule).
    pub sending: bool,
}

/// This station at a tick.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StationView {
    /// The PHY rate of the data that this station sends, where it is known: not of its last frame,
    /// whatever that was.
    pub link_rate: Option<Rate>,
    /// Connections routed over the Wi-Fi interface, and no others.
    pub connections: Vec<ConnectionView>,
}

/// A live peer as it last announced itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerView {
    /// Its id.
    pub station: StationId,
    /// It will announce itself again within this time.
    pub interval: Duration,
    /// Whether it is sending.
    pub sending: bool,
    /// What it delivers now.
    pub delivery_rate: Rate,
    /// What it reaches alone, where it knows.
    pub max_rate: Option<Rate>,
    /// Its PHY rate, where its driver tells it.
    pub link_rate: Option<Rate>,
    /// Its minimum RTT, where it has one.
    pub min_rtt: Option<Duration>,
    /// How far its RTT is above the minimum.
    pub growth: Duration,
    /// What it asks its peers to leave free, admitted or not.
    pub reservation: Option<Reservation>,
    /// How long ago its last message came.
    pub age: Duration,
}

/// The RTT of a station over its sending connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RttView {
    /// The smoothed RTT.
    pub current: Duration,
    /// The minimum that it is compared with.
    pub min: Duration,
    /// `current - min`: what queues add.
    pub growth: Duration,
}

/// All that a law sees at one tick.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    /// This station's own connections and link.
    pub own: StationView,
    /// The live peers on the same access point, by id.
    pub peers: Vec<PeerView>,
    /// Stations that share the access point and are sending, this one included; at least 1.
    pub senders: u32,
    /// This station's RTT; `None` while no sending connection has a sample.
    pub rtt: Option<RttView>,
    /// What this station delivered since the last tick.
    pub delivery_rate: Rate,
    /// The same as announced: a mean of some seconds.
    pub mean_rate: Rate,
    /// What the air carries in total: the announced rates and the own one, as a windowed maximum.
    pub total_rate: Rate,
    /// What this station reaches alone, where configured or measured.
    pub max_rate: Option<Rate>,
    /// The access point's buffer in packets, as configured or probed.
    pub access_point_buffer: u32,
    /// Data segments that one ACK acknowledges.
    pub segments_per_ack: u32,
}

impl Default for Observation {
    fn default() -> Self {
        Self {
            own: StationView::default(),
            peers: Vec::new(),
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
    /// The connections that have data to send.
    pub fn sending(&self) -> impl Iterator<Item = &ConnectionView> {
        self.own.connections.iter().filter(|connection| connection.sending)
    }

    /// The windows of the sending connections together.
    pub fn window(&self) -> Segments {
        self.sending().fold(Segments::ZERO, |sum, c| sum.saturating_add(c.figures.cwnd))
    }

    /// The largest segment size among the sending connections, 1448 where none says.
    pub fn mss(&self) -> Bytes {
        let largest = self.sending().map(|c| c.figures.mss).max().unwrap_or(Bytes::ZERO);
        if largest > Bytes::ZERO { largest } else { Bytes::new(1448) }
    }
}

/// A peer as tests start from it: sending so many Mbit/s, and nothing more is known.
#[cfg(test)]
pub(crate) fn peer(station: StationId, mbps: u64) -> PeerView {
    PeerView {
        station,
        interval: Duration::from_secs(1),
        sending: true,
        delivery_rate: Rate::from_mbps(mbps),
        max_rate: None,
        link_rate: None,
        min_rtt: None,
        growth: Duration::ZERO,
        reservation: None,
        age: Duration::ZERO,
    }
}

/// A connection as tests start from it: 100 segments in 50 ms, nothing queued.
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
