//! The datagrams of the probes: their bytes, written, read and authenticated.
//!
//! | bytes | content |
//! |---|---|
//! | 0-3 | `WKPB` |
//! | 4 | version, 1 |
//! | 5 | kind |
//! | 6-7 | length of the body |
//! | 8-15 | session: a random number of the sender |
//! | 16-19 | burst |
//! | 20-23 | number of the datagram in its burst, or of the first arrival that is asked for or listed |
//! | 24-31 | for data the flow; for a request its number, which the answer repeats |
//! | 32-63 | keyed BLAKE3 of the bytes 0-31 and of the body |
//! | 64-… | the body, then padding |
//!
//! Integers are big-endian. The padding makes data as long as asked, and a request as long as its
//! answer. So a listener never sends more bytes than it got, even where an attacker repeats a
//! recorded request with a victim's address. Padding is not read.

use crate::token::Token;

const MAGIC: [u8; 4] = *b"WKPB";
const VERSION: u8 = 1;
const SIGNED: usize = 32;

/// The length of a datagram without body and padding.
pub const HEADER_BYTES: usize = 64;
/// The longest datagram that is sent: with 28 bytes of UDP and IPv4 it fills a packet of 1500 bytes.
pub const LONGEST_BYTES: usize = 1472;

/// The purpose of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::FromRepr, strum::VariantArray)]
#[repr(u8)]
pub enum DatagramKind {
    /// The sender begins a session.
    Hello = 1,
    /// The listener has begun the session.
    Welcome = 2,
    /// A numbered datagram of a burst.
    Data = 3,
    /// The sender asks for arrivals.
    Fetch = 4,
    /// The listener lists arrivals in the body.
    Arrivals = 5,
    /// The sender asks for an answer of the same length, to measure a round-trip time.
    Ping = 6,
    /// The answer to a ping.
    Pong = 7,
    /// The sender ends the session.
    Bye = 8,
}

/// The fields of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The purpose of the datagram.
    pub kind: DatagramKind,
    /// The session.
    pub session: u64,
    /// The burst.
    pub burst: u32,
    /// The number of the datagram within the burst, or of the first arrival.
    pub number: u32,
    /// The flow of data, or the number of a request.
    pub tag: u64,
}

/// The key with which both ends authenticate datagrams.
#[derive(Clone)]
pub struct Seal([u8; 32]);

impl Seal {
    /// Derives the key from the token.
    pub fn new(token: &Token) -> Self {
        Self(token.key("Wakeai probe v1 datagrams"))
    }

    /// Writes a datagram of `length` bytes into `buffer`; `None` where header and body do not fit.
    pub fn write<'a>(
        &self,
        header: &Header,
        body: &[u8],
        length: usize,
        buffer: &'a mut [u8],
    ) -> Option<&'a [u8]> {
        let datagram = buffer.get_mut(..length)?;
        let end = HEADER_BYTES.checked_add(body.len()).filter(|end| *end <= length)?;
        let body_bytes = u16::try_from(body.len()).ok()?;
        let Header { kind, session, burst, number, tag } = *header;
        datagram[0..4].copy_from_slice(&MAGIC);
        datagram[4] = VERSION;
        datagram[5] = kind as u8;
        datagram[6..8].copy_from_slice(&body_bytes.to_be_bytes());
        datagram[8..16].copy_from_slice(&session.to_be_bytes());
        datagram[16..20].copy_from_slice(&burst.to_be_bytes());
        datagram[20..24].copy_from_slice(&number.to_be_bytes());
        datagram[24..32].copy_from_slice(&tag.to_be_bytes());
        datagram[HEADER_BYTES..end].copy_from_slice(body);
        datagram[end..].fill(0);
        let hash = self.hash(&datagram[..SIGNED], body);
        datagram[SIGNED..HEADER_BYTES].copy_from_slice(hash.as_bytes());
        Some(datagram)
    }

    /// The header and the body of a datagram that a holder of the token made; `None` for any other
    /// bytes.
    pub fn read<'a>(&self, datagram: &'a [u8]) -> Option<(Header, &'a [u8])> {
        let (header, rest) = datagram.split_first_chunk::<HEADER_BYTES>()?;
        if header[0..4] != MAGIC || header[4] != VERSION {
            return None;
        }
        let kind = DatagramKind::from_repr(header[5])?;
        let body = rest.get(..usize::from(u16::from_be_bytes([header[6], header[7]])))?;
        let found: [u8; 32] = header[SIGNED..].try_into().ok()?;
        // `blake3::Hash` compares in constant time.
        if self.hash(&header[..SIGNED], body) != blake3::Hash::from(found) {
            return None;
        }
        let u32_at = |at: usize| {
            u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
        };
        let u64_at = |at: usize| u64::from(u32_at(at)) << 32 | u64::from(u32_at(at + 4));
        let (session, burst, number, tag) = (u64_at(8), u32_at(16), u32_at(20), u64_at(24));
        Some((Header { kind, session, burst, number, tag }, body))
    }

    fn hash(&self, signed: &[u8], body: &[u8]) -> blake3::Hash {
        blake3::Hasher::new_keyed(&self.0).update(signed).update(body).finalize()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn seal() -> Seal {
        Seal::new(&Token::from_bytes([7; 16]))
    }

    const HEADER: Header =
        Header { kind: DatagramKind::Fetch, session: 1 << 40, burst: 2, number: 3, tag: 4 };

    fn any_kind() -> impl Strategy<Value = DatagramKind> {
        (1..9_u8).prop_map(|byte| DatagramKind::from_repr(byte).unwrap())
    }

    proptest! {
        #[test]
        fn a_datagram_reads_as_it_was_written(
            kind in any_kind(), session: u64, burst: u32, number: u32, tag: u64,
            body in prop::collection::vec(any::<u8>(), 0..1_408), padding in 0..200_usize,
        ) {
            let header = Header { kind, session, burst, number, tag };
            let length = (HEADER_BYTES + body.len() + padding).min(LONGEST_BYTES);
            let mut buffer = [0xff; LONGEST_BYTES];
            let datagram = seal().write(&header, &body, length, &mut buffer).unwrap();
            prop_assert_eq!(datagram.len(), length);
            prop_assert_eq!(seal().read(datagram), Some((header, &body[..])));
        }

        #[test]
        fn a_datagram_with_one_changed_bit_is_refused(bit in 0..(HEADER_BYTES + 10) * 8) {
            let mut buffer = [0; LONGEST_BYTES];
            let length = HEADER_BYTES + 10;
            let mut datagram = seal().write(&HEADER, &[9; 10], length, &mut buffer).unwrap().to_vec();
            datagram[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(seal().read(&datagram), None);
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..1_500)) {
            prop_assert_eq!(seal().read(&bytes), None);
        }
    }

    #[test]
    fn another_token_s_datagram_and_every_shortened_one_are_refused() {
        let mut buffer = [0; LONGEST_BYTES];
        let datagram = seal().write(&HEADER, &[1, 2, 3], HEADER_BYTES + 3, &mut buffer).unwrap();
        assert_eq!(Seal::new(&Token::from_bytes([8; 16])).read(datagram), None);
        for length in 0..datagram.len() {
            assert_eq!(seal().read(&datagram[..length]), None, "{length}");
        }
    }

    #[test]
    fn a_body_that_does_not_fit_is_not_written() {
        let mut buffer = [0; 100];
        assert!(seal().write(&HEADER, &[0; 37], 100, &mut buffer).is_none());
        assert!(seal().write(&HEADER, &[], 101, &mut buffer).is_none());
        assert!(seal().write(&HEADER, &[0; 36], 100, &mut buffer).is_some());
    }
}
