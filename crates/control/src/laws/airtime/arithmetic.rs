//! Parts of rates and windows.

use wakeai_units::{Rate, Segments};

/// Parts in [`scale`].
pub(super) const PERMILLE: u32 = 1000;

pub(super) fn times(rate: Rate, numerator: u64, denominator: u64) -> Rate {
    rate.mul_div(numerator, denominator).unwrap_or(rate)
}

/// So many thousandths of the window.
pub(super) fn scale(window: Segments, permille: u32) -> Segments {
    let scaled = u64::from(window.get()) * u64::from(permille) / u64::from(PERMILLE);
    Segments::new(u32::try_from(scaled).unwrap_or(u32::MAX))
}

pub(super) fn mean(one: Segments, other: Segments) -> Segments {
    Segments::new(one.get() / 2 + other.get() / 2 + (one.get() & other.get() & 1))
}
