//! The lab's packets: their bytes and their destination.

use std::cell::RefCell;
use std::net::Ipv4Addr;
use std::rc::Rc;

use wakeai_medium::{MAX_PACKET, Packet};

/// The number of slots (pieces of memory for one packet each) that a pool has from the start.
const PREPARED: usize = 4_096;

/// An IP packet from a TUN device. Clones, such as the copies of a broadcast, share the bytes.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    /// `None` only while the frame is dropped.
    slot: Option<Rc<Slot>>,
    pool: Rc<Spares>,
}

#[derive(Debug)]
struct Slot {
    length: usize,
    bytes: [u8; MAX_PACKET],
}

type Spares = RefCell<Vec<Rc<Slot>>>;

/// The memory of frames. A dropped frame returns its slot to the pool.
///
/// The pool exists because the driver's thread must not allocate memory. To allocate, the thread
/// might have to wait for an ordinary thread that is changing the process's memory map, and that
/// thread may be waiting for a processor.
#[derive(Debug)]
pub(crate) struct Pool(Rc<Spares>);

impl Pool {
    /// A pool with spare slots.
    pub(crate) fn new() -> Self {
        let spares = (0..PREPARED).map(|_| Rc::new(Slot::EMPTY)).collect();
        Self(Rc::new(RefCell::new(spares)))
    }

    /// A copy of `packet`; `None` if it is too long for a frame.
    pub(crate) fn frame(&self, packet: &[u8]) -> Option<Frame> {
        let mut slot = self.0.borrow_mut().pop().unwrap_or_else(|| Rc::new(Slot::EMPTY));
        let free = Rc::get_mut(&mut slot).expect("spare slots have no other owner");
        free.bytes.get_mut(..packet.len())?.copy_from_slice(packet);
        free.length = packet.len();
        Some(Frame { slot: Some(slot), pool: Rc::clone(&self.0) })
    }
}

impl Slot {
    const EMPTY: Self = Self { length: 0, bytes: [0; MAX_PACKET] };
}

impl Frame {
    /// The packet's bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.slot.as_ref().map_or(&[], |slot| &slot.bytes[..slot.length])
    }
}

impl Drop for Frame {
    fn drop(&mut self) {
        if let Some(slot) = self.slot.take()
            && Rc::strong_count(&slot) == 1
        {
            self.pool.borrow_mut().push(slot);
        }
    }
}

impl Packet for Frame {
    fn len(&self) -> usize {
        self.bytes().len()
    }
}

/// The destination of an IPv4 packet (RFC 791 section 3.1). It is `None` if the packet is too short
/// or not IPv4, or if its lengths contradict each other.
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
        assert_eq!(destination(&packet()[..27]), None, "shorter than its header says");
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

    #[test]
    fn a_slot_goes_back_to_the_pool_with_the_last_copy_of_its_frame() {
        let pool = Pool::new();
        let spare = || pool.0.borrow().len();
        let frame = pool.frame(b"one").unwrap();
        let copy = frame.clone();
        assert_eq!(spare(), PREPARED - 1);
        drop(frame);
        assert_eq!(spare(), PREPARED - 1);
        assert_eq!((copy.bytes(), copy.len()), (&b"one"[..], 3));
        drop(copy);
        assert_eq!(spare(), PREPARED);
        let longer = pool.frame(b"another").unwrap();
        assert_eq!(longer.bytes(), b"another", "nothing is left of the slot's previous packet");
    }

    #[test]
    fn a_packet_that_no_frame_carries_has_no_slot() {
        assert!(Pool::new().frame(&[0; MAX_PACKET + 1]).is_none());
    }
}
