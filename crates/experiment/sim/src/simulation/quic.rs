//! The events of QUIC flows.

use wakeai_quic::Packet;
use wakeai_units::Instant;

use super::Simulation;
use crate::carrier::Observer;
use crate::connection::Ending;
use crate::flow::{FlowState, Source};
use crate::policer::Policer;
use crate::quic::{QuicConnection, Way};

/// The QUIC connection of a flow, with its ends and its policer.
fn quic(
    flows: &mut [FlowState],
    flow: u32,
) -> Option<(&mut QuicConnection, Way, Option<&mut Policer>)> {
    let FlowState { from, to, source, policer, .. } = &mut flows[flow as usize];
    let way = Way { flow, from: *from, to: *to };
    match source {
        Source::Quic(connection) => Some((connection, way, policer.as_deref_mut())),
        Source::Tcp(_) | Source::Udp(_) => None,
    }
}

impl<O: Observer> Simulation<O> {
    /// Opens the connection of a flow that begins, and writes its application's data.
    pub(super) fn write_quic(&mut self, now: Instant, flow: u32) {
        let Some((connection, ..)) = quic(&mut self.flows, flow) else { return };
        let next = connection.write(now, flow, &mut self.timers);
        let state = &self.flows[flow as usize];
        self.timers.set(state.timer, next.map(|after| state.start + after));
        self.pump_quic(now, flow);
    }

    /// Handles a packet of a flow that has arrived at its sender, or else at its receiver.
    pub(super) fn quic_packet(
        &mut self,
        now: Instant,
        (flow, to_sender): (u32, bool),
        packet: &Packet,
    ) {
        let Some((connection, way, _)) = quic(&mut self.flows, flow) else { return };
        if to_sender {
            connection.at_sender(now, flow, packet, &mut self.senders);
            self.pump_quic(now, flow);
            return;
        }
        let read = connection.at_receiver(now, packet);
        connection.pump_receiver(now, way, &mut self.carrier, &mut self.timers);
        if read > 0 {
            self.received(now, flow, read);
        }
    }

    pub(super) fn wake_quic(&mut self, now: Instant, flow: u32, is_receiver: bool) {
        let Some((connection, way, _)) = quic(&mut self.flows, flow) else { return };
        if is_receiver {
            connection.pump_receiver(now, way, &mut self.carrier, &mut self.timers);
        } else if connection.wake_sender(now, &mut self.timers) {
            self.pump_quic(now, flow);
        }
    }

    /// Transmits the packets of a flow's sender. A flow whose connection fails never completes.
    fn pump_quic(&mut self, now: Instant, flow: u32) {
        let Self { flows, carrier, timers, senders, .. } = self;
        let Some((connection, way, policer)) = quic(flows, flow) else { return };
        let ending = connection.pump_sender(now, way, policer, (carrier, timers, senders));
        let state = &mut self.flows[flow as usize];
        if ending == Some(Ending::Failed) && state.meter.completed().is_none() && !state.broken {
            state.broken = true;
            self.unfinished -= 1;
        }
    }
}
