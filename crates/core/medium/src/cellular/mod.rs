//! A cellular link: a base station that grants the air, and deep buffers.
//!
//! The stations share an uplink and a downlink, which do not disturb each other. There is no
//! contention: the base station divides each direction into transmission time intervals of 1 ms,
//! and grants each interval to stations that have something to send. Nothing is lost on the air, so
//! the queues grow under load. There is no broadcast, because a station hears only the base
//! station.
//!
//! The model leaves out fading, rate adaptation, retransmissions on the air (HARQ), the delay from
//! a request to its grant, a second base station, and sleeping stations.

mod direction;
mod turns;

use rand_pcg::Pcg64Mcg;
use wakeai_units::{Duration, Instant, Rate};
use wakeai_wifi::{Cell, QueueLimit, Wired};

use direction::CellDirection;

use crate::base::{Base, Transit, WiredEvent, earlier};
use crate::error::ConfigError;
use crate::node::{Destination, Node, Packet, StationId};
use crate::ranges;

/// A cellular base station, its stations, and the wire behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellularConfig {
    /// The rates, in bits of IP packets, and the scheduler.
    pub cell: Cell,
    /// The limit of what the base station keeps for each station.
    pub buffer: QueueLimit,
    /// The wired leg between the base station and the server.
    pub wired: Wired,
    /// The stations, in the order of their [`StationId`](crate::StationId).
    pub stations: Vec<CellularStationConfig>,
}

/// One station on a cellular link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellularStationConfig {
    /// The most packets that the station's modem keeps for the air.
    pub queue: u32,
    /// The extra delay, each way, between the wired leg and the server of this station.
    pub wired_delay: Duration,
}

/// Checks the ranges.
fn validate(config: &CellularConfig) -> Result<(), ConfigError> {
    granted_rate("uplink", config.cell.uplink)?;
    granted_rate("downlink", config.cell.downlink)?;
    ranges::limit("buffer", config.buffer)?;
    ranges::wired(&config.wired)?;
    ranges::stations(config.stations.len())?;
    for station in &config.stations {
        ranges::packets("queue", station.queue as usize)?;
        ranges::delay("wired_delay", station.wired_delay)?;
    }
    Ok(())
}

/// Checks a rate of the cell.
fn granted_rate(what: &'static str, rate: Rate) -> Result<(), ConfigError> {
    let most = Rate::from_mbps(1_000_000).bits_per_second();
    ranges::range(what, rate.bits_per_second(), 1, most, "1bit/s to 1000Gbit/s")
}

/// A base station, its stations, and the wired leg to the server. [`crate::Medium`] documents the
/// order of calls.
#[derive(Clone, Debug)]
pub(crate) struct Cellular<P> {
    pub(crate) base: Base<P>,
    uplink: CellDirection<Transit<P>>,
    downlink: CellDirection<Transit<P>>,
}

/// An event of the medium.
#[derive(Clone, Copy)]
pub(crate) enum CellEvent {
    Wired(WiredEvent),
    /// A boundary between two intervals of the uplink.
    Uplink,
    /// A boundary between two intervals of the downlink.
    Downlink,
}

impl<P: Packet> Cellular<P> {
    pub(crate) fn new(config: &CellularConfig, rng: &Pcg64Mcg) -> Result<Self, ConfigError> {
        validate(config)?;
        let CellularConfig { cell, buffer, wired, stations } = config;
        let Cell { uplink, downlink, scheduler } = *cell;
        let packets = |station: &CellularStationConfig| QueueLimit::Packets(station.queue);
        let queues = stations.iter().map(packets).collect();
        let buffers = vec![*buffer; stations.len()];
        let delays: Vec<_> = stations.iter().map(|station| station.wired_delay).collect();
        Ok(Self {
            base: Base::new([wired].into_iter(), vec![0; delays.len()], delays, rng),
            uplink: CellDirection::new(uplink, scheduler, queues),
            downlink: CellDirection::new(downlink, scheduler, buffers),
        })
    }

    /// Takes a packet from the host of a station.
    pub(crate) fn enqueue(
        &mut self,
        now: Instant,
        station: usize,
        to: Destination,
        packet: P,
    ) -> Result<(), P> {
        let shape = (packet.len(), packet.kind());
        let from = Node::Station(StationId(station as u32));
        let sent = self.uplink.push(now, station, shape, Transit { packet, from, to });
        let counters = &mut self.base.counters.stations[station];
        counters.offered += 1;
        counters.queue_drops += u64::from(sent.is_err());
        sent.map_err(|transit| transit.packet)
    }

    /// Puts a packet into the base station's queue for a station. A full queue drops the packet.
    fn send_down(&mut self, now: Instant, station: usize, transit: Transit<P>) {
        let shape = (transit.packet.len(), transit.packet.kind());
        let sent = self.downlink.push(now, station, shape, transit);
        let counters = &mut self.base.counters.access_point;
        counters.offered += 1;
        counters.queue_drops += u64::from(sent.is_err());
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        while let Some((at, event)) = self.next_event().filter(|(at, _)| *at <= now) {
            self.base.advance(at);
            match event {
                CellEvent::Wired(event) => {
                    let arrived = self.base.handle(at, event);
                    if let Some((_, transit)) = arrived
                        && let Destination::Unicast(Node::Station(station)) = transit.to
                    {
                        self.send_down(at, station.index(), transit);
                    }
                }
                CellEvent::Uplink => self.end_uplink_interval(at),
                CellEvent::Downlink => self.end_downlink_interval(at),
            }
        }
    }

    /// The next event. Where several events have the same time, the wire comes first, so that a
    /// packet that arrives can be granted at once. The uplink comes before the downlink, so that
    /// the same holds for packets from station to station.
    pub(crate) fn next_event(&self) -> Option<(Instant, CellEvent)> {
        let wired = self.base.next_event().map(|(at, event)| (at, CellEvent::Wired(event)));
        let uplink = self.uplink.boundary.map(|at| (at, CellEvent::Uplink));
        let downlink = self.downlink.boundary.map(|at| (at, CellEvent::Downlink));
        earlier(earlier(wired, uplink), downlink)
    }

    /// Ends an interval of the uplink, and begins the next.
    fn end_uplink_interval(&mut self, at: Instant) {
        while let Some((station, transit)) = self.uplink.arrive() {
            let counters = &mut self.base.counters.stations[station];
            counters.delivered += 1;
            counters.airtime = self.uplink.granted_to(station);
            self.base.departures.of(Some(station))(&transit.packet, 1, true);
            if let Destination::Unicast(Node::Station(to)) = transit.to {
                self.send_down(at, to.index(), transit);
            } else {
                self.base.send_up(at, station, transit.to, transit.packet);
            }
        }
        self.uplink.grant(at);
        self.account(at);
    }

    /// Ends an interval of the downlink, and begins the next.
    fn end_downlink_interval(&mut self, at: Instant) {
        while let Some((station, transit)) = self.downlink.arrive() {
            self.base.counters.access_point.delivered += 1;
            self.base.counters.downlinks[station] = self.downlink.granted_to(station);
            let Transit { packet, from, .. } = transit;
            self.base.deliver(at, Node::Station(StationId(station as u32)), from, packet);
        }
        self.downlink.grant(at);
        self.account(at);
    }

    /// Updates the airtime. The airtimes of both directions are added, so used and idle time
    /// together are twice the time that has passed.
    fn account(&mut self, at: Instant) {
        let (mut both, down) = (self.uplink.used(), self.downlink.used());
        both.add(&down);
        let passed = at - Instant::ZERO;
        debug_assert!(both.carried() <= passed + passed, "more airtime than time");
        both.idle = (passed + passed).saturating_sub(both.carried());
        self.base.counters.access_point.airtime = down;
        self.base.counters.airtime = both;
    }

    pub(crate) fn packets(&self) -> usize {
        self.uplink.packets() + self.downlink.packets()
    }

    pub(crate) fn room(&self, station: usize) -> usize {
        self.uplink.room(station)
    }

    pub(crate) fn queued(&self, station: usize) -> usize {
        self.uplink.queued(station)
    }

    pub(crate) fn queued_at_access_points(&self) -> usize {
        self.downlink.all_queued()
    }
}
