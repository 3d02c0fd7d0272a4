//! From the hosts to the medium and back, before the observer's eyes.

use wakeai_medium::{Delivery, Destination, Medium, Node};
use wakeai_units::Instant;

use crate::observer::{Observer, Seen};
use crate::packet::Packet;
use crate::span::Span;

/// The medium, and who looks on.
#[derive(Debug)]
pub(crate) struct Carrier<O> {
    pub(crate) medium: Medium<Packet>,
    pub(crate) observer: O,
    pub(crate) span: Span,
}

/// Which flow and which of its connections, for the observer.
pub(crate) type Place = (u32, u32);

impl<O: Observer> Carrier<O> {
    /// Puts a packet into the queue of its host. Whether it fitted in.
    pub(crate) fn send(
        &mut self,
        now: Instant,
        from: Node,
        to: Destination,
        packet: Packet,
        place: Place,
    ) -> bool {
        if O::LOOKS {
            // A queue that is full takes nothing: what is not sent is not seen.
            let seen = packet.clone();
            let sent = self.medium.enqueue(now, from, to, packet).is_ok();
            if sent {
                self.observer.on_sent(self.span.since(now), from, to, see(&seen, place));
            }
            return sent;
        }
        self.medium.enqueue(now, from, to, packet).is_ok()
    }

    /// Shows a packet that has arrived.
    pub(crate) fn show(&mut self, delivery: &Delivery<Packet>, place: Place) {
        if O::LOOKS {
            let at = self.span.since(delivery.at);
            let packet = see(&delivery.packet, place);
            self.observer.on_received(at, delivery.from, delivery.to, packet);
        }
    }
}

fn see(packet: &Packet, (flow, connection): Place) -> Seen<'_> {
    match packet {
        Packet::Segment(wire) => {
            Seen::Segment { flow, connection, to_sender: wire.to_sender, segment: wire.unpack() }
        }
        Packet::Datagram { flow, len } => Seen::Datagram { flow: *flow, len: *len },
        Packet::Presence(bytes) => Seen::Presence(bytes),
    }
}
