//! Amounts of data.

use std::fmt;
use std::iter::Sum;
use std::ops::Add;
use std::str::FromStr;

use crate::operators::operators;
use crate::parse::{ParseQuantityError, parse_scaled, write_scaled};

/// An amount of data in bytes. Its prefixes are decimal: 1 kB is 1000 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(u64);

const UNITS: &[(&str, u64)] =
    &[("B", 1), ("kB", 1_000), ("MB", 1_000_000), ("GB", 1_000_000_000), ("TB", 1_000_000_000_000)];

impl Bytes {
    /// Zero bytes.
    pub const ZERO: Self = Self(0);

    /// `count` bytes.
    pub const fn new(count: u64) -> Self {
        Self(count)
    }

    /// The number of bytes.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The number of bits. Panics past 2^64 bits.
    pub const fn bits(self) -> u64 {
        self.0.checked_mul(8).expect("more than 2^64 bits")
    }

    /// The sum, or `None` on overflow.
    pub fn checked_add(self, other: Self) -> Option<Self> {
        self.0.checked_add(other.0).map(Self)
    }
}

operators!(Bytes, u64, "more than 2^64 bytes", "a negative amount of data");

impl Sum for Bytes {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::ZERO, Add::add)
    }
}

impl FromStr for Bytes {
    type Err = ParseQuantityError;
    /// Reads `10MB`, `1.5kB`, `100B`: a decimal number and one of B, kB, MB, GB, TB.
    fn from_str(text: &str) -> Result<Self, ParseQuantityError> {
        parse_scaled(text, UNITS, "a size such as \"10MB\" or \"500kB\"").map(Self)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_scaled(f, self.0, &UNITS[..4]) // at most GB
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_decimal() {
        assert_eq!("10MB".parse::<Bytes>().unwrap(), Bytes::new(10_000_000));
        assert_eq!(Bytes::new(1_500).to_string(), "1.5kB");
    }
}
