//! The limit of a queue, in packets or in bytes, and whether a packet finds room.

use wakeai_units::Bytes;

/// An IP packet of a full Ethernet frame, in bytes.
const FULL_PACKET: u64 = 1_500;

/// The most that a queue holds.
///
/// Access points limit their buffer in packets or in bytes. The access point in the paper on TCP-AV
/// over wireless LANs (section 2.3) held about 300 packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueLimit {
    /// This many packets of any length.
    Packets(u32),
    /// Packets of this many bytes in total, without headers of the link layer.
    Bytes(Bytes),
}

impl QueueLimit {
    /// Whether a queue takes one more packet of `length` bytes, while it has `packets` packets of
    /// `bytes` bytes in total.
    pub fn takes(self, packets: usize, bytes: u64, length: usize) -> bool {
        match self {
            Self::Packets(most) => packets < most as usize,
            Self::Bytes(most) => bytes + length as u64 <= most.get(),
        }
    }

    /// The number of full packets (1500 bytes) that a queue still takes, while it has `packets`
    /// packets of `bytes` bytes in total.
    pub fn room(self, packets: usize, bytes: u64) -> usize {
        match self {
            Self::Packets(most) => (most as usize).saturating_sub(packets),
            Self::Bytes(most) => (most.get().saturating_sub(bytes) / FULL_PACKET) as usize,
        }
    }

    /// The number of full packets of 1500 bytes that an empty queue takes, at least 1.
    pub fn full_packets(self) -> u32 {
        u32::try_from(self.room(0, 0)).unwrap_or(u32::MAX).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_in_packets_counts_small_packets_as_large_ones() {
        let limit = QueueLimit::Packets(3);
        assert_eq!([2, 3].map(|packets| limit.takes(packets, 100_000, 1_500)), [true, false]);
        assert_eq!((limit.room(1, 0), limit.room(9, 0), limit.full_packets()), (2, 0, 3));
    }

    #[test]
    fn a_limit_in_bytes_is_reached_by_the_packet_that_fills_it() {
        let limit = QueueLimit::Bytes(Bytes::new(4_500));
        assert_eq!([3_000, 3_001].map(|bytes| limit.takes(2, bytes, 1_500)), [true, false]);
        assert!(limit.takes(100, 4_400, 100));
        assert_eq!((limit.room(2, 2_900), limit.full_packets()), (1, 3));
    }
}
