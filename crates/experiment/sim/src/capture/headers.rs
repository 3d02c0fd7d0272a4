//! The headers of IPv4, TCP and UDP. The options of TCP are laid out as in Linux; [`Segment::packet_len`] counts the
//! same bytes.

use std::net::Ipv4Addr;

use etherparse::{IpNumber, Ipv4Header, TcpHeader, TcpOptionElement, UdpHeader};
use wakeai_tcp::{Flags, Segment, SynOptions, Timestamp};

/// The payloads that are left out of captures: the checksums are computed as if all their bytes were zero.
static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

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
    let Flags { syn, ack, fin, rst, psh } = segment.flags;
    let window = u16::try_from(segment.window >> scale).unwrap_or(u16::MAX);
    // The header has the low bits of a position, which never wraps here.
    let header = TcpHeader::new(ends.from_port, ends.to_port, segment.seq as u32, window);
    let acknowledgment_number = if ack { segment.ack as u32 } else { 0 };
    let mut header = TcpHeader { acknowledgment_number, syn, ack, fin, rst, psh, ..header };
    header.set_options(&options(segment)).expect("Linux's options fit into a header");
    let payload = &ZEROS[..segment.len as usize];
    let ip = ip(packet, ends, IpNumber::TCP, header.header_len() + payload.len());
    header.checksum = header.calc_checksum_ipv4(&ip, payload).expect("a packet is short");
    packet.extend(header.to_bytes());
    u32::from(ip.total_len)
}

/// Writes the headers of a datagram, and `payload`. `zeros` further bytes of payload are left out of
/// `packet`. The returned length of the packet includes them.
pub(super) fn udp(packet: &mut Vec<u8>, ends: &Ends, payload: &[u8], zeros: u16) -> u32 {
    let whole = [payload, &ZEROS[..usize::from(zeros)]].concat();
    let ip = ip(packet, ends, IpNumber::UDP, UdpHeader::LEN + whole.len());
    let header = UdpHeader::with_ipv4_checksum(ends.from_port, ends.to_port, &ip, &whole);
    packet.extend(header.expect("a packet is short").to_bytes());
    packet.extend(payload);
    u32::from(ip.total_len)
}

/// Writes an IPv4 header. Its identification is 0, because no packet is fragmented (RFC 6864).
fn ip(packet: &mut Vec<u8>, ends: &Ends, protocol: IpNumber, payload: usize) -> Ipv4Header {
    let (from, to) = (ends.from.octets(), ends.to.octets());
    let mut header = Ipv4Header::new(payload as u16, 64, protocol, from, to).expect("it is short");
    header.header_checksum = header.calc_header_checksum();
    packet.extend(header.to_bytes());
    header
}

fn options(segment: &Segment) -> Vec<TcpOptionElement> {
    use TcpOptionElement::{
        MaximumSegmentSize, Noop, SelectiveAcknowledgement, SelectiveAcknowledgementPermitted,
        WindowScale,
    };
    let negotiated = if segment.flags.syn { segment.options } else { SynOptions::default() };
    let padding = |is_needed| [Noop, Noop].into_iter().filter(move |_| is_needed);
    let mut options = Vec::new();
    options.extend(negotiated.mss.map(MaximumSegmentSize));
    if negotiated.sack_permitted {
        options.extend(padding(segment.timestamp.is_none()));
        options.push(SelectiveAcknowledgementPermitted);
    }
    if let Some(Timestamp { value, echo }) = segment.timestamp {
        options.extend(padding(!negotiated.sack_permitted));
        options.push(TcpOptionElement::Timestamp(value, echo));
    }
    if let Some(scale) = negotiated.window_scale {
        options.extend([Noop, WindowScale(scale)]);
    }
    let mut blocks = segment.sack.iter().map(|&(start, end)| (start as u32, end as u32));
    if let Some(first) = blocks.next() {
        let rest = [blocks.next(), blocks.next(), blocks.next()];
        options.extend([Noop, Noop, SelectiveAcknowledgement(first, rest)]);
    }
    options
}

#[cfg(test)]
mod tests {
    use etherparse::TcpOptions;

    use super::*;

    /// Bytes of an IPv4 header without options.
    const IP_HEADER: usize = 20;

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

    fn written(segment: &Segment) -> Vec<u8> {
        let options = TcpOptions::try_from_elements(&options(segment)).unwrap().as_slice().to_vec();
        assert_eq!(40 + options.len(), segment.packet_len());
        options
    }

    #[test]
    fn a_syn_offers_what_linux_offers() {
        let options = SynOptions { mss: Some(1_460), window_scale: Some(10), sack_permitted: true };
        let timestamp = Some(Timestamp { value: 0x0102_0304, echo: 0 });
        let syn = Segment { flags: Flags::SYN, options, timestamp, ..Segment::default() };
        assert_eq!(
            written(&syn),
            [2, 4, 5, 0xB4, 4, 2, 8, 10, 1, 2, 3, 4, 0, 0, 0, 0, 1, 3, 3, 10]
        );
        assert_eq!(
            written(&Segment { timestamp: None, ..syn }),
            [2, 4, 5, 0xB4, 1, 1, 4, 2, 1, 3, 3, 10]
        );
        let plain = SynOptions { sack_permitted: false, ..SynOptions::default() };
        assert_eq!(written(&Segment { options: plain, ..syn })[..4], [1, 1, 8, 10]);
        assert_eq!(written(&Segment { flags: Flags::ACK, ..syn })[..4], [1, 1, 8, 10]);
    }

    #[test]
    fn blocks_wrap_as_positions_do() {
        let sack = [(3, 4), ((1 << 32) - 1, (1 << 32) + 1)].into_iter().collect();
        let ack = Segment { flags: Flags::ACK, sack, ..Segment::default() };
        assert_eq!(
            written(&ack),
            [1, 1, 5, 18, 0, 0, 0, 3, 0, 0, 0, 4, 255, 255, 255, 255, 0, 0, 0, 1]
        );
    }
}
