//! A digest of all packets that the medium delivered, for runs that are to be the same.

use wakeai_units::Instant;

/// An odd number with as many ones as zeros: the fraction of the golden ratio in 64 bits.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// A digest of release times and packets, in their order. It tells runs apart that differ by accident; nobody who wants
/// two runs to look the same is kept from it. In a guest each instruction takes time of the run, and this takes two for
/// each eight bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PacketsDigest(u64);

impl PacketsDigest {
    /// The digest of no packet.
    pub(crate) const EMPTY: Self = Self(FACTOR);

    /// Adds a packet that was released at `at`.
    pub(crate) fn add(&mut self, at: Instant, packet: &[u8]) {
        self.word(at.as_nanos());
        self.word(packet.len() as u64);
        let (words, rest) = packet.as_chunks::<8>();
        for word in words {
            self.word(u64::from_le_bytes(*word));
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        self.word(u64::from_le_bytes(last));
    }

    /// The digest of the packets so far.
    pub(crate) fn value(self) -> u64 {
        self.0
    }

    fn word(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word) * u128::from(FACTOR);
        // Both halves count, so that every bit of the word does; the sum keeps the order.
        self.0 = (product as u64 ^ (product >> 64) as u64).wrapping_add(FACTOR);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(packets: &[(u64, &[u8])]) -> PacketsDigest {
        let mut digest = PacketsDigest::EMPTY;
        for (at, packet) in packets {
            digest.add(Instant::from_nanos(*at), packet);
        }
        digest
    }

    #[test]
    fn each_time_byte_length_and_the_order_count() {
        let whole: Vec<u8> = (0..=254).collect();
        let digest = of(&[(7, &whole), (8, b"x")]);
        assert_eq!(of(&[(7, &whole), (8, b"x")]), digest);
        assert_ne!(of(&[(8, b"x"), (7, &whole)]), digest);
        assert_ne!(of(&[(7, &whole), (9, b"x")]), digest);
        assert_ne!(of(&[(7, &whole), (8, b"x\0")]), digest);
        assert_ne!(of(&[(7, &whole)]), digest);
        for at in 0..whole.len() {
            for bit in 0..8 {
                let mut other = whole.clone();
                other[at] ^= 1 << bit;
                assert_ne!(of(&[(7, &other), (8, b"x")]), digest, "byte {at}, bit {bit}");
            }
        }
    }
}
