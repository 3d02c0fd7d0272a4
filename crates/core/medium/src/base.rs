//! The parts that Wi-Fi and a cellular link have in common: the wired leg, the deliveries and the
//! counters.

use std::collections::VecDeque;

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use wakeai_units::{Duration, Instant};
use wakeai_wifi::Wired;

use crate::counters::{Airtime, ContenderCounters, Counters};
use crate::error::ConfigError;
use crate::node::{Arrival, Delivery, Destination, Node, Packet, Receivers, StationId, Stations};
use crate::ranges;
use crate::wired::Wire;
use crate::{MAX_PACKET, generator};

/// Keeps the losses of the wire apart from what the medium draws with the same seed: the letters WIRELOSS.
const SEED_OF_LOSSES: u64 = u64::from_be_bytes(*b"WIRELOSS");

/// The wired leg between one access point and the server.
#[derive(Clone, Debug)]
struct Leg<P> {
    up: Wire<Transit<P>>,
    down: Wire<Transit<P>>,
}

impl<P> Leg<P> {
    /// The next event of the leg with this number, and its time.
    #[inline]
    fn next_event(&self, number: u32) -> Option<(Instant, WiredEvent)> {
        let room = self.down.next_room().map(|at| (at, WiredEvent::Room(number)));
        let down = self.down.next_arrival().map(|at| (at, WiredEvent::FromServer(number)));
        let up = self.up.next_arrival().map(|at| (at, WiredEvent::ToServer(number)));
        earlier(earlier(room, down), up)
    }
}

/// The wired legs to the server, the packets that have come out, and the counters.
#[derive(Clone, Debug)]
pub(crate) struct Base<P> {
    /// By access point.
    legs: Vec<Leg<P>>,
    /// For each station, the leg of its access point.
    leg_of: Vec<u32>,
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

/// An event of the wired leg with this number.
#[derive(Clone, Copy, Debug)]
pub(crate) enum WiredEvent {
    /// The server's full queue has room again.
    Room(u32),
    /// A packet of the server arrives at the access point.
    FromServer(u32),
    /// A packet arrives at the server.
    ToServer(u32),
}

impl<P: Packet> Base<P> {
    /// A base for stations with the extra delays `wired_delays`, which use the legs `leg_of`. The losses of the legs
    /// are drawn from generators of their own, which follow from the state of `rng`.
    pub(crate) fn new<'a>(
        legs: impl Iterator<Item = &'a Wired>,
        leg_of: Vec<u32>,
        wired_delays: Vec<Duration>,
        rng: &Pcg64Mcg,
    ) -> Self {
        let stations = wired_delays.len();
        let mut seeds = generator(rng.clone().next_u64() ^ SEED_OF_LOSSES);
        let mut wire = |wired, flows| Wire::new(wired, flows, Pcg64Mcg::from_rng(&mut seeds));
        // The last flow downwards is for the server's broadcasts.
        let leg = |wired| Leg { up: wire(wired, stations), down: wire(wired, stations + 1) };
        Self {
            legs: legs.map(leg).collect(),
            leg_of,
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

    /// Puts a packet of the server on the wire. Where the queue is full, the packet is given back. A
    /// broadcast goes over every leg, and is given back where no leg has room.
    pub(crate) fn send_from_server(
        &mut self,
        now: Instant,
        to: Destination,
        packet: P,
    ) -> Result<(), P> {
        if let Destination::Unicast(Node::Station(id)) = to {
            return self.send_down(now, self.leg_of(id.index()), Node::Server, to, packet);
        }
        let last = self.legs.len() - 1;
        let mut sent = false;
        for leg in 0..last {
            sent |= self.send_down(now, leg, Node::Server, to, packet.clone()).is_ok();
        }
        let last = self.send_down(now, last, Node::Server, to, packet);
        if sent { Ok(()) } else { last }
    }

    /// Puts a packet on the wire to an access point. Where the queue is full, the packet is given back.
    fn send_down(
        &mut self,
        now: Instant,
        leg: usize,
        from: Node,
        to: Destination,
        packet: P,
    ) -> Result<(), P> {
        let flow = match to {
            Destination::Unicast(Node::Station(id)) => id.index(),
            Destination::Unicast(Node::Server) | Destination::Broadcast => self.wired_delays.len(),
        };
        let extra = self.wired_delays.get(flow).copied().unwrap_or_default();
        let length = packet.len();
        let transit = Transit { packet, from, to };
        let counters = &mut self.counters.wired_down;
        let sent = self.legs[leg].down.send(now, flow, extra, length, transit, counters);
        sent.map_err(|transit| transit.packet)
    }

    /// Puts a packet of a station on the wire to the server, which forwards it where it is for a station of
    /// another access point. A full queue drops the packet.
    pub(crate) fn send_up(&mut self, at: Instant, station: usize, to: Destination, packet: P) {
        let from = Node::Station(StationId(station as u32));
        let (length, extra) = (packet.len(), self.wired_delays[station]);
        let leg = self.leg_of(station);
        let counters = &mut self.counters.wired_up;
        let transit = Transit { packet, from, to };
        // An error is a dropped packet, and `send` has already counted it.
        let _ = self.legs[leg].up.send(at, station, extra, length, transit, counters);
    }

    /// The leg of a station's access point.
    pub(crate) fn leg_of(&self, station: usize) -> usize {
        self.leg_of[station] as usize
    }

    /// The full packets that the server's queues still take: those of the leg that has the least room.
    pub(crate) fn room(&self) -> usize {
        self.legs.iter().map(|leg| leg.down.room(self.clock)).min().unwrap_or(0)
    }

    /// Packets in the server's queues for the wire.
    pub(crate) fn queued_at_server(&self) -> usize {
        self.legs.iter().map(|leg| leg.down.queued(self.clock)).sum()
    }

    /// Packets in the access points' queues for the wire.
    pub(crate) fn queued_for_server(&self) -> usize {
        self.legs.iter().map(|leg| leg.up.queued(self.clock)).sum()
    }

    /// The next event of the wire and its time.
    #[inline]
    pub(crate) fn next_event(&self) -> Option<(Instant, WiredEvent)> {
        // Most media have one leg, and this is asked for before each event.
        match &self.legs[..] {
            [leg] => leg.next_event(0),
            legs => {
                let events = (0..).zip(legs).map(|(number, leg)| leg.next_event(number));
                events.fold(None, earlier)
            }
        }
    }

    /// Handles the event. Where a packet of the server has arrived at an access point, the packet
    /// and the number of the access point are returned.
    pub(crate) fn handle(&mut self, at: Instant, event: WiredEvent) -> Option<(usize, Transit<P>)> {
        match event {
            WiredEvent::Room(leg) => self.legs[leg as usize].down.depart(at),
            WiredEvent::FromServer(leg) => {
                let leg = leg as usize;
                let transit = self.legs[leg].down.arrive(&mut self.counters.wired_down)?;
                return Some((leg, transit));
            }
            WiredEvent::ToServer(leg) => {
                let transit = self.legs[leg as usize].up.arrive(&mut self.counters.wired_up)?;
                if let Destination::Unicast(Node::Station(id)) = transit.to {
                    // A full queue drops the packet, and `send` has counted it.
                    let other = self.leg_of(id.index());
                    let _ = self.send_down(at, other, transit.from, transit.to, transit.packet);
                } else {
                    self.deliver(at, Node::Server, transit.from, transit.packet);
                }
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
        self.legs.iter().map(|leg| leg.up.packets() + leg.down.packets()).sum()
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
#[inline]
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
    /// The attempts that its frame took; zero where it was never on the air.
    pub attempts: u8,
    /// Whether its receiver has acknowledged it. A broadcast needs no acknowledgement, and counts as acknowledged.
    pub acknowledged: bool,
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
    pub(crate) fn of(&mut self, station: Option<usize>) -> impl FnMut(&P, u8, bool) {
        let watched = station.filter(|station| self.watched[*station]);
        move |packet, attempts, acknowledged| {
            if let Some(station) = watched {
                let (station, packet) = (StationId(station as u32), packet.clone());
                self.seen.push_back(Departure { station, packet, attempts, acknowledged });
            }
        }
    }
}
