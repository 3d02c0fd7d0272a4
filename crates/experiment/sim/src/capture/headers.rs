//! IPv4 (RFC 791), TCP (RFC 9293) and UDP (RFC 768) headers.

use std::net::Ipv4Addr;

use wakeai_tcp::Segment;

use super::options;
use crate::packet::control_bits;

/// Bytes of an IPv4 header without options.
const IP_HEADER: usize = 20;
/// Bytes of a UDP header.
const UDP_HEADER: usize = 8;

// Protocol numbers.
const TCP: u8 = 6;
const UDP: u8 = 17;

/// The addresses and ports of a packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ends {
    pub(super) from: Ipv4Addr,
    pub(super) to: Ipv4Addr,
    pub(super) from_port: u16,
    pub(super) to_port: u16,
}

/// Writes the headers of a segment. Returns the length of the packet, including the payload.
pub(super) fn tcp(packet: &mut Vec<u8>, ends: &Ends, segment: &Segment, scale: u8) -> u32 {
    let length = segment.packet_len();
    ip(packet, ends, TCP, length);
    packet.extend(ends.from_port.to_be_bytes());
    packet.extend(ends.to_port.to_be_bytes());
    packet.extend((segment.seq as u32).to_be_bytes()); // the low bits of a position that never wraps
    let ack = if segment.flags.ack { segment.ack as u32 } else { 0 };
    packet.extend(ack.to_be_bytes());
    let words = (length - IP_HEADER - segment.len as usize) / 4;
    packet.extend([(words as u8) << 4, control_bits(segment.flags)]); // at most 15
    let window = u16::try_from(segment.window >> scale).unwrap_or(u16::MAX);
    packet.extend(window.to_be_bytes());
    packet.extend([0; 4]); // checksum, urgent pointer
    options::write(packet, segment);
    debug_assert_eq!(packet.len() + segment.len as usize, length);
    let checksum = transport_checksum(packet, ends, TCP, length);
    packet[IP_HEADER + 16..IP_HEADER + 18].copy_from_slice(&checksum.to_be_bytes());
    length as u32 // a packet has at most 2296 bytes
}

/// Writes the headers of a datagram, and `payload`. `zeros` further bytes of payload may be left
/// out of `packet`. The returned length of the packet includes them.
pub(super) fn udp(packet: &mut Vec<u8>, ends: &Ends, payload: &[u8], zeros: u16) -> u32 {
    let datagram = UDP_HEADER + payload.len() + usize::from(zeros);
    let length = IP_HEADER + datagram;
    ip(packet, ends, UDP, length);
    packet.extend(ends.from_port.to_be_bytes());
    packet.extend(ends.to_port.to_be_bytes());
    packet.extend((datagram as u16).to_be_bytes());
    packet.extend([0; 2]);
    packet.extend(payload);
    // The value 0 means that there is no checksum, so a sum of 0 is sent as all ones (RFC 768).
    let checksum = match transport_checksum(packet, ends, UDP, length) {
        0 => u16::MAX,
        checksum => checksum,
    };
    packet[IP_HEADER + 6..IP_HEADER + 8].copy_from_slice(&checksum.to_be_bytes());
    length as u32
}

/// An IPv4 header. Its identification is 0, because no packet is fragmented (RFC 6864).
fn ip(packet: &mut Vec<u8>, ends: &Ends, protocol: u8, length: usize) {
    packet.extend([0x45, 0]);
    packet.extend((length as u16).to_be_bytes());
    packet.extend([0, 0, 0x40, 0]); // do not fragment
    packet.extend([64, protocol, 0, 0]);
    packet.extend(ends.from.octets());
    packet.extend(ends.to.octets());
    let checksum = !folded(sum(packet));
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
}

/// The checksum over the pseudo header, the header and the payload. Zeros that are not written add
/// nothing.
fn transport_checksum(packet: &[u8], ends: &Ends, protocol: u8, length: usize) -> u16 {
    let pseudo = sum(&ends.from.octets())
        + sum(&ends.to.octets())
        + u64::from(protocol)
        + (length - IP_HEADER) as u64;
    !folded(pseudo + sum(&packet[IP_HEADER..]))
}

/// The sum of the 16-bit words of `bytes` (RFC 1071). A last odd byte is the high half of a word.
fn sum(bytes: &[u8]) -> u64 {
    let word = |pair: &[u8]| u64::from(pair[0]) << 8 | u64::from(*pair.get(1).unwrap_or(&0));
    bytes.chunks(2).map(word).sum()
}

/// The ones' complement sum, folded into 16 bits.
fn folded(mut sum: u64) -> u16 {
    while sum > u64::from(u16::MAX) {
        sum = (sum >> 16) + (sum & u64::from(u16::MAX));
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use wakeai_tcp::{Flags, Timestamp};

    use super::*;

    const ENDS: Ends = Ends {
        from: Ipv4Addr::new(10, 73, 0, 1),
        to: Ipv4Addr::new(10, 74, 0, 1),
        from_port: 57_344,
        to_port: 49_152,
    };

    /// Checks a packet as a receiver does: the sum over all bytes, with the checksum, is all ones
    /// (RFC 1071).
    fn is_intact(packet: &[u8], length: u32) {
        assert_eq!(folded(sum(&packet[..IP_HEADER])), u16::MAX);
        let pseudo = sum(&packet[12..20]) + u64::from(packet[9]) + u64::from(length) - 20;
        assert_eq!(folded(pseudo + sum(&packet[IP_HEADER..])), u16::MAX);
        assert_eq!(u32::from(u16::from_be_bytes([packet[2], packet[3]])), length);
    }

    #[test]
    fn positions_beyond_4_gb_wrap_and_windows_are_shifted() {
        let segment = Segment {
            seq: (1 << 32) + 5,
            ack: (7 << 32) + 9,
            window: 64 << 20,
            len: 1_448,
            timestamp: Some(Timestamp { value: 3, echo: 2 }),
            flags: Flags::ACK,
            ..Segment::default()
        };
        let mut packet = Vec::new();
        assert_eq!(tcp(&mut packet, &ENDS, &segment, 11), 1_500);
        assert_eq!(packet.len(), 52);
        is_intact(&packet, 1_500);
        assert_eq!(packet[20..24], [0xE0, 0, 0xC0, 0]);
        assert_eq!(packet[24..32], [0, 0, 0, 5, 0, 0, 0, 9]);
        assert_eq!(packet[32..36], [0x80, 0x10, 0x80, 0]);
    }

    #[test]
    fn a_datagram_is_as_long_as_its_bytes_and_its_zeros() {
        let mut packet = Vec::new();
        assert_eq!(udp(&mut packet, &ENDS, b"odd", 0), 31);
        is_intact(&packet, 31);
        assert_eq!(&packet[28..], b"odd");
        packet.clear();
        assert_eq!(udp(&mut packet, &ENDS, &[], 1_472), 1_500);
        assert_eq!((packet.len(), &packet[24..26]), (28, &1_480_u16.to_be_bytes()[..]));
        is_intact(&packet, 1_500);
    }

    #[test]
    fn a_checksum_is_never_zero() {
        let mut packet = Vec::new();
        let none = (0..=u16::MAX).find(|word| {
            packet.clear();
            udp(&mut packet, &ENDS, &word.to_be_bytes(), 0);
            packet[26..28] == [0xFF; 2]
        });
        assert!(none.is_some(), "one of all words gives it");
        is_intact(&packet, 30);
    }
}
