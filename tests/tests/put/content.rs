//! Files of pseudorandom bytes, so that a byte in the wrong place is found.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read as _, Write as _};
use std::path::Path;

/// The bytes of the file of this length, block by block (Steele's and Vigna's multiplier of a 64-bit linear
/// congruential generator).
fn blocks(length: u64) -> impl Iterator<Item = Vec<u8>> {
    let mut state = 1_u64;
    let mut left = length;
    std::iter::from_fn(move || {
        let size = left.min(1 << 16) as usize;
        left -= size as u64;
        let mut block = Vec::with_capacity(size + 8);
        while block.len() < size {
            state = state.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(1);
            block.extend((state ^ (state >> 32)).to_le_bytes());
        }
        block.truncate(size);
        (size > 0).then_some(block)
    })
}

/// The whole content.
pub(crate) fn content(length: u64) -> Vec<u8> {
    blocks(length).flatten().collect()
}

/// Writes a file of this length.
pub(crate) fn write(path: &Path, length: u64) {
    let mut file = BufWriter::new(File::create(path).unwrap());
    for block in blocks(length) {
        file.write_all(&block).unwrap();
    }
    file.flush().unwrap();
}

/// Whether the file is the one that [`write`] writes.
pub(crate) fn is_whole(path: &Path, length: u64) -> bool {
    let file = File::open(path).unwrap();
    let same_length = file.metadata().unwrap().len() == length;
    let mut file = BufReader::new(file);
    same_length
        && blocks(length).all(|block| {
            let mut found = vec![0; block.len()];
            file.read_exact(&mut found).is_ok() && found == block
        })
}
