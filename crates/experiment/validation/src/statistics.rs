//! Means, deviations and factors.

pub use wakeai_results::figures::{Interval, mean};

/// The mean of a figure over those of `all` that have it; `None` if none has it.
pub fn mean_of<T>(all: &[T], figure: impl Fn(&T) -> Option<f64>) -> Option<f64> {
    mean(&all.iter().filter_map(figure).collect::<Vec<_>>())
}

/// The relative deviation of `found` from `reference`.
pub fn deviation(found: f64, reference: f64) -> f64 {
    found / reference - 1.0
}

/// Formats a share, such as a deviation, as signed percent.
pub fn percent(share: f64) -> String {
    format!("{:+.1} %", share * 100.0)
}

/// The larger number divided by the smaller one; 1 if both are zero, infinite if only one is.
pub fn factor(a: f64, b: f64) -> f64 {
    let (small, large) = if a < b { (a, b) } else { (b, a) };
    if large == 0.0 { 1.0 } else { large / small }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percents_are_signed() {
        assert_eq!((percent(0.0312), percent(-0.2)), ("+3.1 %".to_owned(), "-20.0 %".to_owned()));
    }

    #[test]
    fn factors_are_alike_both_ways() {
        assert_eq!(factor(10.0, 20.0).to_bits(), factor(20.0, 10.0).to_bits());
        assert!((factor(0.0, 0.0) - 1.0).abs() < f64::EPSILON);
        assert!(factor(0.0, 3.0).is_infinite());
    }
}
