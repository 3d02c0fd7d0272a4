//! Data rates, and the exact times at which a link has sent its packets.

use std::fmt;
use std::iter::Sum;
use std::ops::Div;
use std::str::FromStr;

use crate::operators::operators;
use crate::parse::{ParseQuantityError, parse_scaled, write_scaled};
use crate::time::mul_div;
use crate::{Bytes, Duration, Instant};

/// A data rate in bits per second. Its prefixes are decimal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

const UNITS: &[(&str, u64)] =
    &[("bit/s", 1), ("kbit/s", 1_000), ("Mbit/s", 1_000_000), ("Gbit/s", 1_000_000_000)];

const NANOS_PER_SECOND: u64 = 1_000_000_000;

impl Rate {
    /// 0 bit/s.
    pub const ZERO: Self = Self(0);

    /// Reads a rate that is not zero.
    ///
    /// # Errors
    ///
    /// What was found and what was expected.
    pub fn above_zero(text: &str) -> Result<Self, String> {
        match text.parse::<Self>() {
            Ok(rate) if rate.bytes_per_second() > 0 => Ok(rate),
            Ok(rate) => {
                Err(format!("found {rate}, expected a rate above zero, a byte per second or more"))
            }
            Err(error) => Err(error.to_string()),
        }
    }

    /// `bits` per second.
    pub const fn from_bps(bits: u64) -> Self {
        Self(bits)
    }

    /// `megabits` (10^6 bits) per second. Panics past 2^64 bits per second.
    pub const fn from_mbps(megabits: u64) -> Self {
        Self(megabits.checked_mul(1_000_000).expect("more than 2^64 bit/s"))
    }

    /// Bits per second.
    pub const fn bits_per_second(self) -> u64 {
        self.0
    }

    /// Whole bytes per second, rounded down. The kernel's pacing rate has this unit.
    pub const fn bytes_per_second(self) -> u64 {
        self.0 / 8
    }

    /// Megabits per second, for figures and logs only.
    pub fn as_mbps_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// `megabits` (10^6 bits) per second, to the nearest bit per second. A negative number gives
    /// zero.
    pub fn from_mbps_f64(megabits: f64) -> Self {
        Self((megabits * 1e6).round() as u64)
    }

    /// The rate that carries `amount` in `span`, rounded down, at most 2^64 - 1 bit/s. An empty
    /// span gives zero.
    pub fn of(amount: Bytes, span: Duration) -> Self {
        if span.is_zero() {
            return Self::ZERO;
        }
        let bits = u128::from(amount.get()) * 8 * u128::from(NANOS_PER_SECOND);
        Self(u64::try_from(bits / u128::from(span.as_nanos())).unwrap_or(u64::MAX))
    }

    /// Whole bytes carried in `span`, rounded down, at most 2^64 - 1.
    pub fn bytes_in(self, span: Duration) -> Bytes {
        let bits_nanos = u128::from(self.0) * u128::from(span.as_nanos());
        let bytes = bits_nanos / (8 * u128::from(NANOS_PER_SECOND));
        Bytes::new(u64::try_from(bytes).unwrap_or(u64::MAX))
    }

    /// The time that `amount` takes, rounded up; `None` at rate zero or past [`Duration::MAX`]. For
    /// consecutive packets use [`Serializer`], which keeps the fraction.
    pub fn time_for(self, amount: Bytes) -> Option<Duration> {
        if self.0 == 0 {
            return None;
        }
        let bits_nanos = u128::from(amount.get()) * 8 * u128::from(NANOS_PER_SECOND);
        u64::try_from(bits_nanos.div_ceil(u128::from(self.0))).ok().map(Duration::from_nanos)
    }

    /// `self * numerator / denominator`, rounded down; `None` on overflow or division by zero.
    pub fn mul_div(self, numerator: u64, denominator: u64) -> Option<Self> {
        mul_div(self.0, numerator, denominator).map(Self)
    }

    /// This rate multiplied by `numerator`/`denominator`, and this rate itself where
    /// [`Self::mul_div`] has none.
    pub fn times(self, numerator: u64, denominator: u64) -> Self {
        self.mul_div(numerator, denominator).unwrap_or(self)
    }
}

operators!(Rate, u64, "more than 2^64 bit/s", "a negative rate");

impl Div<u64> for Rate {
    type Output = Self;
    /// Rounds down. Panics where `divisor` is zero.
    fn div(self, divisor: u64) -> Self {
        Self(self.0 / divisor)
    }
}

impl Sum for Rate {
    fn sum<I: Iterator<Item = Self>>(rates: I) -> Self {
        rates.fold(Self::ZERO, Self::saturating_add)
    }
}

impl FromStr for Rate {
    type Err = ParseQuantityError;
    /// Reads `54Mbit/s`, `600.5Mbit/s`, `1Gbit/s`.
    fn from_str(text: &str) -> Result<Self, ParseQuantityError> {
        parse_scaled(text, UNITS, "a rate such as \"54Mbit/s\" or \"1Gbit/s\"").map(Self)
    }
}

impl fmt::Display for Rate {
    /// Formats the exact value, as [`Rate::from_str`] reads it: `1.234567Mbit/s`. The alternate
    /// form `{:#}` is for people. It has a space and at most two decimals: `1.23 Mbit/s`, `288
    /// Gbit/s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !f.alternate() {
            return write_scaled(f, self.0, UNITS);
        }
        let unit = UNITS.iter().rfind(|(_, scale)| self.0 >= *scale);
        let (name, scale) = unit.unwrap_or(&("Mbit/s", 1_000_000));
        let hundredths = (u128::from(self.0) * 100 + u128::from(*scale) / 2) / u128::from(*scale);
        write!(f, "{}", hundredths / 100)?;
        match hundredths % 100 {
            0 => {}
            rest if rest % 10 == 0 => write!(f, ".{}", rest / 10)?,
            rest => write!(f, ".{rest:02}")?,
        }
        write!(f, " {name}")
    }
}

/// Computes when a link has sent each packet, without accumulating rounding errors.
///
/// Each packet starts at the later of two times: `now`, and the end of the packet before. While the
/// link stays busy, a fraction of a nanosecond that is left of a packet's time is carried to the
/// next packet. So the long-term rate is exact. An idle link drops the fraction.
///
/// Order of calls: [`Serializer::send`] once per packet, with `now` never going back.
#[derive(Clone, Copy, Debug)]
pub struct Serializer {
    rate: Rate,
    free_at: Instant,
    /// The part of the last packet's time after `free_at`, in units of 1 / `rate` nanoseconds. It
    /// is below `rate`.
    remainder: u64,
}

impl Serializer {
    /// A link that is free from the start. Panics where `rate` is zero.
    pub fn new(rate: Rate) -> Self {
        assert!(rate > Rate::ZERO, "a link with rate zero never sends");
        Self { rate, free_at: Instant::ZERO, remainder: 0 }
    }

    /// Sends `amount`. Returns the time at which its last bit has left, rounded down to a
    /// nanosecond.
    pub fn send(&mut self, now: Instant, amount: Bytes) -> Instant {
        if now > self.free_at {
            self.free_at = now;
            self.remainder = 0;
        }
        let rate = u128::from(self.rate.bits_per_second());
        let owed = u128::from(amount.get()) * 8 * u128::from(NANOS_PER_SECOND)
            + u128::from(self.remainder);
        let nanos = u64::try_from(owed / rate).expect("a packet that takes 584 years");
        self.remainder = (owed % rate) as u64; // below `rate`, which is a u64
        self.free_at += Duration::from_nanos(nanos);
        self.free_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rates_read_what_they_write() {
        for text in ["54Mbit/s", "600.5Mbit/s", "1Gbit/s", "512kbit/s", "7bit/s", "0bit/s"] {
            assert_eq!(text.parse::<Rate>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn rates_for_people_have_two_decimals_and_a_space() {
        let cases = [
            (288_000_000_000, "288 Gbit/s"),
            (9_660_000, "9.66 Mbit/s"),
            (1_234_567, "1.23 Mbit/s"),
            (54_100_000, "54.1 Mbit/s"),
            (1_005_000_000, "1.01 Gbit/s"),
            (7, "7 bit/s"),
            (0, "0 Mbit/s"),
        ];
        for (bps, text) in cases {
            assert_eq!(format!("{:#}", Rate::from_bps(bps)), text);
            let mbps = Rate::from_bps(bps).as_mbps_f64();
            assert_eq!(Rate::from_mbps_f64(mbps), Rate::from_bps(bps));
        }
    }

    #[test]
    fn a_busy_link_is_exact_over_a_million_packets() {
        // 1500 bytes at 7 Mbit/s take 1714285.71 ns. Without the remainder a million of them would
        // end 0.7 ms early.
        let mut link = Serializer::new(Rate::from_mbps(7));
        for _ in 0..1_000_000 {
            link.send(Instant::ZERO, Bytes::new(1500));
        }
        assert_eq!(link.free_at.as_nanos(), 12_000_000_000_u64 * 1_000_000 / 7_000);
    }

    proptest! {
        #[test]
        fn rate_and_time_are_inverse_within_one_byte(
            bps in 1_000_u64..10_000_000_000, amount in 1_u64..1_000_000_000,
        ) {
            let (rate, amount) = (Rate::from_bps(bps), Bytes::new(amount));
            let span = rate.time_for(amount).unwrap();
            // The time was rounded up by less than a nanosecond, which carries at most bps/8e9 bytes.
            let carried = rate.bytes_in(span).get();
            prop_assert!(carried >= amount.get() && carried <= amount.get() + bps / 8_000_000_000 + 1);
        }
    }
}
