//! The memory in which the bytes of a body are gathered before they are written.

/// What `O_DIRECT` needs of an address, a length and an offset, in bytes: a page, which is at least a sector of all
/// usual disks.
pub(crate) const ALIGNMENT: usize = 4096;

/// The number of connections up to which a body may have two blocks.
const FEW: usize = 16;
/// The number of connections beyond which blocks are small.
const MANY: usize = 256;

/// The size of a block, in bytes, if `open` connections are open. Large blocks keep the disk busy with few requests. The
/// blocks of 200 connections take at most 82 MB, those of 512 connections 113 MB.
fn block_bytes(open: usize) -> usize {
    if open <= FEW {
        1 << 20
    } else if open <= MANY {
        256 << 10
    } else {
        64 << 10
    }
}

/// A buffer whose first byte has an address that is a multiple of [`ALIGNMENT`].
#[derive(Debug)]
pub(crate) struct Block {
    memory: Vec<u8>,
    start: usize,
    length: usize,
    /// The length at which the block is written.
    full: usize,
    size: usize,
}

impl Block {
    /// The blocks for a body of at most `most` bytes that begins at `offset` in its file, while `open` connections are open:
    /// one, and a second one for a long body if few connections are open.
    pub(crate) fn some(open: usize, most: u64, offset: u64) -> [Option<Self>; 2] {
        let whole = block_bytes(open);
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let has_spare = open <= FEW && most > whole;
        [Some(Self::new(whole, most, offset)), has_spare.then(|| Self::new(whole, most, 0))]
    }

    /// A block is full at a multiple of [`ALIGNMENT`] in the file. A body that is shorter than a block fills it once.
    fn new(whole: usize, most: usize, offset: u64) -> Self {
        let size = most.clamp(1, whole);
        let beyond = usize::try_from(offset % ALIGNMENT as u64).expect("less than a page");
        let full = if size == whole { size - beyond } else { size };
        let memory = vec![0; size + ALIGNMENT];
        let start = memory.as_ptr().align_offset(ALIGNMENT);
        Self { memory, start, length: 0, full, size }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.length == self.full
    }

    /// Takes bytes until the block is full. Returns the rest.
    pub(crate) fn fill<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let (taken, rest) = bytes.split_at(bytes.len().min(self.full - self.length));
        self.memory[self.start + self.length..][..taken.len()].copy_from_slice(taken);
        self.length += taken.len();
        rest
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.memory[self.start..][..self.length]
    }

    /// Empties the block, whose next byte follows the last one in the file.
    pub(crate) fn clear(&mut self) {
        self.length = 0;
        self.full = self.size;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_end_at_multiples_of_a_page_in_the_file() {
        for offset in [0, 1, 4095, 4096, 5_000_000_000] {
            let [block, spare] = Block::some(1, 10 << 20, offset);
            let [mut block, mut spare] = [block.unwrap(), spare.unwrap()];
            let bytes = vec![7; 10 << 20];
            let left = block.fill(&bytes).len();
            assert!(block.is_full());
            let end = offset + block.bytes().len() as u64;
            assert!(end.is_multiple_of(ALIGNMENT as u64), "{offset}");
            assert_eq!(left + block.bytes().len(), bytes.len());
            block.clear();
            for block in [&mut block, &mut spare] {
                block.fill(&bytes);
                assert!(block.is_full());
                assert_eq!(block.bytes().len(), 1 << 20);
                assert!(block.bytes().as_ptr().addr().is_multiple_of(ALIGNMENT));
            }
        }
    }

    #[test]
    fn a_short_body_takes_no_more_memory_than_it_needs() {
        for most in [1, 100, 100_000] {
            let [block, spare] = Block::some(1, most as u64, 4000);
            let mut block = block.unwrap();
            assert!(spare.is_none());
            assert_eq!(block.fill(&vec![7; most]), b"");
            assert!(block.is_full());
            assert_eq!(block.memory.len(), most + ALIGNMENT);
        }
    }
}
