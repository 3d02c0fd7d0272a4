//! Points in time and spans between them, in nanoseconds.

use std::fmt;
use std::ops::{Add, AddAssign, Div, Sub};
use std::str::FromStr;

use crate::operators::operators;
use crate::parse::{ParseQuantityError, parse_scaled, write_scaled};

/// `value * numerator / denominator` rounded down; `None` on overflow or division by zero.
pub(crate) fn mul_div(value: u64, numerator: u64, denominator: u64) -> Option<u64> {
    let product = u128::from(value) * u128::from(numerator);
    u64::try_from(product.checked_div(u128::from(denominator))?).ok()
}

/// A point in time: nanoseconds since the epoch of a run.
///
/// The owner of the clock chooses the epoch. The simulator starts at zero. The lab and the agent
/// count from the epoch of the machine's monotonic clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

impl Instant {
    /// The epoch itself.
    pub const ZERO: Self = Self(0);
    /// The latest instant: about 584 years after the epoch.
    pub const MAX: Self = Self(u64::MAX);

    /// The instant `nanos` nanoseconds after the epoch.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the epoch.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Seconds since the epoch, for figures and logs only.
    pub fn as_secs_f64(self) -> f64 {
        Duration(self.0).as_secs_f64()
    }

    /// The instant `span` later, or `None` past [`Instant::MAX`].
    pub fn checked_add(self, span: Duration) -> Option<Self> {
        self.0.checked_add(span.0).map(Self)
    }

    /// The time since `earlier`, or `None` where `earlier` is later.
    pub fn checked_since(self, earlier: Self) -> Option<Duration> {
        self.0.checked_sub(earlier.0).map(Duration)
    }

    /// The time since `earlier`; zero where `earlier` is later.
    pub fn saturating_since(self, earlier: Self) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;
    fn add(self, span: Duration) -> Self {
        self.checked_add(span).expect("an instant past the end of time")
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, span: Duration) {
        *self = *self + span;
    }
}

impl Sub<Duration> for Instant {
    type Output = Self;
    fn sub(self, span: Duration) -> Self {
        Self(self.0.checked_sub(span.0).expect("an instant before the epoch"))
    }
}

impl Sub for Instant {
    type Output = Duration;
    fn sub(self, earlier: Self) -> Duration {
        self.checked_since(earlier).expect("the span to an earlier instant is negative")
    }
}

/// A span of time in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(u64);

const UNITS: &[(&str, u64)] = &[
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

impl Duration {
    /// An empty span.
    pub const ZERO: Self = Self(0);
    /// The longest span: about 584 years.
    pub const MAX: Self = Self(u64::MAX);

    /// A span of `nanos` nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// A span of `micros` microseconds. Panics past [`Duration::MAX`].
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros.checked_mul(1_000).expect("a span past 584 years"))
    }

    /// A span of `millis` milliseconds. Panics past [`Duration::MAX`].
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.checked_mul(1_000_000).expect("a span past 584 years"))
    }

    /// A span of `secs` seconds. Panics past [`Duration::MAX`].
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.checked_mul(1_000_000_000).expect("a span past 584 years"))
    }

    /// Nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Whole microseconds, rounded down.
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }

    /// Whole milliseconds, rounded down.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }

    /// Seconds, for figures and logs only.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Milliseconds, for figures and logs only.
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// Whether the span is empty.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// The product, at most [`Duration::MAX`].
    pub fn saturating_mul(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }

    /// `self * numerator / denominator`, rounded down, without overflow in between.
    ///
    /// `None` where the result does not fit or `denominator` is zero.
    pub fn mul_div(self, numerator: u64, denominator: u64) -> Option<Self> {
        mul_div(self.0, numerator, denominator).map(Self)
    }
}

operators!(Duration, u64, "a span past 584 years", "a negative span");

impl Div<u64> for Duration {
    type Output = Self;
    /// Rounds down. Panics where `divisor` is zero.
    fn div(self, divisor: u64) -> Self {
        Self(self.0 / divisor)
    }
}

impl std::iter::Sum for Duration {
    fn sum<I: Iterator<Item = Self>>(spans: I) -> Self {
        spans.fold(Self::ZERO, Add::add)
    }
}

impl From<Duration> for std::time::Duration {
    fn from(span: Duration) -> Self {
        Self::from_nanos(span.0)
    }
}

impl FromStr for Duration {
    type Err = ParseQuantityError;
    /// Reads `512ms`, `0.5s`, `9us`: a decimal number and one of ns, us, ms, s, min, h.
    fn from_str(text: &str) -> Result<Self, ParseQuantityError> {
        parse_scaled(text, UNITS, "a duration such as \"512ms\", \"60s\" or \"9us\"").map(Self)
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_zero() {
            return f.write_str("0s");
        }
        write_scaled(
            f,
            self.0,
            &[("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)],
        )
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Duration(self.0).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_what_they_write() {
        for text in ["0s", "512ms", "1.5s", "9us", "1ns", "100s"] {
            assert_eq!(text.parse::<Duration>().unwrap().to_string(), text);
        }
        assert_eq!("2min".parse::<Duration>().unwrap(), Duration::from_secs(120));
    }

    #[test]
    fn a_span_back_in_time_is_refused_or_zero_never_wrapped() {
        let (early, late) = (Instant::from_nanos(1), Instant::from_nanos(5));
        assert_eq!(late - early, Duration::from_nanos(4));
        assert_eq!(early.checked_since(late), None);
        assert_eq!(early.saturating_since(late), Duration::ZERO);
    }

    #[test]
    #[should_panic(expected = "negative span")]
    fn subtraction_panics_rather_than_wraps() {
        let _ = Duration::from_nanos(1) - Duration::from_nanos(2);
    }
}
