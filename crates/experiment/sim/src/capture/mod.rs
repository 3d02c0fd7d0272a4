//! Captures of the packets that hosts see, as IPv4 with TCP or UDP.
//!
//! A packet is in the file of the host that put it into its queue, and in the file of each host at
//! which it arrived. The simulator carries payload bytes only in presence messages. All other
//! payloads are left out of the captured bytes. The length fields of the headers include them, and
//! the checksums are computed as if all their bytes were zero.

mod headers;

use std::collections::BTreeMap;

use wakeai_medium::{Destination, Node, StationId};
use wakeai_results::records::{Host, RecordsError, RunCaptures, Way};
use wakeai_tcp::Segment;
use wakeai_units::Duration;
use wakeai_world::{SERVER_ADDRESS, STATION_BROADCAST, station_address};

use crate::carrier::{Observer, Seen};
use headers::Ends;

/// The first of the dynamic ports (RFC 6335 section 6). The ports of receivers begin here, so that
/// no dissector decodes a flow as the protocol of a registered port.
const FIRST_LISTENING: u16 = 49_152;
/// The first port of senders.
const FIRST_CALLING: u16 = 57_344;
/// The number of ports of receivers, and of senders: each has half of the dynamic ports.
const PORTS: u32 = 8_192;
/// The port of presence messages: the agent's default.
const PRESENCE: u16 = 19_719;

/// Writes captures of one run.
#[derive(Debug)]
pub(crate) struct Capture {
    files: RunCaptures,
    /// The window scale by flow, connection and direction. `true` is the direction towards the
    /// sender.
    scales: BTreeMap<(u32, u32, bool), u8>,
    /// The packet that is being written, kept for reuse.
    packet: Vec<u8>,
}

impl Capture {
    pub(crate) fn new(files: RunCaptures) -> Self {
        Self { files, scales: BTreeMap::new(), packet: Vec::new() }
    }

    /// Finishes the run's files.
    pub(crate) fn finish(self) -> Result<(), RecordsError> {
        self.files.finish()
    }

    fn write(
        &mut self,
        at: Duration,
        way: Way,
        host: Node,
        ends: (Node, Destination),
        seen: Seen<'_>,
    ) {
        let (from, to) = ends;
        let to = match to {
            Destination::Unicast(node) => address(node),
            Destination::Broadcast => STATION_BROADCAST,
        };
        let mut ends = Ends { from: address(from), to, from_port: PRESENCE, to_port: PRESENCE };
        self.packet.clear();
        let length = match seen {
            Seen::Segment { flow, connection, to_sender, segment } => {
                let ports = (calling(connection), listening(flow));
                (ends.from_port, ends.to_port) = if to_sender { (ports.1, ports.0) } else { ports };
                let scale = self.scale((flow, connection, to_sender), &segment);
                headers::tcp(&mut self.packet, &ends, &segment, scale)
            }
            Seen::Datagram { flow, to_sender, len } => {
                let ports = (calling(0), listening(flow));
                (ends.from_port, ends.to_port) = if to_sender { (ports.1, ports.0) } else { ports };
                headers::udp(&mut self.packet, &ends, &[], len)
            }
            Seen::Presence(bytes) => headers::udp(&mut self.packet, &ends, bytes, 0),
        };
        let host = match host {
            Node::Server => Host::Server,
            Node::Station(StationId(station)) => Host::Station(station),
        };
        self.files.packet(host, at.as_nanos(), way, &self.packet, length);
    }

    /// The number of bits by which the window of `segment` is shifted: the scale that the SYN of
    /// its sender offered. It is 0 on a SYN, and where the SYN of the other end offered none (RFC
    /// 7323 section 2.2).
    fn scale(&mut self, (flow, connection, to_sender): (u32, u32, bool), segment: &Segment) -> u8 {
        if segment.flags.syn {
            if let Some(scale) = segment.options.window_scale {
                self.scales.insert((flow, connection, to_sender), scale);
            }
            return 0;
        }
        let scale = |way| self.scales.get(&(flow, connection, way)).copied();
        scale(!to_sender).and(scale(to_sender)).unwrap_or(0)
    }
}

impl Observer for Capture {
    fn on_sent(&mut self, at: Duration, from: Node, to: Destination, packet: Seen<'_>) {
        self.write(at, Way::Out, from, (from, to), packet);
    }

    fn on_received(&mut self, at: Duration, from: Node, to: Node, packet: Seen<'_>) {
        let destination = match packet {
            Seen::Presence(_) => Destination::Broadcast,
            _ => Destination::Unicast(to),
        };
        self.write(at, Way::In, to, (from, destination), packet);
    }
}

fn address(node: Node) -> std::net::Ipv4Addr {
    match node {
        Node::Server => SERVER_ADDRESS,
        Node::Station(station) => station_address(station),
    }
}

fn listening(flow: u32) -> u16 {
    FIRST_LISTENING + (flow % PORTS) as u16
}

fn calling(connection: u32) -> u16 {
    FIRST_CALLING + (connection % PORTS) as u16
}
