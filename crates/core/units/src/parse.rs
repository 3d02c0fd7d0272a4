//! Parses and formats numbers with a unit, without rounding.

use std::fmt;

/// The error for a text that is not a quantity of the expected kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("found {found:?}, expected {expected}")]
pub struct ParseQuantityError {
    found: String,
    expected: &'static str,
}

/// Reads `<decimal><unit>` as a whole number of the smallest unit. Refuses a sign, an exponent, an
/// unknown unit, a value that does not fit in 64 bits, and a value that is no whole number of the
/// smallest unit.
pub(crate) fn parse_scaled(
    text: &str,
    units: &[(&str, u64)],
    expected: &'static str,
) -> Result<u64, ParseQuantityError> {
    exact(text.trim(), units).ok_or_else(|| ParseQuantityError { found: text.to_owned(), expected })
}

fn exact(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(unit_at);
    let &(_, scale) = units.iter().find(|(name, _)| *name == unit.trim_start())?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    if whole.is_empty() || fraction.is_empty() {
        return None;
    }
    let whole = whole.parse::<u64>().ok()?.checked_mul(scale)?;
    let digits = u32::try_from(fraction.len()).ok()?;
    let fraction = u128::from(fraction.parse::<u64>().ok()?) * u128::from(scale);
    let denominator = 10_u128.checked_pow(digits)?;
    if fraction % denominator != 0 {
        return None;
    }
    whole.checked_add(u64::try_from(fraction / denominator).ok()?)
}

/// Formats `value` exactly, in the largest unit that does not exceed it. `units` are in ascending
/// order. Zero is written in the first unit.
pub(crate) fn write_scaled(
    f: &mut fmt::Formatter<'_>,
    value: u64,
    units: &[(&str, u64)],
) -> fmt::Result {
    let smallest = units.first().expect("a quantity has at least one unit");
    let &(unit, scale) = units.iter().rfind(|(_, scale)| value >= *scale).unwrap_or(smallest);
    let (whole, rest) = (value / scale, value % scale);
    if rest == 0 {
        return write!(f, "{whole}{unit}");
    }
    let digits = scale.ilog10() as usize;
    let decimals = format!("{rest:0digits$}");
    write!(f, "{whole}.{}{unit}", decimals.trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use crate::{Bytes, Duration, Rate};

    #[test]
    fn nonsense_is_refused_with_what_was_found_and_what_is_allowed() {
        for text in ["", "5", "-1s", "1e3ms", "1.s", ".5s", "1.0000000001s", "9 parsecs", "∞s"] {
            let error = text.parse::<Duration>().unwrap_err().to_string();
            assert!(error.contains(&format!("{text:?}")) && error.contains("512ms"), "{error}");
        }
        assert!("99999999999999999999Mbit/s".parse::<Rate>().is_err());
        assert!("18446744073709551615GB".parse::<Bytes>().is_err());
    }
}
