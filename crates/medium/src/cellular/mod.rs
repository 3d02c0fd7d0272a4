//! A cellular link: a base station that grants the air, and deep buffers.
//!
//! The stations share an uplink and a downlink that do not disturb each other. Nobody contends:
//! the base station cuts each direction into transmission time intervals of 1 ms and grants them to
//! those who have something to send, so nothing is ever lost on the air, a station alone has all of
//! it, and what grows under load is the queue. There is no broadcast: a station hears the base
//! station alone, and so an agent on it knows of no peers.
//!
//! What it does not have: fading and rate adaptation, retransmissions of the air (HARQ), the delay
//! from a request to its grant, several base stations, and sleeping stations.

mod config;
mod direction;
mod turns;

use std::collections::VecDeque;

use wakeai_units::{Duration, Instant, Rate};
use wakeai_wifi::Cell;

pub use config::{CellularConfig, CellularStationConfig};
use direction::Direction;

use crate::access::Contender;
use crate::counters::{Airtime, ContenderCounters, Counters};
use crate::departures::{Departure, Departures};
use crate::error::ConfigError;
use crate::link::fits_a_frame;
use crate::medium::Transit;
use crate::node::{Delivery, Destination, Kind, Node, Packet, StationId};
use crate::validate;
use crate::wired::Wire;

/// A cellular base station, its stations, and the wired leg to the server.
///
/// Order of calls and meaning of time as for [`Wifi`](crate::Wifi).
#[derive(Clone, Debug)]
pub struct Cellular<P> {
    uplink: Direction<Transit<P>>,
    downlink: Direction<Transit<P>>,
    wired_up: Wire<Transit<P>>,
    wired_down: Wire<Transit<P>>,
    /// By station.
    wired_delays: Vec<Duration>,
    /// The last event.
    clock: Instant,
    deliveries: VecDeque<Delivery<P>>,
    departures: Departures<P>,
    counters: Counters,
}

/// What can happen next.
#[derive(Clone, Copy)]
enum Event {
    RoomOnTheWire,
    FromServer,
    ToServer,
    Uplink,
    Downlink,
}

impl<P: Packet> Cellular<P> {
    /// An idle link at [`Instant::ZERO`].
    ///
    /// # Errors
    ///
    /// A value out of its range.
    pub fn new(config: &CellularConfig) -> Result<Self, ConfigError> {
        config::validate(config)?;
        let CellularConfig { cell, buffer, wired, stations: configs } = config;
        let Cell { uplink, downlink, scheduler } = *cell;
        let stations = configs.len();
        let queues = configs.iter().map(|station| station.queue).collect();
        let buffers = vec![*buffer; stations];
        Ok(Self {
            uplink: Direction::new(uplink, scheduler, queues),
            downlink: Direction::new(downlink, scheduler, buffers),
            wired_up: Wire::new(wired, stations),
            wired_down: Wire::new(wired, stations),
            wired_delays: configs.iter().map(|station| station.wired_delay).collect(),
            clock: Instant::ZERO,
            deliveries: VecDeque::new(),
            departures: Departures::new(stations),
            counters: Counters {
                stations: vec![ContenderCounters::default(); stations],
                downlinks: vec![Airtime::default(); stations],
                ..Counters::default()
            },
        })
    }

    /// Takes a packet from a node's host. A broadcast goes nowhere, and nobody learns of that.
    ///
    /// # Errors
    ///
    /// The packet itself: the sender's queue is full (counted as a queue drop), or nobody can
    /// receive it (counted as refused).
    pub fn enqueue(
        &mut self,
        now: Instant,
        from: Node,
        to: Destination,
        packet: P,
    ) -> Result<(), P> {
        let now = now.max(self.clock);
        match to {
            Destination::Unicast(receiver)
                if self.exists(from)
                    && self.exists(receiver)
                    && receiver != from
                    && fits_a_frame(packet.len()) => {}
            Destination::Broadcast if self.exists(from) => {
                self.counters.unheard_broadcasts += 1;
                return Ok(());
            }
            _ => {
                self.counters.refused += 1;
                return Err(packet);
            }
        }
        let shape = (packet.len(), packet.kind());
        let transit = Transit { packet, from, to };
        let sent = match (from, to) {
            (Node::Station(station), _) => self.send_up(now, station.index(), shape, transit),
            (Node::Server, Destination::Unicast(Node::Station(station))) => {
                let (flow, counters) = (station.index(), &mut self.counters.wired_down);
                let extra = self.wired_delays[flow];
                self.wired_down.send(now, flow, extra, shape.0, transit, counters)
            }
            (Node::Server, _) => unreachable!("the server neither broadcasts nor hears itself"),
        };
        sent.map_err(|transit| transit.packet)
    }

    fn exists(&self, node: Node) -> bool {
        match node {
            Node::Server => true,
            Node::Station(id) => id.index() < self.wired_delays.len(),
        }
    }

    fn send_up(
        &mut self,
        now: Instant,
        station: usize,
        shape: (usize, Kind),
        transit: Transit<P>,
    ) -> Result<(), Transit<P>> {
        let sent = self.uplink.push(now, station, shape, transit);
        let counters = &mut self.counters.stations[station];
        counters.offered += 1;
        counters.queue_drops += u64::from(sent.is_err());
        sent
    }

    fn send_down(&mut self, now: Instant, station: usize, transit: Transit<P>) {
        let shape = (transit.packet.len(), transit.packet.kind());
        let sent = self.downlink.push(now, station, shape, transit);
        self.counters.access_point.offered += 1;
        self.counters.access_point.queue_drops += u64::from(sent.is_err());
    }

    /// Packets that still fit into the queue that `from` sends through: a station's own, or for
    /// the server the wired leg's, as of the last event.
    pub fn room(&self, from: Node) -> usize {
        match from {
            Node::Server => self.wired_down.room(self.clock),
            Node::Station(id) if self.exists(from) => self.uplink.room(id.index()),
            Node::Station(_) => 0,
        }
    }

    /// Lets everything happen that is due at or before `now`, in order.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some((at, event)) = self.next_event().filter(|(at, _)| *at <= now) {
            self.clock = at;
            match event {
                Event::RoomOnTheWire => self.wired_down.depart(at),
                Event::FromServer => self.arrive_from_server(at),
                Event::ToServer => self.arrive_at_server(at),
                Event::Uplink => self.turn_uplink(at),
                Event::Downlink => self.turn_downlink(at),
            }
        }
    }

    /// The next packet that has arrived, in the order of arrival.
    pub fn poll_delivery(&mut self) -> Option<Delivery<P>> {
        self.deliveries.pop_front()
    }

    /// When something happens next, if nothing is enqueued before: also when a queue that was full
    /// has room again. It may lie in the past where [`Cellular::handle_timeout`] is due.
    pub fn next_timeout(&self) -> Option<Instant> {
        self.next_event().map(|(at, _)| at)
    }

    /// At the same instant the wire goes first, so that what arrives can still be granted; then
    /// the uplink, so that what goes from station to station can be, too.
    fn next_event(&self) -> Option<(Instant, Event)> {
        let room = self.wired_down.next_room().map(|at| (at, Event::RoomOnTheWire));
        let down = self.wired_down.next_arrival().map(|at| (at, Event::FromServer));
        let up = self.wired_up.next_arrival().map(|at| (at, Event::ToServer));
        let uplink = self.uplink.next_boundary().map(|at| (at, Event::Uplink));
        let downlink = self.downlink.next_boundary().map(|at| (at, Event::Downlink));
        [room, down, up, uplink, downlink].into_iter().flatten().min_by_key(|(at, _)| *at)
    }

    fn arrive_from_server(&mut self, at: Instant) {
        let Some(transit) = self.wired_down.arrive(&mut self.counters.wired_down) else { return };
        if let Destination::Unicast(Node::Station(station)) = transit.to {
            self.send_down(at, station.index(), transit);
        }
    }

    fn arrive_at_server(&mut self, at: Instant) {
        let Some(transit) = self.wired_up.arrive(&mut self.counters.wired_up) else { return };
        let Transit { packet, from, .. } = transit;
        self.deliveries.push_back(Delivery { at, to: Node::Server, from, packet });
    }

    /// An interval of the uplink ends, and the next begins.
    fn turn_uplink(&mut self, at: Instant) {
        while let Some((station, transit)) = self.uplink.arrive() {
            let counters = &mut self.counters.stations[station];
            counters.delivered += 1;
            counters.airtime = self.uplink.granted_to(station);
            self.departures.of(Contender::Station(station))(&transit.packet);
            if let Destination::Unicast(Node::Station(to)) = transit.to {
                self.send_down(at, to.index(), transit);
                continue;
            }
            let (length, extra) = (transit.packet.len(), self.wired_delays[station]);
            let counters = &mut self.counters.wired_up;
            // The packet that is given back is a drop, and counted there.
            let _ = self.wired_up.send(at, station, extra, length, transit, counters);
        }
        self.uplink.grant(at);
        self.account(at);
    }

    /// An interval of the downlink ends, and the next begins.
    fn turn_downlink(&mut self, at: Instant) {
        while let Some((station, transit)) = self.downlink.arrive() {
            self.counters.access_point.delivered += 1;
            self.counters.downlinks[station] = self.downlink.granted_to(station);
            let Transit { packet, from, .. } = transit;
            let to = Node::Station(StationId(station as u32));
            self.deliveries.push_back(Delivery { at, to, from, packet });
        }
        self.downlink.grant(at);
        self.account(at);
    }

    /// The two directions add up: their used and their idle time is twice the time that has gone.
    fn account(&mut self, at: Instant) {
        let (mut both, down) = (self.uplink.used(), self.downlink.used());
        both.add(&down);
        let gone = at - Instant::ZERO;
        both.idle = (gone + gone).saturating_sub(both.carried());
        self.counters.access_point.airtime = down;
        self.counters.airtime = both;
    }

    /// Packets that are somewhere between their sender and [`Cellular::poll_delivery`].
    pub fn packets_inside(&self) -> usize {
        let air = self.uplink.packets() + self.downlink.packets();
        air + self.wired_up.packets() + self.wired_down.packets()
    }

    /// Packets in the queue that `from` sends through: a station's own, or for the server the wired
    /// leg's, as of the last event.
    pub fn queued(&self, from: Node) -> usize {
        match from {
            Node::Server => self.wired_down.queued(self.clock),
            Node::Station(id) if self.exists(from) => self.uplink.queued(id.index()),
            Node::Station(_) => 0,
        }
    }

    /// Packets in the base station's queues for the air, over all stations.
    pub fn queued_at_access_point(&self) -> usize {
        self.downlink.all_queued()
    }

    /// Packets in the base station's queue for the wire, as of the last event.
    pub fn queued_for_server(&self) -> usize {
        self.wired_up.queued(self.clock)
    }

    /// From now on [`Cellular::poll_departure`] tells when packets leave this station's queue.
    pub fn watch_departures(&mut self, station: StationId) {
        self.departures.watch(station);
    }

    /// The next packet that has left the queue of a watched station, when its last byte is across.
    pub fn poll_departure(&mut self) -> Option<Departure<P>> {
        self.departures.poll()
    }

    /// What was counted until the last event. Nothing contends, so there are no accesses, attempts
    /// or failures; airtime is that of both directions together, in step at each boundary.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Changes a station's extra wired delay, each way, for the packets that leave from now on.
    /// Those of one station and direction never overtake each other.
    ///
    /// # Errors
    ///
    /// There is no such station, or the delay is more than an hour.
    pub fn set_wired_delay(
        &mut self,
        _now: Instant,
        station: StationId,
        delay: Duration,
    ) -> Result<(), ConfigError> {
        let stations = self.wired_delays.len();
        let place = self.wired_delays.get_mut(station.index());
        let place = place.ok_or(ConfigError::NoSuchStation { found: station.0, stations })?;
        validate::delay("wired_delay", delay)?;
        *place = delay;
        Ok(())
    }

    /// Refused: the cell has the rates.
    ///
    /// # Errors
    ///
    /// Always.
    pub fn set_rate(
        &mut self,
        _now: Instant,
        _station: StationId,
        _rate: Rate,
    ) -> Result<(), ConfigError> {
        Err(ConfigError::Cellular { what: "rate" })
    }

    /// Refused: nothing is lost on the air.
    ///
    /// # Errors
    ///
    /// Always.
    pub fn set_frame_error_rate(
        &mut self,
        _now: Instant,
        _station: StationId,
        _ppm: u32,
    ) -> Result<(), ConfigError> {
        Err(ConfigError::Cellular { what: "frame_error_rate" })
    }
}
