//! A ring of bits that is searched a word at a time.

/// One bit for each position of a window that slides over the whole numbers.
#[derive(Clone, Debug)]
pub(super) struct Bits {
    words: Vec<u64>,
    /// Number of bits less one; that number is a power of two.
    mask: u64,
}

impl Bits {
    /// For windows of up to `capacity` positions, a power of two that is at least 64.
    pub(super) fn new(capacity: u64) -> Self {
        debug_assert!(capacity.is_power_of_two() && capacity >= 64, "whole words");
        Self { words: vec![0; (capacity / 64) as usize], mask: capacity - 1 }
    }

    fn word(&self, at: u64) -> usize {
        ((at & self.mask) / 64) as usize
    }

    pub(super) fn set(&mut self, at: u64) {
        let word = self.word(at);
        self.words[word] |= 1 << (at % 64);
    }

    pub(super) fn clear(&mut self, at: u64) {
        let word = self.word(at);
        self.words[word] &= !(1 << (at % 64));
    }

    /// The first position in `from..to` whose bit is set.
    pub(super) fn next_set(&self, from: u64, to: u64) -> Option<u64> {
        self.next(from, to, 0)
    }

    /// The first position in `from..to` whose bit is not set.
    pub(super) fn next_clear(&self, from: u64, to: u64) -> Option<u64> {
        self.next(from, to, u64::MAX)
    }

    fn next(&self, from: u64, to: u64, flip: u64) -> Option<u64> {
        let mut at = from;
        while at < to {
            let found = (self.words[self.word(at)] ^ flip) >> (at % 64);
            if found != 0 {
                at += u64::from(found.trailing_zeros());
                return (at < to).then_some(at);
            }
            at = (at | 63) + 1;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn searches_cross_words_and_the_end_of_the_ring() {
        let mut bits = Bits::new(128);
        for at in [100, 190, 191, 192] {
            bits.set(at);
        }
        assert_eq!(bits.next_set(90, 200), Some(100));
        assert_eq!(bits.next_set(101, 200), Some(190));
        assert_eq!(bits.next_set(101, 190), None);
        assert_eq!(bits.next_clear(190, 200), Some(193));
        assert_eq!(bits.next_clear(190, 193), None);
        bits.clear(191);
        assert_eq!(bits.next_clear(190, 193), Some(191));
    }
}
