//! The parts that Wi-Fi and a cellular link have in common: the wired leg, the deliveries and the
//! counters.

use std::collections::VecDeque;

use wakeai_units::{Duration, Instant};
use wakeai_wifi::Wired;

use crate::MAX_PACKET;
use crate::counters::{Airtime, ContenderCounters, Counters};
use crate::error::ConfigError;
use crate::node::{Arrival, Delivery, Destination, Node, Packet, Receivers, StationId, Stations};
use crate::ranges;
use crate::wired::Wire;

/// The wired leg to the server, the packets that have come out, and the counters.
#[derive(Clone, Debug)]
pub(crate) struct Base<P> {
    pub(crate) wired_up: Wire<Transit<P>>,
    pub(crate) wired_down: Wire<Transit<P>>,
    /// Extra delay each way between the wired leg and each station's server.
    wired_delays: Vec<Duration>,
    /// The time of the last event.
    pub(crate) clock: Instant,
    /// The packets that have arrived, none of them at an empty set of stations.
    pub(crate) arrivals: VecDeque<Arrival<P>>,
    pub(crate) departures: Departures<P>,
    pub(crate) counters: Counters,
}

/// A packet on the wire.
#[derive(Clone, Debug)]
pub(crate) struct Transit<P> {
    pub(crate) packet: P,
    pub(crate) from: Node,
    pub(crate) to: Destination,
}

/// An event of the wired leg.
#[derive(Clone, Copy, Debug)]
pub(crate) enum WiredEvent {
    /// The server's full queue has room again.
    Room,
    /// A packet of the server arrives at the access point.
    FromServer,
    /// A packet arrives at the server.
    ToServer,
}

impl<P: Packet> Base<P> {
    /// A base for stations with the extra delays `wired_delays`.
    pub(crate) fn new(wired: &Wired, wired_delays: Vec<Duration>) -> Self {
        let stations = wired_delays.len();
        Self {
            wired_up: Wire::new(wired, stations),
            // The last flow is for the server's broadcasts.
            wired_down: Wire::new(wired, stations + 1),
            wired_delays,
            clock: Instant::ZERO,
            arrivals: VecDeque::new(),
            departures: Departures::new(stations),
            counters: Counters {
                stations: vec![ContenderCounters::default(); stations],
                downlinks: vec![Airtime::default(); stations],
                ..Counters::default()
            },
        }
    }

    /// Sets the time to that of the next event. Events happen in order.
    pub(crate) fn advance(&mut self, at: Instant) {
        debug_assert!(self.clock <= at, "an event of {at} after one of {}", self.clock);
        self.clock = at;
    }

    /// Whether `node` exists.
    pub(crate) fn exists(&self, node: Node) -> bool {
        match node {
            Node::Server => true,
            Node::Station(id) => id.index() < self.wired_delays.len(),
        }
    }

    /// Checks that a packet can be received, and returns it. Otherwise the packet is counted as
    /// refused and returned as the error.
    pub(crate) fn admit(&mut self, from: Node, to: Destination, packet: P) -> Result<P, P> {
        let receivable = match to {
            Destination::Unicast(node) => node != from && self.exists(node),
            Destination::Broadcast => true,
        };
        if receivable && self.exists(from) && packet.len() <= MAX_PACKET {
            return Ok(packet);
        }
        self.counters.refused += 1;
        Err(packet)
    }

    /// Puts a packet of the server on the wire. Where the queue is full, the packet is given back.
    pub(crate) fn send_from_server(
        &mut self,
        now: Instant,
        to: Destination,
        packet: P,
    ) -> Result<(), P> {
        let flow = match to {
            Destination::Unicast(Node::Station(id)) => id.index(),
            Destination::Unicast(Node::Server) | Destination::Broadcast => self.wired_delays.len(),
        };
        let extra = self.wired_delays.get(flow).copied().unwrap_or_default();
        let length = packet.len();
        let transit = Transit { packet, from: Node::Server, to };
        let counters = &mut self.counters.wired_down;
        let sent = self.wired_down.send(now, flow, extra, length, transit, counters);
        sent.map_err(|transit| transit.packet)
    }

    /// Puts a packet of a station on the wire to the server. A full queue drops the packet.
    pub(crate) fn send_to_server(&mut self, at: Instant, station: usize, packet: P) {
        let from = Node::Station(StationId(station as u32));
        let to = Destination::Unicast(Node::Server);
        let (length, extra) = (packet.len(), self.wired_delays[station]);
        let counters = &mut self.counters.wired_up;
        let transit = Transit { packet, from, to };
        // An error is a dropped packet, and `send` has already counted it.
        let _ = self.wired_up.send(at, station, extra, length, transit, counters);
    }

    /// The next event of the wire and its time.
    pub(crate) fn next_event(&self) -> Option<(Instant, WiredEvent)> {
        let room = self.wired_down.next_room().map(|at| (at, WiredEvent::Room));
        let down = self.wired_down.next_arrival().map(|at| (at, WiredEvent::FromServer));
        let up = self.wired_up.next_arrival().map(|at| (at, WiredEvent::ToServer));
        earlier(earlier(room, down), up)
    }

    /// Handles the event. Where a packet of the server has arrived at the access point, the packet
    /// is returned.
    pub(crate) fn handle(&mut self, at: Instant, event: WiredEvent) -> Option<Transit<P>> {
        match event {
            WiredEvent::Room => self.wired_down.depart(at),
            WiredEvent::FromServer => {
                return self.wired_down.arrive(&mut self.counters.wired_down);
            }
            WiredEvent::ToServer => {
                let transit = self.wired_up.arrive(&mut self.counters.wired_up)?;
                self.deliver(at, Node::Server, transit.from, transit.packet);
            }
        }
        None
    }

    /// Hands a packet over to the driver.
    pub(crate) fn deliver(&mut self, at: Instant, to: Node, from: Node, packet: P) {
        self.arrivals.push_back(Arrival { at, to: Receivers::Node(to), from, packet });
    }

    /// Hands a broadcast over to the driver. `to` are the stations at which it has arrived.
    pub(crate) fn deliver_broadcast(&mut self, at: Instant, to: Stations, from: Node, packet: P) {
        if !to.is_empty() {
            self.arrivals.push_back(Arrival { at, to: Receivers::Stations(to), from, packet });
        }
    }

    /// The oldest arrival at one node that was not polled yet.
    pub(crate) fn poll_delivery(&mut self) -> Option<Delivery<P>> {
        let next = self.arrivals.front_mut()?;
        let (at, from) = (next.at, next.from);
        if let Receivers::Stations(stations) = &mut next.to {
            let to = Node::Station(stations.pop_first().expect("the set is not empty"));
            if !stations.is_empty() {
                return Some(Delivery { at, to, from, packet: next.packet.clone() });
            }
            next.to = Receivers::Node(to);
        }
        let Arrival { to, packet, .. } = self.arrivals.pop_front()?;
        let Receivers::Node(to) = to else { unreachable!("the last station was taken above") };
        Some(Delivery { at, to, from, packet })
    }

    /// Packets on the wire and in its queues.
    pub(crate) fn packets(&self) -> usize {
        self.wired_up.packets() + self.wired_down.packets()
    }

    /// The index of `station`, or an error where this station does not exist.
    pub(crate) fn check_station(&self, station: StationId) -> Result<usize, ConfigError> {
        let stations = self.wired_delays.len();
        let exists = self.exists(Node::Station(station));
        let no_such = ConfigError::NoSuchStation { found: station.0, stations };
        exists.then_some(station.index()).ok_or(no_such)
    }

    /// Changes a station's extra delay; see [`crate::Medium::set_wired_delay`].
    pub(crate) fn set_wired_delay(
        &mut self,
        station: StationId,
        delay: Duration,
    ) -> Result<(), ConfigError> {
        let place = self.check_station(station)?;
        ranges::delay("wired_delay", delay)?;
        self.wired_delays[place] = delay;
        Ok(())
    }
}

/// The earlier of two events. Where both have the same time, it is `first`.
pub(crate) fn earlier<E>(
    first: Option<(Instant, E)>,
    second: Option<(Instant, E)>,
) -> Option<(Instant, E)> {
    match (first, second) {
        (Some(first), Some(second)) => Some(if second.0 < first.0 { second } else { first }),
        (first, second) => first.or(second),
    }
}

/// A packet that the queue of its station no longer keeps. It has arrived, was given up, or was
/// dropped by a queue that had accepted it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Departure<P> {
    /// The station whose queue the packet has left.
    pub station: StationId,
    /// The packet.
    pub packet: P,
}

/// Departures of the watched stations.
#[derive(Clone, Debug)]
pub(crate) struct Departures<P> {
    watched: Vec<bool>,
    pub(crate) seen: VecDeque<Departure<P>>,
}

impl<P: Packet> Departures<P> {
    fn new(stations: usize) -> Self {
        Self { watched: vec![false; stations], seen: VecDeque::new() }
    }

    /// Records the departures of `station` from now on.
    pub(crate) fn watch(&mut self, station: StationId) {
        if let Some(watched) = self.watched.get_mut(station.index()) {
            *watched = true;
        }
    }

    /// Returns a function that records packets as departures of `station`, where this station is
    /// watched. `None` stands for the access point, which is never watched.
    pub(crate) fn of(&mut self, station: Option<usize>) -> impl FnMut(&P) {
        let watched = station.filter(|station| self.watched[*station]);
        move |packet| {
            if let Some(station) = watched {
                let station = StationId(station as u32);
                self.seen.push_back(Departure { station, packet: packet.clone() });
            }
        }
    }
}
