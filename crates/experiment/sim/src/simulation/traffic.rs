//! Flows: their starts, their data and datagrams, and the events of their TCP connections.

use wakeai_control::Permission;
use wakeai_medium::{Departure, Destination, Node, StationId};
use wakeai_tcp::{Receiver, Segment};
use wakeai_units::{Bytes, Instant};

use super::Simulation;
use crate::carrier::Observer;
use crate::connection::{Connection, Ending};
use crate::flow::{Datagrams, Source};
use crate::packet::{Packet, Wire};
use crate::timers::TimerOwner;

impl<O: Observer> Simulation<O> {
    /// Records that the receiving application of a flow got `amount` bytes.
    pub(super) fn received(&mut self, now: Instant, flow: u32, amount: u64) {
        let meter = &mut self.flows[flow as usize].meter;
        if meter.on_received(now, amount) {
            self.unfinished -= 1;
        }
    }

    pub(super) fn wake_flow(&mut self, now: Instant, flow: u32) {
        let state = &mut self.flows[flow as usize];
        match (&mut state.source, state.from) {
            (Source::Tcp(stream), _) if stream.division.begun() == 0 => self.proceed(now, flow),
            (Source::Tcp(_), _) => self.write(now, flow),
            (Source::Quic(_), _) => self.write_quic(now, flow),
            (Source::Udp(Datagrams { line: None, .. }), Node::Station(station)) => {
                self.stations[station.index()].saturating.push_back(flow);
                self.carrier.medium.watch_departures(station);
                self.saturate(now, station);
            }
            (Source::Udp(datagrams), _) => {
                let Some((len, next)) = datagrams.next_at(now) else { return };
                self.timers.set(state.timer, Some(next));
                self.send_datagram(now, flow, len);
            }
        }
    }

    /// Fills the queue of a station with datagrams of its flows without a rate. The flows take
    /// turns.
    pub(super) fn saturate(&mut self, now: Instant, station: StationId) {
        while self.carrier.medium.room(Node::Station(station)) > 0 {
            let saturating = &mut self.stations[station.index()].saturating;
            let Some(flow) = saturating.pop_front() else { return };
            let state = &mut self.flows[flow as usize];
            let Source::Udp(datagrams) = &mut state.source else { return };
            // A socket without a rate waits until its agent's limit takes a datagram.
            if let Some(policer) = &state.policer
                && now < policer.opens_at()
            {
                self.timers.set(policer.timer, Some(policer.opens_at()));
                continue;
            }
            let Some(len) = datagrams.next() else { continue };
            saturating.push_back(flow);
            self.send_datagram(now, flow, len);
        }
    }

    /// Sends a datagram of a flow. One that the agent's limit or the full queue refuses is lost.
    fn send_datagram(&mut self, now: Instant, flow: u32, len: u16) {
        let state = &mut self.flows[flow as usize];
        let (from, to) = (state.from, Destination::Unicast(state.to));
        let packet = Packet::Datagram { flow, len };
        let packet = match &mut state.policer {
            Some(policer) => {
                let leaves = policer.take(now, packet);
                self.timers.set(policer.timer, policer.departs_at());
                leaves
            }
            None => Some(packet),
        };
        if let Some(packet) = packet {
            self.carrier.send(now, from, to, packet, (flow, 0));
        }
    }

    /// Sends the datagrams of a flow that depart now. Lets a flow without a rate send again, after it has waited for its agent's
    /// limit.
    pub(super) fn wake_policer(&mut self, now: Instant, flow: u32) {
        let state = &mut self.flows[flow as usize];
        let (from, to) = (state.from, Destination::Unicast(state.to));
        let (Node::Station(station), Some(policer)) = (from, &mut state.policer) else { return };
        while let Some(packet) = policer.depart(now) {
            self.carrier.send(now, from, to, packet, (flow, 0));
        }
        self.timers.set(policer.timer, policer.departs_at());
        if !matches!(state.source, Source::Udp(Datagrams { line: None, .. })) {
            return;
        }
        let saturating = &mut self.stations[station.index()].saturating;
        if !saturating.contains(&flow) {
            saturating.push_back(flow);
        }
        self.saturate(now, station);
    }

    pub(super) fn segment(&mut self, now: Instant, wire: Wire) {
        let segment = wire.unpack();
        if wire.to_sender {
            self.at_sender(now, wire.connection, &segment);
        } else {
            self.at_receiver(now, wire.connection, &segment);
        }
    }

    fn at_sender(&mut self, now: Instant, id: u32, segment: &Segment) {
        let Some(connection) = self.connections[id as usize].as_deref_mut() else { return };
        connection.at_sender(now, segment, &mut self.senders);
        self.pump_sender(now, id);
    }

    fn at_receiver(&mut self, now: Instant, id: u32, segment: &Segment) {
        let Some(connection) = self.connections[id as usize].as_deref_mut() else { return };
        let was_established = connection.receiver.is_established();
        let read = connection.at_receiver(now, segment);
        if !was_established && connection.receiver.is_established() {
            self.limit_newcomer(now, id);
        }
        let Some(connection) = self.connections[id as usize].as_deref_mut() else { return };
        connection.pump_receiver(now, &mut self.carrier, &mut self.timers);
        let (flow, over) = (connection.flow, connection.is_over());
        if over {
            self.retire(id);
        }
        if read > 0 {
            self.received(now, flow, read);
        }
    }

    /// Limits the window of a connection that was just established at its receiving station.
    fn limit_newcomer(&mut self, now: Instant, id: u32) {
        let Some(end) = self.connections[id as usize].as_deref().map(|one| one.to) else { return };
        let Node::Station(station) = end else { return };
        self.tick_in_time(now, station.0);
        let Some(agent) = &self.stations[station.index()].agent else { return };
        if let Some(connection) = self.connections[id as usize].as_deref_mut() {
            connection.set_bounds(end, agent.default);
        }
    }

    pub(super) fn wake_sender(&mut self, now: Instant, id: u32) {
        let Some(connection) = self.connections[id as usize].as_deref_mut() else { return };
        let Some(due) = connection.sender.next_timeout() else { return };
        if due > now {
            self.timers.set(connection.sender_timer, Some(due));
            return;
        }
        connection.sender.handle_timeout(now);
        self.pump_sender(now, id);
    }

    pub(super) fn wake_receiver(&mut self, now: Instant, id: u32) {
        let Some(connection) = self.connections[id as usize].as_deref_mut() else { return };
        let Some(due) = connection.receiver.next_timeout() else { return };
        if due > now {
            self.timers.set(connection.receiver_timer, Some(due));
            return;
        }
        connection.receiver.handle_timeout(now);
        connection.pump_receiver(now, &mut self.carrier, &mut self.timers);
        if connection.is_over() {
            self.retire(id);
        }
    }

    /// Handles a packet that has left the queue of a watched station.
    pub(super) fn departed(&mut self, now: Instant, departure: &Departure<Packet>) {
        if let Packet::Segment(wire) = &departure.packet
            && !wire.to_sender
            && let Some(connection) = self.connections[wire.connection as usize].as_deref_mut()
        {
            let length = wakeai_medium::Packet::len(&departure.packet);
            connection.sender.handle_departure(now, length);
            self.pump_sender(now, wire.connection);
        }
        self.saturate(now, departure.station);
    }

    /// Writes the application's data to the flow's last opened connection.
    pub(super) fn write(&mut self, now: Instant, flow: u32) {
        let state = &mut self.flows[flow as usize];
        let Source::Tcp(stream) = &state.source else { return };
        let id = stream.current;
        let Some(connection) = self.connections[id as usize].as_deref_mut() else { return };
        let next = stream.write(now.saturating_since(state.start), &mut connection.sender);
        self.timers.set(state.timer, next.map(|after| state.start + after));
        self.pump_sender(now, id);
    }

    /// Transmits the segments of a connection's sender. Where the connection has ended, it opens
    /// the next connection of the flow.
    fn pump_sender(&mut self, now: Instant, id: u32) {
        let Self { connections, carrier, timers, senders, .. } = self;
        let Some(connection) = connections[id as usize].as_deref_mut() else { return };
        let Some(ending) = connection.pump_sender(now, carrier, timers, senders) else { return };
        connection.closed = true;
        let (flow, over) = (connection.flow, connection.is_over());
        match ending {
            Ending::Closed => {
                if over {
                    self.retire(id);
                }
                if let Source::Tcp(stream) = &mut self.flows[flow as usize].source {
                    stream.division.sent(now.saturating_since(stream.opened));
                }
                self.proceed(now, flow);
            }
            Ending::Failed => {
                let carried = Bytes::new(connection.read);
                self.retire(id);
                let state = &mut self.flows[flow as usize];
                match &mut state.source {
                    Source::Tcp(stream) if state.resumes => {
                        stream.division.cut(carried);
                        self.proceed(now, flow);
                    }
                    _ if state.meter.completed().is_none() && !state.broken => {
                        state.broken = true;
                        self.unfinished -= 1;
                    }
                    _ => {}
                }
            }
        }
    }

    /// Removes a connection that has ended.
    fn retire(&mut self, id: u32) {
        let Some(connection) = self.connections[id as usize].take() else { return };
        self.flows[connection.flow as usize].take_account(&connection);
        for end in [connection.from, connection.to] {
            if let Node::Station(station) = end {
                self.stations[station.index()].connections.retain(|own| *own != id);
            }
        }
    }

    /// Opens the next connection of a flow, where the flow has another.
    pub(super) fn connect(&mut self, now: Instant, flow: u32, permission: Permission) {
        if let Node::Station(station) = self.flows[flow as usize].from {
            self.tick_in_time(now, station.0);
        }
        let state = &mut self.flows[flow as usize];
        let Source::Tcp(stream) = &mut state.source else { return };
        let id = self.connections.len() as u32;
        let Some(mut sender) = stream.next_sender(now, id, permission) else { return };
        let next = stream.write(now.saturating_since(state.start), &mut sender);
        self.timers.set(state.timer, next.map(|after| state.start + after));
        let (from, to) = (state.from, state.to);
        if let Node::Station(station) = from {
            let station = &mut self.stations[station.index()];
            station.connections.push(id);
            if let Some(agent) = station.agent.as_ref().filter(|_| stream.boundable) {
                sender.set_bounds(agent.default);
            }
        }
        if let Node::Station(station) = to {
            self.stations[station.index()].connections.push(id);
        }
        sender.open(now);
        let connection = Box::new(Connection {
            id,
            flow,
            number: stream.division.begun() - 1,
            sender,
            receiver: Receiver::new(&stream.config),
            from,
            to,
            sender_timer: self.timers.add(TimerOwner::Sender(id)),
            receiver_timer: self.timers.add(TimerOwner::Receiver(id)),
            hears_overflow: stream.hears_overflow,
            boundable: stream.boundable,
            established: None,
            read: 0,
            next_sample: now,
            closed: false,
        });
        self.connections.push(Some(connection));
        self.pump_sender(now, id);
    }
}
