//! Reads decisions from a fuzzer's bytes.

use wakeai_units::Duration;

/// Reads decisions one after the other. After the last byte all decisions are zero. Each byte
/// belongs to one decision, so that a small change of the bytes changes few decisions.
pub(crate) struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn byte(&mut self) -> u8 {
        self.bytes(1).first().copied().unwrap_or(0)
    }

    /// One of `count` choices.
    pub(crate) fn below(&mut self, count: u8) -> u8 {
        self.byte() % count
    }

    pub(crate) fn flag(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    /// True in one of eight cases, for steps that take long.
    pub(crate) fn rarely(&mut self) -> bool {
        self.below(8) == 7
    }

    /// The next `count` bytes, or as many as there are.
    pub(crate) fn bytes(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        taken
    }

    pub(crate) fn number(&mut self) -> u64 {
        self.bytes(8).iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
    }

    /// A number of any size. Small numbers and powers of two take one byte.
    pub(crate) fn magnitude(&mut self) -> u64 {
        match self.byte() {
            small @ 0..=127 => u64::from(small),
            power @ 128..=190 => 1 << (power - 128),
            191 => u64::MAX,
            below @ 192..=223 => (1 << (below - 190)) - 1,
            _ => self.number(),
        }
    }

    /// A number of 32 bits. A larger number becomes the largest number of 32 bits.
    pub(crate) fn count(&mut self) -> u32 {
        u32::try_from(self.magnitude()).unwrap_or(u32::MAX)
    }

    pub(crate) fn option<T>(&mut self, read: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.flag().then(|| read(self))
    }

    /// A span of whole milliseconds, up to a year.
    pub(crate) fn millis(&mut self) -> Duration {
        Duration::from_millis(self.magnitude().min(366 * 24 * 3_600_000))
    }
}
