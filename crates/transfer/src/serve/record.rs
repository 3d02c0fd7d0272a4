//! The record of an upload's offset on disk.
//!
//! `ID.state` begins with two slots, each in a sector of its own. Records go to the two slots in turns. A crash in the
//! middle of a write damages one slot at most. The other slot still has the offset that was acknowledged before.

use sha2::{Digest as _, Sha256};

/// The distance between the slots: a sector, which disks write as a whole.
const SLOT_BYTES: usize = 512;
/// The length of both slots.
pub(crate) const HEAD_BYTES: usize = 2 * SLOT_BYTES;
/// The length of a record in its slot.
pub(crate) const RECORD_BYTES: usize = 32;
const CHECKED_BYTES: usize = 24;

/// The offset up to which bytes are acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Record {
    /// The sequence number. It is higher than that of the previous record.
    pub(crate) sequence: u64,
    pub(crate) offset: u64,
    /// The time of the last activity, in seconds since 1970.
    pub(crate) at: u64,
}

impl Record {
    /// The position of the record in the file, and the bytes of the record.
    pub(crate) fn encode(self) -> (u64, [u8; RECORD_BYTES]) {
        let mut bytes = [0; RECORD_BYTES];
        for (into, number) in bytes.chunks_exact_mut(8).zip([self.sequence, self.offset, self.at]) {
            into.copy_from_slice(&number.to_le_bytes());
        }
        let check = check(&bytes);
        bytes[CHECKED_BYTES..].copy_from_slice(&check);
        (self.sequence % 2 * SLOT_BYTES as u64, bytes)
    }

    /// The newest intact record in the file's bytes.
    pub(crate) fn newest(file: &[u8]) -> Option<Self> {
        let slots = file.chunks(SLOT_BYTES).take(2);
        slots.filter_map(Self::decode).max_by_key(|record| record.sequence)
    }

    fn decode(slot: &[u8]) -> Option<Self> {
        let bytes = slot.get(..RECORD_BYTES)?;
        if bytes[CHECKED_BYTES..] != check(bytes) {
            return None;
        }
        let number = |at: usize| {
            let bytes = bytes[at..at + 8].try_into().expect("eight bytes");
            u64::from_le_bytes(bytes)
        };
        Some(Self { sequence: number(0), offset: number(8), at: number(16) })
    }
}

fn check(bytes: &[u8]) -> [u8; RECORD_BYTES - CHECKED_BYTES] {
    let digest = Sha256::digest(&bytes[..CHECKED_BYTES]);
    digest[..RECORD_BYTES - CHECKED_BYTES].try_into().expect("eight bytes of 32")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_write_leaves_the_record_before() {
        let mut file = vec![0; HEAD_BYTES];
        assert_eq!(Record::newest(&file), None);
        let mut before = None;
        for sequence in 1..=5 {
            let record = Record { sequence, offset: sequence * 1000, at: 7 };
            let (at, bytes) = record.encode();
            let slot = at as usize..at as usize + RECORD_BYTES;
            for torn in 1..RECORD_BYTES {
                let mut file = file.clone();
                file[slot.start..slot.start + torn].copy_from_slice(&bytes[..torn]);
                let found = Record::newest(&file);
                assert!(found == before || found == Some(record), "{found:?} after {torn} bytes");
            }
            file[slot].copy_from_slice(&bytes);
            assert_eq!(Record::newest(&file), Some(record));
            before = Some(record);
        }
    }
}
