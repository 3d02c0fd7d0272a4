//! A part of the air.

use std::fmt;

use wakeai_units::Rate;

/// A part of the air, in parts per million. More than the whole can be asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Share(u32);

impl Share {
    /// Nothing.
    pub const ZERO: Self = Self(0);
    /// All of the air.
    pub const WHOLE: Self = Self(1_000_000);

    /// That many parts per million.
    pub const fn from_ppm(ppm: u32) -> Self {
        Self(ppm)
    }

    /// That many percent.
    pub const fn from_percent(percent: u32) -> Self {
        Self(percent.saturating_mul(10_000))
    }

    /// Parts per million.
    pub const fn ppm(self) -> u32 {
        self.0
    }

    /// The ratio of `part` to `whole`, rounded up; `None` where `whole` is zero.
    pub fn of(part: Rate, whole: Rate) -> Option<Self> {
        let whole = u128::from(whole.bits_per_second());
        let ppm = (u128::from(part.bits_per_second()) * u128::from(Self::WHOLE.0))
            .checked_add(whole.checked_sub(1)?)?
            / whole;
        Some(Self(u32::try_from(ppm).unwrap_or(u32::MAX)))
    }

    /// The sum, saturating.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// The difference; zero where `other` is more.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// That many percent of it.
    #[must_use]
    pub fn percent(self, percent: u32) -> Self {
        let ppm = u64::from(self.0) * u64::from(percent) / 100;
        Self(u32::try_from(ppm).unwrap_or(u32::MAX))
    }

    /// This part of `rate`.
    pub fn of_rate(self, rate: Rate) -> Rate {
        rate.mul_div(u64::from(self.0), u64::from(Self::WHOLE.0)).unwrap_or(rate)
    }
}

impl fmt::Display for Share {
    /// `40.3 %`, rounded up, so that a share that is refused by little does not look as if it fitted.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = self.0.div_ceil(1_000);
        write!(f, "{}.{} %", tenths / 10, tenths % 10)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_rounded_up_and_shown_so() {
        let share = Share::of(Rate::from_bps(1), Rate::from_bps(3));
        assert_eq!(share, Some(Share::from_ppm(333_334)));
        assert_eq!(Share::of(Rate::from_mbps(1), Rate::ZERO), None);
        assert_eq!(Share::from_ppm(800_001).to_string(), "80.1 %");
        assert_eq!(Share::from_percent(80).to_string(), "80.0 %");
    }

    #[test]
    fn parts_of_rates_and_of_shares() {
        assert_eq!(Share::from_percent(40).of_rate(Rate::from_mbps(20)), Rate::from_mbps(8));
        assert_eq!(Share::from_percent(20).percent(75), Share::from_percent(15));
        assert_eq!(Share::ZERO.minus(Share::WHOLE), Share::ZERO);
    }
}
