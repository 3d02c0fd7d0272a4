//! Agents: their ticks (decisions) and their presence messages.

use std::rc::Rc;

use wakeai_connection::SocketBounds;
use wakeai_control::presence::Opened;
use wakeai_control::{Actuation, Controller};
use wakeai_medium::{Destination, Node, StationId};
use wakeai_units::{Instant, Rate};

use super::Simulation;
use crate::announcing::Announcing;
use crate::carrier::Observer;
use crate::connection::Connection;
use crate::packet::Packet;

/// A station's agent: the controller, and the state that the simulation keeps for it.
pub(crate) struct Agent {
    pub(crate) controller: Controller,
    /// The messages that have arrived and that the controller has not handled yet. It handles them
    /// together before anything else, because thousands of controllers that take turns with every
    /// message would find little of their tables in the processor's cache.
    pub(crate) inbox: Vec<(Instant, Rc<Opened>)>,
    /// The time of the controller's next timeout.
    pub(crate) due: Option<Instant>,
    /// Whether the agent bounds connections; otherwise it only observes them.
    pub(crate) binds: bool,
    /// The PHY rate. On a device, the Wi-Fi driver reports it.
    pub(crate) link_rate: Option<Rate>,
    pub(crate) announcing: Option<Announcing>,
    /// The bounds of a connection that is opened before the next tick.
    pub(crate) default: SocketBounds,
}

impl Agent {
    /// Lets the controller handle the messages that have arrived, each with the time of its arrival.
    pub(crate) fn read(&mut self) {
        for (at, message) in self.inbox.drain(..) {
            self.controller.handle_opened(at, &message);
        }
    }

    /// The presence message that is due, as the station sends it: a scenario may replace true
    /// figures by others.
    pub(crate) fn poll_transmit(&mut self, now: Instant) -> Option<Vec<u8>> {
        let message = self.controller.poll_transmit(now)?;
        Some(match &self.announcing {
            Some(announcing) => announcing.instead_of(&message),
            None => message,
        })
    }

    /// Decides the bounds until the next tick. Returns the bounds of every boundable connection of
    /// `own`, in the same order. An agent that only observes returns none.
    pub(crate) fn tick(
        &mut self,
        now: Instant,
        own: &[wakeai_control::Connection],
    ) -> Vec<(u64, SocketBounds)> {
        let Actuation { sockets, default } = self.controller.handle_tick(now, self.link_rate, own);
        if !self.binds {
            return Vec::new();
        }
        self.default = default;
        // `sockets` has the order of `own`, without some of its connections.
        let mut sockets = sockets.into_iter().peekable();
        let mut of = |id| sockets.next_if(|(own, _)| *own == id).map_or(default, |(_, part)| part);
        let boundable = own.iter().filter(|one| one.boundable).map(|one| one.id);
        boundable.map(|id| (id, of(id))).collect()
    }
}

impl<O: Observer> Simulation<O> {
    pub(super) fn wake_agent(&mut self, now: Instant, station: u32) {
        let left = self.left_in_turns(station);
        let host = &mut self.stations[station as usize];
        let Some(agent) = host.agent.as_deref_mut() else { return };
        agent.read();
        if now >= agent.controller.next_tick() {
            if left.is_some() {
                agent.controller.transfer(now, left);
            }
            agent.controller.reserve(host.reserving.wanted(now, &self.flows));
            let connections = &self.connections;
            let own = host.senders.iter().filter_map(|id| connections[*id as usize].as_deref());
            let own: Vec<_> = own.map(Connection::as_agents_see_it).collect();
            for (id, bounds) in agent.tick(now, &own) {
                if let Some(connection) = self.connections[id as usize].as_deref_mut() {
                    connection.sender.set_bounds(bounds);
                    let timer = connection.sender_timer;
                    self.timers.set(timer, connection.sender.next_timeout());
                }
            }
            let (_, state) = agent.controller.reservation();
            if host.reserving.log.update(now, state) {
                self.senders.meter.reservation(now, &host.reserving.flows, state);
            }
        }
        self.announce(now, station);
    }

    /// Handles a presence message that has arrived at a station. All agents have the same group key, so
    /// a broadcast is authenticated and read once, by the first that it reaches. It waits in the inbox
    /// where that changes nothing.
    pub(super) fn presence(&mut self, now: Instant, station: u32, bytes: &Rc<[u8]>) {
        let host = &mut self.stations[station as usize];
        let Some(agent) = host.agent.as_deref_mut() else { return };
        let opened = match &self.opened {
            Some((of, opened)) if Rc::ptr_eq(of, bytes) => Rc::clone(opened),
            _ => {
                let opened = Rc::new(agent.controller.open(bytes));
                self.opened = Some((Rc::clone(bytes), Rc::clone(&opened)));
                opened
            }
        };
        let is_due = agent.due.is_none_or(|due| due <= now);
        let waits = opened.can_wait() && host.in_turns.is_empty() && !is_due;
        agent.inbox.push((now, opened));
        if !waits {
            self.announce(now, station);
        }
    }

    /// Broadcasts the presence messages of the station's agent, sets its timer, and uses its turn.
    pub(super) fn announce(&mut self, now: Instant, station: u32) {
        let Some(agent) = self.stations[station as usize].agent.as_deref_mut() else { return };
        agent.read();
        let from = Node::Station(StationId(station));
        while let Some(message) = agent.poll_transmit(now) {
            let packet = Packet::Presence(Rc::from(message));
            self.carrier.send(now, from, Destination::Broadcast, packet, (0, 0));
        }
        // The events are taken also where nobody hears them, because they must not accumulate.
        while let Some(event) = agent.controller.poll_event() {
            if O::HEARS {
                let at = self.carrier.span.since(now);
                self.carrier.observer.on_event(at, station, &event);
            }
        }
        let timer = self.flows.len() as u32 + station;
        agent.due = agent.controller.next_timeout();
        self.timers.set(timer, agent.due);
        self.use_turn(now, station);
    }
}
