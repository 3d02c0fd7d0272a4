//! Transfers that wait for their station's turn.

use wakeai_control::Permission;
use wakeai_medium::{Node, StationId};
use wakeai_units::{Bytes, Instant};

use super::Simulation;
use crate::carrier::Observer;
use crate::flow::Source;

impl<O: Observer> Simulation<O> {
    /// Opens the next connection of a flow, where the flow has another. A transfer that sends in turns
    /// waits for its station's turn.
    pub(super) fn proceed(&mut self, now: Instant, flow: u32) {
        let Some(station) = self.takes_turns(flow) else {
            return self.connect(now, flow, Permission::Send);
        };
        let state = &mut self.flows[flow as usize];
        let Source::Tcp(stream) = &state.source else { return };
        if stream.division.is_over() {
            return self.leave_turns(now, flow);
        }
        state.waits = true;
        let in_turns = &mut self.stations[station.index()].in_turns;
        if !in_turns.contains(&flow) {
            in_turns.push(flow);
            let left = self.left_in_turns(station.0);
            self.catch_up(now, station.0);
            if let Some(agent) = self.stations[station.index()].agent.as_deref_mut() {
                agent.controller.transfer(now, left);
            }
        }
        self.announce(now, station.0);
    }

    /// Takes a flow that has ended out of the turns of its station.
    pub(super) fn leave_turns(&mut self, now: Instant, flow: u32) {
        let Some(station) = self.takes_turns(flow) else { return };
        let host = &mut self.stations[station.index()];
        host.in_turns.retain(|other| *other != flow);
        if !host.in_turns.is_empty() {
            return;
        }
        self.catch_up(now, station.0);
        if let Some(agent) = self.stations[station.index()].agent.as_deref_mut() {
            agent.controller.transfer(now, None);
            self.announce(now, station.0);
        }
    }

    /// Opens the connections that wait for the station's turn, where it is the station's turn.
    pub(super) fn use_turn(&mut self, now: Instant, station: u32) {
        let host = &self.stations[station as usize];
        let Some(agent) = host.agent.as_deref() else { return };
        let permission = agent.controller.permission();
        if permission == Permission::Wait {
            return;
        }
        for flow in host.in_turns.clone() {
            if std::mem::take(&mut self.flows[flow as usize].waits) {
                self.connect(now, flow, permission);
            }
        }
    }

    /// The bytes that the station's transfers in turns have left; `None` where it has none.
    pub(super) fn left_in_turns(&self, station: u32) -> Option<Bytes> {
        let flows = &self.stations[station as usize].in_turns;
        let left = flows.iter().map(|flow| match &self.flows[*flow as usize].source {
            Source::Tcp(stream) => {
                let opened = (stream.division.begun() > 0).then_some(stream.current);
                let connection = opened.and_then(|id| self.connections.get(id as usize));
                let read = connection.and_then(Option::as_deref).map_or(0, |open| open.read);
                stream.division.left(Bytes::new(read))
            }
            Source::Udp(_) | Source::Quic(_) => Bytes::ZERO,
        });
        (!flows.is_empty()).then(|| left.sum())
    }

    /// The station in whose turns the flow sends; `None` for a flow that does not wait for turns, and
    /// where no agent runs.
    fn takes_turns(&self, flow: u32) -> Option<StationId> {
        let flow = &self.flows[flow as usize];
        let Node::Station(station) = flow.from else { return None };
        (flow.turns && self.stations[station.index()].agent.is_some()).then_some(station)
    }
}
