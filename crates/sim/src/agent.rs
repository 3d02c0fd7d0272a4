//! A station's agent: the controller, and its bounds put to work on the station's connections.
//!
//! As the daemon does it: every tick a view of all connections, the law's bounds shared out among
//! those that are sending, and a default for connections that begin before the next tick.

use std::collections::BTreeMap;

use wakeai_algorithms::State;
use wakeai_control::{
    Bounds, CongestionState, ConnectionView, Controller, StationView, divide, share_of_new,
};
use wakeai_tcp::{Sender, SenderSample};
use wakeai_units::{Bytes, Duration, Instant, Rate, Segments};

use crate::announcing::Announcing;
use crate::connection::Connection;

/// More than this within a tick is sending, even where nothing is on its way at the moment of the
/// tick: an initial window (RFC 6928).
const SENDING_SEGMENTS: u64 = 10;

/// A running agent.
pub(crate) struct Agent {
    pub(crate) controller: Controller,
    /// Whether it binds connections, or only watches.
    binds: bool,
    link_rate: Option<Rate>,
    announcing: Option<Announcing>,
    /// Segments that each connection had delivered at the last tick.
    delivered: BTreeMap<u64, u64>,
    /// What a connection gets that has no bounds of its own.
    default: SocketBounds,
}

impl std::fmt::Debug for Agent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Agent").field("default", &self.default).finish_non_exhaustive()
    }
}

/// A sender of the station at a tick.
#[derive(Clone, Debug)]
pub(crate) struct Own {
    /// Names it.
    pub(crate) id: u64,
    pub(crate) sample: SenderSample,
    pub(crate) mss: u32,
    /// Whether its algorithm obeys bounds.
    pub(crate) boundable: bool,
}

/// Bounds of one connection as its algorithm takes them: 0 is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SocketBounds {
    pub(crate) floor: u32,
    pub(crate) ceiling: u32,
    pub(crate) pacing_bytes_per_second: u64,
    pub(crate) small_queue_bytes: u64,
}

impl SocketBounds {
    /// Tells a sender: its algorithm obeys at the next ACK.
    pub(crate) fn bind(self, sender: &mut Sender) {
        sender.set_bounds(
            self.floor,
            self.ceiling,
            self.pacing_bytes_per_second,
            self.small_queue_bytes,
        );
    }
}

impl Agent {
    pub(crate) fn new(
        controller: Controller,
        binds: bool,
        link_rate: Option<Rate>,
        announcing: Option<Announcing>,
    ) -> Self {
        let default = SocketBounds::default();
        Self { controller, binds, link_rate, announcing, delivered: BTreeMap::new(), default }
    }

    /// The presence message that is due, as the peers are to hear it.
    pub(crate) fn poll_transmit(&mut self, now: Instant) -> Option<Vec<u8>> {
        let message = self.controller.poll_transmit(now)?;
        Some(match &self.announcing {
            Some(announcing) => announcing.instead_of(&message),
            None => message,
        })
    }

    /// The driver tells another PHY rate from now on.
    pub(crate) fn set_link_rate(&mut self, rate: Rate) {
        self.link_rate = Some(rate);
    }

    /// What a connection that begins now is bound by.
    pub(crate) fn default_bounds(&self) -> SocketBounds {
        self.default
    }

    /// Decides until the next tick. Gives the bounds of every boundable connection of `own`, in its
    /// order.
    pub(crate) fn tick(&mut self, now: Instant, own: &[Own]) -> Vec<(u64, SocketBounds)> {
        let connections = own.iter().map(|own| view(own, self.delivered.get(&own.id))).collect();
        let station = StationView { link_rate: self.link_rate, connections };
        self.delivered = station.connections.iter().map(|one| (one.id, one.delivered)).collect();
        let bounds = self.controller.handle_tick(now, &station);
        while self.controller.poll_event().is_some() {}
        if !self.binds {
            return Vec::new();
        }
        let boundable = own.iter().zip(station.connections).filter(|(own, _)| own.boundable);
        let boundable: Vec<ConnectionView> = boundable.map(|(_, view)| view).collect();
        self.default = in_socket(share_of_new(bounds, &boundable));
        let parts: BTreeMap<u64, Bounds> = divide(bounds, &boundable).into_iter().collect();
        let of = |id| parts.get(&id).map_or(self.default, |part| in_socket(*part));
        boundable.iter().map(|view| (view.id, of(view.id))).collect()
    }
}

impl Own {
    /// As far as an agent sees it.
    pub(crate) fn of(connection: &Connection) -> Self {
        Self {
            id: u64::from(connection.id),
            sample: connection.sender.sample(),
            mss: connection.mss,
            boundable: connection.boundable,
        }
    }
}

/// What a law sees of a connection that had delivered so many segments at the tick before.
fn view(own: &Own, delivered_before: Option<&u64>) -> ConnectionView {
    let sample = &own.sample;
    let delivered = delivered_before.map_or(0, |before| sample.delivered - before);
    let none = Duration::ZERO;
    let flying = (sample.packets_out + sample.retrans_out)
        .saturating_sub(sample.sacked_out + sample.lost_out);
    ConnectionView {
        id: own.id,
        cwnd: Segments::new(sample.cwnd),
        mss: Bytes::new(u64::from(own.mss)),
        smoothed_rtt: sample.smoothed_rtt.unwrap_or(none),
        latest_rtt: sample.latest_rtt.unwrap_or(none),
        min_rtt: sample.min_rtt.unwrap_or(none),
        // The laws count what was delivered themselves.
        delivery_rate: Rate::ZERO,
        delivered: sample.delivered,
        in_flight: Segments::new(flying),
        congestion_state: match sample.state {
            State::Open => CongestionState::Open,
            State::Disorder => CongestionState::Disorder,
            State::Cwr => CongestionState::Cwr,
            State::Recovery => CongestionState::Recovery,
            State::Loss => CongestionState::Loss,
        },
        sending: delivered > SENDING_SEGMENTS || sample.packets_out > 0 || sample.send_queue > 0,
    }
}

/// 0 means none; a rate that is asked for is never rounded down to that.
fn in_socket(bounds: Bounds) -> SocketBounds {
    SocketBounds {
        floor: bounds.floor.get(),
        ceiling: if bounds.ceiling == Segments::MAX { 0 } else { bounds.ceiling.get().max(1) },
        pacing_bytes_per_second: bounds.pacing.map_or(0, |rate| rate.bytes_per_second().max(1)),
        small_queue_bytes: bounds.small_queue.get(),
    }
}
