//! Flows: when they begin, what arrives, and datagrams.

use wakeai_medium::{Destination, Node, StationId};
use wakeai_units::Instant;

use super::Simulation;
use crate::flow::{Datagrams, Source};
use crate::observer::Observer;
use crate::packet::Packet;

impl<O: Observer> Simulation<O> {
    /// The receiving application of a flow got something.
    pub(super) fn received(&mut self, now: Instant, flow: u32, amount: u64) {
        let meter = &mut self.flows[flow as usize].meter;
        if meter.on_received(&self.carrier.span, now, amount) {
            self.unfinished -= 1;
        }
    }

    pub(super) fn wake_flow(&mut self, now: Instant, flow: u32) {
        let state = &mut self.flows[flow as usize];
        match (&mut state.source, state.from) {
            (Source::Tcp(stream), _) if stream.begun == 0 => self.connect(now, flow),
            (Source::Tcp(_), _) => self.write(now, flow),
            (Source::Udp(Datagrams { line: None, .. }), Node::Station(station)) => {
                self.stations[station.index()].saturating.push_back(flow);
                self.carrier.medium.watch_departures(station);
                self.saturate(now, station);
            }
            (Source::Udp(datagrams), from) => {
                let Some((len, next)) = datagrams.next_at(now) else { return };
                self.timers.set(state.timer, Some(next));
                let to = Destination::Unicast(state.to);
                // A datagram that finds the queue full is lost.
                self.carrier.send(now, from, to, Packet::Datagram { flow, len }, (flow, 0));
            }
        }
    }

    /// Fills the queue of a station with the datagrams of those flows that have no rate, in turn.
    pub(super) fn saturate(&mut self, now: Instant, station: StationId) {
        let saturating = &mut self.stations[station.index()].saturating;
        while self.carrier.medium.room(Node::Station(station)) > 0 {
            let Some(flow) = saturating.pop_front() else { return };
            let state = &mut self.flows[flow as usize];
            let Source::Udp(datagrams) = &mut state.source else { return };
            let Some(len) = datagrams.next() else { continue };
            let to = Destination::Unicast(state.to);
            let packet = Packet::Datagram { flow, len };
            self.carrier.send(now, state.from, to, packet, (flow, 0));
            saturating.push_back(flow);
        }
    }
}
