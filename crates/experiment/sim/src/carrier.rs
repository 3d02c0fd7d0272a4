//! The medium between the hosts, and the observer of what they send and receive.

use wakeai_control::Event;
use wakeai_medium::{Delivery, Destination, Medium, Node};
use wakeai_tcp::Segment;
use wakeai_units::{Duration, Instant};
use wakeai_world::{MeterPlace, Span};

use crate::packet::Packet;

/// A packet that a host sends or receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen<'a> {
    /// A segment of a TCP connection.
    Segment {
        /// The index of the flow, as in the result's `flows`.
        flow: u32,
        /// The number of the connection in its flow, from 0.
        connection: u32,
        /// Whether the segment goes from the flow's receiver to its sender.
        to_sender: bool,
        /// The segment.
        segment: Segment,
    },
    /// A datagram of a UDP or QUIC flow.
    Datagram {
        /// Index of the flow.
        flow: u32,
        /// Whether it goes from the flow's receiver to its sender.
        to_sender: bool,
        /// Length of the payload in bytes.
        len: u16,
    },
    /// A presence message, with the payload of its datagram.
    Presence(&'a [u8]),
}

/// Observes every packet that a host puts into its queue, every packet that arrives at a host, and the
/// decisions of agents. Times count from the run's time zero. Packets that agents send before it have the time 0.
pub trait Observer {
    /// Whether this observer looks at packets at all.
    const LOOKS: bool = true;

    /// Called when a host has put a packet into its queue.
    fn on_sent(&mut self, _at: Duration, _from: Node, _to: Destination, _packet: Seen<'_>) {}

    /// Called when a packet has arrived at a host.
    fn on_received(&mut self, _at: Duration, _from: Node, _to: Node, _packet: Seen<'_>) {}

    /// Whether this observer hears the events of agents.
    const HEARS: bool = false;

    /// Called for each event of a station's agent, if [`Self::HEARS`].
    fn on_event(&mut self, _at: Duration, _station: u32, _event: &Event) {}
}

/// An observer that ignores all packets.
impl Observer for () {
    const LOOKS: bool = false;
}

/// The medium and its observer.
#[derive(Debug)]
pub(crate) struct Carrier<O> {
    pub(crate) medium: Medium<Packet>,
    pub(crate) observer: O,
    pub(crate) span: Span,
}

impl<O: Observer> Carrier<O> {
    /// Puts a packet into the queue of its host. Returns whether the queue had room.
    pub(crate) fn send(
        &mut self,
        now: Instant,
        from: Node,
        to: Destination,
        packet: Packet,
        place: MeterPlace,
    ) -> bool {
        let seen = O::LOOKS.then(|| packet.clone());
        let sent = self.medium.enqueue(now, from, to, packet).is_ok();
        // A packet that the full queue refuses is not sent, so it is not observed.
        if let Some(packet) = seen.filter(|_| sent) {
            self.observer.on_sent(self.span.since(now), from, to, see(&packet, place));
        }
        sent
    }

    /// Shows the observer a packet that has arrived.
    pub(crate) fn show(&mut self, delivery: &Delivery<Packet>, place: MeterPlace) {
        if O::LOOKS {
            let at = self.span.since(delivery.at);
            let packet = see(&delivery.packet, place);
            self.observer.on_received(at, delivery.from, delivery.to, packet);
        }
    }
}

fn see(packet: &Packet, (flow, connection): MeterPlace) -> Seen<'_> {
    match packet {
        Packet::Segment(wire) => {
            Seen::Segment { flow, connection, to_sender: wire.to_sender, segment: wire.unpack() }
        }
        Packet::Datagram { flow, len } => {
            Seen::Datagram { flow: *flow, to_sender: false, len: *len }
        }
        Packet::Quic { flow, to_sender, packet } => {
            Seen::Datagram { flow: *flow, to_sender: *to_sender, len: packet.datagram_len() }
        }
        Packet::Presence(bytes) => Seen::Presence(bytes),
    }
}
