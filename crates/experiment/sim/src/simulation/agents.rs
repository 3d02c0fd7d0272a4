//! Agents: their ticks (decisions) and their presence messages.

use std::rc::Rc;

use wakeai_connection::Bounds;
use wakeai_control::{Actuation, Controller, LIMITS_EVERY, StationTick};
use wakeai_medium::{Delivery, Destination, Node, StationId, Stations};
use wakeai_units::{Instant, Rate, Segments};

use super::Simulation;
use crate::announcing::Announcing;
use crate::carrier::Observer;
use crate::packet::Packet;
use crate::policer::DATAGRAMS;

/// An agent that handles this number of broadcasts has a use for much of what it knows of their senders.
const MANY: usize = 128;

/// A station's agent: the controller, and the state that the simulation keeps for it.
pub(crate) struct Agent {
    pub(crate) controller: Controller,
    /// Whether the agent bounds connections; otherwise it only observes them.
    pub(crate) binds: bool,
    /// The PHY rate. On a device, the Wi-Fi driver reports it.
    pub(crate) link_rate: Option<Rate>,
    pub(crate) announcing: Option<Announcing>,
    /// The bounds of a connection that is opened before the next tick.
    pub(crate) default: Bounds,
    /// The connections whose receive windows are limited, with their bounds, and the time at which the
    /// limits are written again.
    pub(crate) limits: Vec<(u64, Bounds)>,
    pub(crate) limits_at: Option<Instant>,
}

impl Agent {
    /// The presence message that is due, as the station sends it: a scenario may replace true
    /// figures by others.
    pub(crate) fn poll_transmit(&mut self, now: Instant) -> Option<Vec<u8>> {
        let message = self.controller.poll_transmit(now)?;
        Some(match &self.announcing {
            Some(announcing) => announcing.instead_of(&message),
            None => message,
        })
    }

    /// Decides the bounds until the next tick. Returns the bounds of every connection of the station, in
    /// the same order. An agent that only observes returns none.
    pub(crate) fn tick(&mut self, now: Instant, station: StationTick<'_>) -> Vec<(u64, Bounds)> {
        let station = StationTick { link_rate: self.link_rate, ..station };
        let Actuation { sockets, default } = self.controller.tick(now, &station);
        if !self.binds {
            return Vec::new();
        }
        self.default = default;
        let own = station.connections;
        // `sockets` has the order of `own`, without some of its connections.
        let mut sockets = sockets.into_iter().peekable();
        let mut of = |id| sockets.next_if(|(own, _)| *own == id).map_or(default, |(_, part)| part);
        own.iter().map(|one| (one.id, of(one.id))).collect()
    }
}

impl<O: Observer> Simulation<O> {
    /// Lets a station's agent do what was due before `now`: it handles the broadcasts that have
    /// arrived, and makes the ticks that could wait.
    pub(super) fn catch_up(&mut self, now: Instant, station: u32) {
        let Some(agent) = self.stations[station as usize].agent.as_deref_mut() else { return };
        if self.broadcasts.unread(station) >= MANY {
            agent.controller.read_ahead();
        }
        loop {
            let tick = agent.controller.next_tick();
            agent.controller.handle_opened(self.broadcasts.read(station, tick.min(now)));
            if tick >= now {
                break;
            }
            agent.tick(tick, StationTick::default());
        }
        self.take_events(now, station);
    }

    /// Takes the events of a station's agent, also where nobody hears them, because they must not accumulate.
    fn take_events(&mut self, now: Instant, station: u32) {
        let Some(agent) = self.stations[station as usize].agent.as_deref_mut() else { return };
        while let Some(event) = agent.controller.poll_event() {
            if O::HEARS {
                let at = self.carrier.span.since(now);
                self.carrier.observer.on_event(at, station, &event);
            }
        }
    }

    /// Lets a station's agent catch up, and make its next tick when it is due.
    pub(super) fn tick_in_time(&mut self, now: Instant, station: u32) {
        self.catch_up(now, station);
        if let Some(agent) = self.stations[station as usize].agent.as_deref() {
            let due = agent.controller.next_timeout().into_iter().chain(agent.limits_at).min();
            self.set_due(station, due);
        }
    }

    pub(super) fn wake_agent(&mut self, now: Instant, station: u32) {
        self.catch_up(now, station);
        let left = self.left_in_turns(station);
        let host = &mut self.stations[station as usize];
        let Some(agent) = host.agent.as_deref_mut() else { return };
        if now >= agent.controller.next_tick() {
            let reserve = host.reserving.wanted(now, &self.flows);
            let connections = &self.connections;
            let own = host.connections.iter();
            let own = own.filter_map(|id| connections[*id as usize].as_deref());
            let end = Node::Station(StationId(station));
            let mut own: Vec<_> = own.map(|connection| connection.as_seen_at(end)).collect();
            for &flow in &host.datagrams {
                let policer = self.flows[flow as usize].policer.as_deref_mut();
                own.extend(policer.map(|policer| policer.observed(flow)));
            }
            let tick = StationTick { connections: &own, left, reserve, ..StationTick::default() };
            let bounds = agent.tick(now, tick);
            let limited = |(_, bounds): &(u64, Bounds)| bounds.receive < Segments::MAX;
            let receives = |(id, _): &(u64, Bounds)| {
                own.iter().any(|one| one.id == *id && one.receiving.received > 0)
            };
            let limits = bounds.iter().copied().filter(limited).filter(receives);
            agent.limits = limits.collect();
            agent.limits_at = (!agent.limits.is_empty()).then(|| now + LIMITS_EVERY);
            for (id, bounds) in bounds {
                if id & DATAGRAMS != 0 {
                    let flow = &mut self.flows[(id & !DATAGRAMS) as usize];
                    flow.policer.iter_mut().for_each(|policer| policer.set_limit(now, bounds));
                } else if let Some(connection) = self.connections[id as usize].as_deref_mut() {
                    connection.set_bounds(end, bounds);
                    let timer = connection.sender_timer;
                    self.timers.set(timer, connection.sender.next_timeout());
                }
            }
            let (_, state) = agent.controller.reservation();
            if host.reserving.log.update(now, state) {
                self.senders.meter.reservation(now, &host.reserving.flows, state);
            }
        }
        self.limit_again(now, station);
        self.announce(now, station);
    }

    /// Writes the limits of the station's receive windows again, where that is due.
    fn limit_again(&mut self, now: Instant, station: u32) {
        let Some(agent) = self.stations[station as usize].agent.as_deref_mut() else { return };
        let Some(due) = agent.limits_at.filter(|due| *due <= now) else { return };
        agent.limits_at = Some(due + LIMITS_EVERY);
        let end = Node::Station(StationId(station));
        for (id, bounds) in &agent.limits {
            if let Some(connection) = self.connections[*id as usize].as_deref_mut() {
                connection.set_bounds(end, *bounds);
            }
        }
    }

    /// Takes a presence message, which `from` has sent and which has arrived at the stations `to` at the
    /// time `at`. Their agents handle it later where that changes nothing.
    pub(super) fn presence(
        &mut self,
        now: Instant,
        (at, from, to): (Instant, Node, &Stations),
        bytes: &Rc<[u8]>,
    ) {
        let stations = &self.stations;
        let open = |station: usize| {
            let agent = stations[station].agent.as_ref().expect("an agent reads");
            agent.controller.open(bytes)
        };
        let mut at_once = self.broadcasts.arrive(now, to, open).into_iter().peekable();
        if !O::LOOKS && at_once.peek().is_none() {
            return;
        }
        for station in to.iter() {
            if O::LOOKS {
                let packet = Packet::Presence(Rc::clone(bytes));
                let delivery = Delivery { at, to: Node::Station(station), from, packet };
                self.carrier.show(&delivery, (0, 0));
            }
            if at_once.next_if_eq(&station.0).is_some() {
                self.announce(now, station.0);
            }
        }
    }

    /// Broadcasts the presence messages of the station's agent, sets its timer, and uses its turn.
    pub(super) fn announce(&mut self, now: Instant, station: u32) {
        self.catch_up(now, station);
        let host = &mut self.stations[station as usize];
        let Some(agent) = host.agent.as_deref_mut() else { return };
        let from = Node::Station(StationId(station));
        while let Some(message) = agent.poll_transmit(now) {
            let packet = Packet::Presence(Rc::from(message));
            self.carrier.send(now, from, Destination::Broadcast, packet, (0, 0));
        }
        let quiet = host.connections.is_empty()
            && host.datagrams.is_empty()
            && host.in_turns.is_empty()
            && host.reserving.flows.is_empty();
        // Who hears events hears those of a tick when it is due.
        let due = if !O::HEARS && quiet && agent.controller.ticks_can_wait() {
            Some(agent.controller.next_message())
        } else {
            agent.controller.next_timeout().into_iter().chain(agent.limits_at).min()
        };
        self.take_events(now, station);
        self.set_due(station, due);
        self.use_turn(now, station);
    }

    /// Sets the time at which the station's agent has something to do.
    fn set_due(&mut self, station: u32, due: Option<Instant>) {
        self.timers.set(self.flows.len() as u32 + station, due);
        // In the order of turns, the time at which a station begins depends on the messages.
        let in_turns = !self.stations[station as usize].in_turns.is_empty();
        let busy_from = if in_turns { Instant::ZERO } else { due.unwrap_or(Instant::MAX) };
        self.broadcasts.set_busy_from(station, busy_from);
    }
}
