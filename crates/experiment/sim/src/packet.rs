//! The packets of the simulator. They are small, because they are moved from queue to queue: the copies of a
//! packet share its segment or message.

use std::rc::Rc;

use wakeai_medium::Kind;
use wakeai_tcp::{Flags, Segment};

/// The bytes of the IPv4 and UDP headers.
const IP_UDP_HEADERS: usize = 28;

/// A packet that a host sends or receives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Packet {
    /// A segment of a TCP connection.
    Segment {
        /// The index of the connection among all connections of the run.
        id: u32,
        /// The index of the flow, as in the result's `flows`.
        flow: u32,
        /// The number of the connection in its flow, from 0.
        connection: u32,
        /// Whether the segment goes from the flow's receiver to its sender.
        to_sender: bool,
        /// The length of the packet in bytes.
        len: u16,
        /// The segment.
        segment: Rc<Segment>,
    },
    /// A datagram of a UDP flow.
    Datagram {
        /// Index of the flow.
        flow: u32,
        /// Length of the payload in bytes.
        len: u16,
    },
    /// A presence message, with the payload of its datagram.
    Presence(Rc<[u8]>),
}

impl wakeai_medium::Packet for Packet {
    fn kind(&self) -> Kind {
        match self {
            Self::Segment { segment, .. } if is_bare_ack(segment) => Kind::TransportAck,
            Self::Segment { .. } | Self::Datagram { .. } => Kind::Data,
            Self::Presence(_) => Kind::Presence,
        }
    }

    /// A number for each flow as FQ-CoDel distinguishes flows (by addresses, ports and protocol).
    /// Each direction of a connection has a number of its own.
    fn flow(&self) -> u64 {
        let (kind, number) = match self {
            Self::Segment { id, to_sender, .. } => (u64::from(*to_sender), *id),
            Self::Datagram { flow, .. } => (2, *flow),
            Self::Presence(_) => (3, 0),
        };
        kind << 32 | u64::from(number)
    }

    fn len(&self) -> usize {
        match self {
            Self::Segment { len, .. } => usize::from(*len),
            Self::Datagram { len, .. } => IP_UDP_HEADERS + usize::from(*len),
            Self::Presence(bytes) => IP_UDP_HEADERS + bytes.len(),
        }
    }
}

/// Whether the segment is a pure acknowledgement.
fn is_bare_ack(segment: &Segment) -> bool {
    let Flags { syn, fin, rst, .. } = segment.flags;
    segment.len == 0 && !(syn || fin || rst)
}

#[cfg(test)]
mod tests {
    use wakeai_medium::Packet as _;

    use super::*;

    #[test]
    fn a_packet_is_less_than_half_a_cache_line() {
        assert_eq!(size_of::<Packet>(), 24);
    }

    #[test]
    fn only_a_segment_without_data_syn_and_fin_is_an_acknowledgement() {
        let data = Segment { len: 1_448, flags: Flags::ACK, ..Segment::default() };
        let ack = Segment { len: 0, ..data };
        let syn = Segment { flags: Flags::SYN, ..ack };
        let fin = Segment { flags: Flags::FIN_ACK, ..ack };
        for segment in [data, ack, syn, fin] {
            let (id, flow, connection, to_sender, len) = (3, 2, 1, true, 0);
            let shared = Rc::new(segment);
            let packet = Packet::Segment { id, flow, connection, to_sender, len, segment: shared };
            assert_eq!(packet.kind() == Kind::TransportAck, segment == ack);
        }
    }
}
