//! The packets of the simulator. A segment takes 64 bytes. Presence messages are kept in their
//! encoded form.

use std::rc::Rc;

use wakeai_medium::Kind;
use wakeai_tcp::{Flags, SackBlocks, Segment, SynOptions, Timestamp};

/// The bytes of the IPv4 and UDP headers.
pub(crate) const IP_UDP_HEADERS: usize = 28;

/// A packet.
#[derive(Clone, Debug)]
pub(crate) enum Packet {
    /// A segment of a TCP connection.
    Segment(Wire),
    /// A datagram of a UDP flow.
    Datagram {
        /// Index of the flow.
        flow: u32,
        /// Length of the payload in bytes.
        len: u16,
    },
    /// A packet of a QUIC flow.
    Quic {
        /// Index of the flow.
        flow: u32,
        /// Whether it goes from the flow's receiver to its sender.
        to_sender: bool,
        packet: wakeai_quic::Packet,
    },
    /// An encoded presence message.
    Presence(Rc<[u8]>),
}

impl Packet {
    /// Marks the packet CE (RFC 3168). Returns whether its sender allows that: of what is simulated, data of QUIC leaves with ECT(0).
    pub(crate) fn mark(&mut self) -> bool {
        let Self::Quic { packet: wakeai_quic::Packet::Data(data), .. } = self else { return false };
        data.is_marked = true;
        true
    }
}

impl wakeai_medium::Packet for Packet {
    fn kind(&self) -> Kind {
        match self {
            Self::Segment(wire) if wire.is_bare_ack() => Kind::TransportAck,
            Self::Quic { packet, .. } if packet.is_ack() => Kind::TransportAck,
            Self::Segment(_) | Self::Datagram { .. } | Self::Quic { .. } => Kind::Data,
            Self::Presence(_) => Kind::Presence,
        }
    }

    /// A number for each flow as FQ-CoDel distinguishes flows (by addresses, ports and protocol).
    /// Each direction of a connection has a number of its own.
    fn flow(&self) -> u64 {
        let (kind, number) = match self {
            Self::Segment(wire) => (u64::from(wire.to_sender), wire.connection),
            Self::Datagram { flow, .. } => (2, *flow),
            Self::Presence(_) => (3, 0),
            Self::Quic { flow, to_sender, .. } => (4 + u64::from(*to_sender), *flow),
        };
        kind << 32 | u64::from(number)
    }

    fn len(&self) -> usize {
        match self {
            Self::Segment(wire) => usize::from(wire.packet_len),
            Self::Datagram { len, .. } => IP_UDP_HEADERS + usize::from(*len),
            Self::Quic { packet, .. } => IP_UDP_HEADERS + usize::from(packet.datagram_len()),
            Self::Presence(bytes) => IP_UDP_HEADERS + bytes.len(),
        }
    }
}

/// A segment in the network. It is copied from queue to queue, so it has only half the size of a
/// [`Segment`]. SACK blocks are relative to the acknowledgement. A SYN has no SACK blocks, so its
/// options take their place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wire {
    seq: u64,
    ack: u64,
    pub(crate) connection: u32,
    window: u32,
    timestamp: [u32; 2],
    /// The starts and ends of SACK blocks, relative to `ack`; in a SYN, its options.
    options: [u32; 6],
    len: u16,
    packet_len: u16,
    bits: u8,
    blocks: u8,
    /// Whether the segment travels from the connection's receiver to its sender.
    pub(crate) to_sender: bool,
}

// The control bits of TCP (RFC 9293 section 3.1).
const FIN: u8 = 1;
const SYN: u8 = 1 << 1;
const RST: u8 = 1 << 2;
const PSH: u8 = 1 << 3;
const ACK: u8 = 1 << 4;
/// Marks a segment with a timestamp, in a bit that no flag uses.
const TIMESTAMP: u8 = 1 << 7;

/// The flags as they are in the header of a segment.
pub(crate) fn control_bits(flags: Flags) -> u8 {
    let bit = |set: bool, bit: u8| if set { bit } else { 0 };
    bit(flags.fin, FIN)
        | bit(flags.syn, SYN)
        | bit(flags.rst, RST)
        | bit(flags.psh, PSH)
        | bit(flags.ack, ACK)
}

/// The mark of an absent value, where 0 would be a value.
const NONE: u32 = u32::MAX;

impl Wire {
    pub(crate) fn pack(connection: u32, to_sender: bool, segment: &Segment) -> Self {
        let Segment { seq, ack, window, sack, len, timestamp, options, flags } = segment;
        let stamp = timestamp.unwrap_or_default();
        let mut wire = Self {
            seq: *seq,
            ack: *ack,
            connection,
            window: u32::try_from(*window).unwrap_or(u32::MAX),
            timestamp: [stamp.value, stamp.echo],
            options: [0; 6],
            len: *len as u16, // a packet has at most 2296 bytes
            packet_len: segment.packet_len() as u16,
            bits: control_bits(*flags) | timestamp.map_or(0, |_| TIMESTAMP),
            blocks: sack.len() as u8,
            to_sender,
        };
        if flags.syn {
            wire.options[0] = options.mss.map_or(NONE, u32::from);
            wire.options[1] = options.window_scale.map_or(NONE, u32::from);
            wire.options[2] = u32::from(options.sack_permitted);
        } else {
            for (place, &(start, end)) in wire.options.chunks_exact_mut(2).zip(sack.iter()) {
                // Buffers are far smaller than 2 GB.
                place[0] = start.wrapping_sub(*ack) as u32;
                place[1] = end.wrapping_sub(*ack) as u32;
            }
        }
        wire
    }

    pub(crate) fn unpack(&self) -> Segment {
        let is = |bit: u8| self.bits & bit != 0;
        let mut segment = Segment {
            seq: self.seq,
            ack: self.ack,
            window: u64::from(self.window),
            len: u32::from(self.len),
            flags: Flags { syn: is(SYN), ack: is(ACK), fin: is(FIN), rst: is(RST), psh: is(PSH) },
            ..Segment::default()
        };
        if is(TIMESTAMP) {
            let [value, echo] = self.timestamp;
            segment.timestamp = Some(Timestamp { value, echo });
        }
        if is(SYN) {
            let given = |value: u32| (value != NONE).then_some(value);
            segment.options = SynOptions {
                mss: given(self.options[0]).map(|mss| mss as u16),
                window_scale: given(self.options[1]).map(|scale| scale as u8),
                sack_permitted: self.options[2] != 0,
            };
        } else if self.blocks > 0 {
            segment.sack = self.sack_blocks();
        }
        segment
    }

    fn sack_blocks(&self) -> SackBlocks {
        let near = |offset: u32| self.ack.wrapping_add_signed(i64::from(offset.cast_signed()));
        let blocks = self.options.chunks_exact(2).take(usize::from(self.blocks));
        blocks.map(|block| (near(block[0]), near(block[1]))).collect()
    }

    /// Whether the segment is a pure acknowledgement.
    pub(crate) fn is_bare_ack(&self) -> bool {
        self.len == 0 && self.bits & (SYN | FIN | RST) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_a_cache_line() {
        assert_eq!(size_of::<Packet>(), 64);
    }

    #[test]
    fn what_was_packed_is_unpacked() {
        let data = Segment {
            seq: 7_000_000_000,
            ack: 1,
            window: 65_535,
            len: 1_448,
            timestamp: Some(Timestamp { value: 5, echo: 4 }),
            flags: Flags::ACK,
            ..Segment::default()
        };
        let ack = Segment {
            seq: 1,
            ack: 7_000_000_000,
            window: 64 << 20,
            len: 0,
            // The first block is a D-SACK, which lies below the acknowledgement.
            sack: [(6_999_990_000, 6_999_991_448), (7_000_001_448, 7_000_002_896)]
                .into_iter()
                .collect(),
            ..data
        };
        let syn = Segment {
            flags: Flags::SYN,
            options: SynOptions { mss: Some(1_460), window_scale: Some(0), sack_permitted: true },
            timestamp: None,
            ..Segment::default()
        };
        let bare_syn = Segment { options: SynOptions::default(), ..syn };
        let pushed = Segment { flags: Flags { psh: true, ..Flags::ACK }, ..data };
        let fin = Segment { flags: Flags::FIN_ACK, ..data };
        for segment in [data, ack, syn, bare_syn, pushed, fin] {
            let wire = Wire::pack(3, true, &segment);
            assert_eq!(wire.unpack(), segment);
            assert_eq!(usize::from(wire.packet_len), segment.packet_len());
            assert_eq!(wire.is_bare_ack(), segment == ack);
        }
    }
}
