//! Congestion windows.

use std::fmt;

use crate::operators::operators;
use crate::{Bytes, Duration, Rate};

/// A number of full-sized TCP segments, the unit of a congestion window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Segments(u32);

impl Segments {
    /// No segment.
    pub const ZERO: Self = Self(0);
    /// The largest number of segments. As a ceiling it stands for no ceiling.
    pub const MAX: Self = Self(u32::MAX);

    /// `count` segments.
    pub const fn new(count: u32) -> Self {
        Self(count)
    }

    /// The number of segments.
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The number of segments of `mss` bytes that `rate` keeps in flight for `rtt` (the
    /// bandwidth-delay product), rounded up and at most [`Segments::MAX`]. Panics where `mss` is
    /// zero.
    pub fn in_flight(rate: Rate, rtt: Duration, mss: Bytes) -> Self {
        assert!(mss > Bytes::ZERO, "the maximum segment size is zero");
        let bits = u128::from(rate.bits_per_second()) * u128::from(rtt.as_nanos());
        let segments = bits.div_ceil(u128::from(mss.bits()) * 1_000_000_000);
        Self(u32::try_from(segments).unwrap_or(u32::MAX))
    }

    /// The data that the segments carry at `mss` bytes each.
    pub fn bytes(self, mss: Bytes) -> Bytes {
        mss * u64::from(self.0)
    }
}

operators!(Segments, u32, "more than 2^32 segments", "a negative window");

impl fmt::Display for Segments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bandwidth_delay_product_rounds_up() {
        let window =
            Segments::in_flight(Rate::from_mbps(10), Duration::from_millis(512), Bytes::new(1448));
        assert_eq!(window, Segments::new(442)); // 10e6 * 0.512 / 8 / 1448 = 441.98
    }
}
