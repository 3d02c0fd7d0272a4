//! A few bits of random numbers, by which a receiver finds at once that most messages say nothing to it.

use super::codec::ANSWER_SLOTS;
use super::{BootId, Challenge};

/// A set of random numbers that finds most of the others not to be in it without looking at each one (a
/// Bloom filter with one hash function, the number's own bits). Few of the many messages of
/// incarnations that have not yet proved to be live answer one of this station's challenges.
pub(super) struct Sieve {
    bits: [u64; Self::WORDS],
}

impl Sieve {
    /// So many that with 32 numbers one in 128 of the others is let through.
    const WORDS: usize = 4096 / 64;

    pub(super) fn of(marks: impl Iterator<Item = Mark>) -> Self {
        let mut bits = [0; Self::WORDS];
        for mark in marks {
            bits[mark.word()] |= mark.bit();
        }
        Self { bits }
    }

    /// Whether the number with this mark may be in the set.
    pub(super) fn passes(&self, mark: Mark) -> bool {
        self.bits[mark.word()] & mark.bit() != 0
    }
}

/// Some bits of a random number. Twelve of them are its place in a [`Sieve`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mark(u16);

impl Mark {
    pub(super) fn of(Challenge(number): Challenge) -> Self {
        Self(number as u16)
    }

    pub(super) fn of_boot(BootId(bytes): BootId) -> Self {
        Self(u16::from_le_bytes([bytes[0], bytes[1]]))
    }

    fn word(self) -> usize {
        usize::from(self.0) / 64 % Sieve::WORDS
    }

    fn bit(self) -> u64 {
        1 << (self.0 % 64)
    }
}

/// The marks of a message's answers, and the mark of zero for each empty slot.
#[derive(Clone, Copy, Debug)]
pub(super) struct Marks(pub(super) [Mark; ANSWER_SLOTS]);

impl Marks {
    pub(super) fn of(answers: &[Challenge]) -> Self {
        debug_assert!(answers.len() <= ANSWER_SLOTS, "a message has no more slots");
        let mut marks = [Mark::default(); ANSWER_SLOTS];
        for (mark, answer) in marks.iter_mut().zip(answers) {
            *mark = Mark::of(*answer);
        }
        Self(marks)
    }
}
