//! What the lab reads of a packet: where it goes.

use std::net::Ipv4Addr;
use std::rc::Rc;

use wakeai_medium::Packet;

/// An IP packet as it came from a TUN device. A copy is a reference: broadcasts share the bytes.
#[derive(Clone, Debug)]
pub(crate) struct Frame(Rc<[u8]>);

impl Frame {
    /// A copy of `packet`.
    pub(crate) fn new(packet: &[u8]) -> Self {
        Self(Rc::from(packet))
    }

    /// The packet's bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl Packet for Frame {
    fn len(&self) -> usize {
        self.0.len()
    }
}

/// The destination of an IPv4 packet (RFC 791 §3.1); `None` where it is short, of another
/// version, or its lengths contradict each other.
pub(crate) fn destination(packet: &[u8]) -> Option<Ipv4Addr> {
    let header = packet.get(..20)?;
    let header_bytes = usize::from(header[0] & 0x0f) * 4;
    let total_bytes = usize::from(u16::from_be_bytes([header[2], header[3]]));
    let sound = header[0] >> 4 == 4 && header_bytes >= 20 && header_bytes <= total_bytes;
    if !sound || total_bytes != packet.len() {
        return None;
    }
    Some(Ipv4Addr::new(header[16], header[17], header[18], header[19]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet() -> Vec<u8> {
        let mut packet = vec![0; 28];
        packet[0] = 0x45;
        packet[3] = 28;
        packet[16..20].copy_from_slice(&[10, 73, 0, 2]);
        packet
    }

    #[test]
    fn a_sound_packet_names_its_destination() {
        assert_eq!(destination(&packet()), Some(Ipv4Addr::new(10, 73, 0, 2)));
    }

    #[test]
    fn short_foreign_and_contradictory_packets_have_none() {
        assert_eq!(destination(&[]), None);
        assert_eq!(destination(&packet()[..19]), None);
        assert_eq!(destination(&packet()[..27]), None, "shorter than its own length");
        let mut ipv6 = packet();
        ipv6[0] = 0x60;
        assert_eq!(destination(&ipv6), None);
        let mut header_too_long = packet();
        header_too_long[0] = 0x4f;
        assert_eq!(destination(&header_too_long), None);
        let mut header_too_short = packet();
        header_too_short[0] = 0x44;
        assert_eq!(destination(&header_too_short), None);
    }
}
