//! The bytes that open a TCP connection of the measurement, and the bytes of its result.
//!
//! The client's first 72 bytes are `WKPS`, version 1, direction, two bytes of zero, the session of
//! the UDP side, the number of the connection in that session, the time in nanoseconds, eight bytes
//! of zero and 32 bytes of keyed BLAKE3 as an authentication code. A listener accepts each number
//! once, so a recorded connection cannot be repeated. After an upload the listener answers with two
//! rates in bits per second, of the whole time and of the slowest second, and 32 bytes of keyed
//! BLAKE3.

use wakeai_units::{Duration, Rate};

use super::meter::Goodput;
use crate::token::Token;

const MAGIC: [u8; 4] = *b"WKPS";
const VERSION: u8 = 1;
const SIGNED: usize = 40;

/// The number of bytes that open a connection.
pub(crate) const OPENING_BYTES: usize = SIGNED + 32;
/// The number of bytes of a result.
pub(crate) const RESULT_BYTES: usize = 16 + 32;
/// The longest time for which a connection may measure.
pub const MOST_TIME: Duration = Duration::from_secs(120);

/// The direction of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::FromRepr)]
#[repr(u8)]
pub enum StreamDirection {
    /// From the station.
    Up = 1,
    /// To the station.
    Down = 2,
}

/// A connection, as its first bytes describe it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SoloStream {
    /// The session of the UDP side.
    pub session: u64,
    /// The connection's number in the session, from 1.
    pub number: u64,
    /// The direction of the data.
    pub direction: StreamDirection,
    /// The time to measure; whole seconds, at most [`MOST_TIME`].
    pub time: Duration,
}

/// The key with which both ends authenticate the opening and the result of a connection.
#[derive(Clone)]
pub struct StreamKey([u8; 32]);

impl StreamKey {
    /// Derives the key from the token.
    pub fn new(token: &Token) -> Self {
        Self(token.key("Wakeai probe v1 streams"))
    }

    /// The client's first bytes.
    pub fn open(&self, stream: &SoloStream) -> [u8; OPENING_BYTES] {
        let mut bytes = [0; OPENING_BYTES];
        bytes[0..4].copy_from_slice(&MAGIC);
        bytes[4] = VERSION;
        bytes[5] = stream.direction as u8;
        bytes[8..16].copy_from_slice(&stream.session.to_be_bytes());
        bytes[16..24].copy_from_slice(&stream.number.to_be_bytes());
        bytes[24..32].copy_from_slice(&stream.time.as_nanos().to_be_bytes());
        let hash = blake3::keyed_hash(&self.0, &bytes[..SIGNED]);
        bytes[SIGNED..].copy_from_slice(hash.as_bytes());
        bytes
    }

    /// The connection that a holder of the token has opened; `None` for any other bytes.
    pub fn read(&self, bytes: &[u8; OPENING_BYTES]) -> Option<SoloStream> {
        let (signed, hash) = bytes.split_first_chunk::<SIGNED>()?;
        let hash: [u8; 32] = hash.try_into().ok()?;
        // `blake3::Hash` compares in constant time.
        if signed[0..4] != MAGIC
            || signed[4] != VERSION
            || blake3::keyed_hash(&self.0, signed) != blake3::Hash::from(hash)
        {
            return None;
        }
        let direction = StreamDirection::from_repr(signed[5])?;
        let time = Duration::from_nanos(u64_at(signed, 24)?);
        let is_allowed = time <= MOST_TIME && !time.is_zero();
        let (session, number) = (u64_at(signed, 8)?, u64_at(signed, 16)?);
        is_allowed.then_some(SoloStream { session, number, direction, time })
    }

    /// Writes the result of an upload.
    pub fn result(&self, stream: &SoloStream, goodput: &Goodput) -> [u8; RESULT_BYTES] {
        let mut bytes = [0; RESULT_BYTES];
        bytes[0..8].copy_from_slice(&goodput.rate.bits_per_second().to_be_bytes());
        bytes[8..16].copy_from_slice(&goodput.slowest_second.bits_per_second().to_be_bytes());
        let hash = self.result_hash(stream, &bytes[..16]);
        bytes[16..].copy_from_slice(hash.as_bytes());
        bytes
    }

    /// Reads the result of an upload; `None` if its authentication code is wrong.
    pub fn read_result(&self, stream: &SoloStream, bytes: &[u8; RESULT_BYTES]) -> Option<Goodput> {
        let (rates, hash) = bytes.split_first_chunk::<16>()?;
        let hash: [u8; 32] = hash.try_into().ok()?;
        let rate = |at| u64_at(rates, at).map(Rate::from_bps);
        let is_ours = self.result_hash(stream, rates) == blake3::Hash::from(hash);
        is_ours.then_some(Goodput { rate: rate(0)?, slowest_second: rate(8)? })
    }

    fn result_hash(&self, stream: &SoloStream, rates: &[u8]) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(b"result").update(&self.open(stream)).update(rates).finalize()
    }
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_be_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> StreamKey {
        StreamKey::new(&Token::from_bytes([1; 16]))
    }

    const STREAM: SoloStream = SoloStream {
        session: 5,
        number: 2,
        direction: StreamDirection::Down,
        time: Duration::from_secs(10),
    };

    #[test]
    fn an_opening_reads_as_it_was_written_and_no_changed_one_does() {
        let opening = key().open(&STREAM);
        assert_eq!(key().read(&opening), Some(STREAM));
        for bit in 0..OPENING_BYTES * 8 {
            let mut changed = opening;
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(key().read(&changed), None, "bit {bit}");
        }
        assert_eq!(StreamKey::new(&Token::from_bytes([2; 16])).read(&opening), None);
    }

    #[test]
    fn a_connection_of_hours_is_refused() {
        for time in [Duration::ZERO, MOST_TIME + Duration::from_nanos(1)] {
            assert_eq!(key().read(&key().open(&SoloStream { time, ..STREAM })), None, "{time}");
        }
    }

    #[test]
    fn a_result_belongs_to_its_connection() {
        let goodput = Goodput { rate: Rate::from_mbps(20), slowest_second: Rate::from_mbps(19) };
        let result = key().result(&STREAM, &goodput);
        assert_eq!(key().read_result(&STREAM, &result), Some(goodput));
        assert_eq!(key().read_result(&SoloStream { number: 3, ..STREAM }, &result), None);
    }
}
