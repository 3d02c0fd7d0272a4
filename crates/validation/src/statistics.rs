//! Means, their 95 % intervals, and deviations.

use serde::{Deserialize, Serialize};
pub use wakeai_scenario::figures::mean;

/// 97.5 % quantiles of Student's t for 1 to 30 degrees of freedom.
const T_QUANTILES: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];

/// The mean of some runs and half the width of its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The mean.
    pub mean: f64,
    /// Half the width of the interval around `mean`; `None` for a single run.
    pub half: Option<f64>,
}

impl Interval {
    /// The confidence interval of the mean of independent runs; `None` without runs.
    pub fn of(values: &[f64]) -> Option<Self> {
        let mean = mean(values)?;
        let freedom = values.len() - 1;
        if freedom == 0 {
            return Some(Self { mean, half: None });
        }
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let error = (squares / freedom as f64 / values.len() as f64).sqrt();
        let quantile = T_QUANTILES.get(freedom - 1).copied().unwrap_or(1.96);
        Some(Self { mean, half: Some(quantile * error) })
    }

    /// Whether `value` lies in the interval; always true for a single run.
    pub fn contains(&self, value: f64) -> bool {
        self.half.is_none_or(|half| (value - self.mean).abs() <= half)
    }
}

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
    fn the_interval_of_five_runs_is_the_textbooks() {
        let interval = Interval::of(&[28.0, 29.0, 30.0, 31.0, 32.0]).unwrap();
        assert!((interval.mean - 30.0).abs() < 1e-12);
        // s = 1.581, s / sqrt 5 = 0.707, t(4) = 2.776.
        assert!((interval.half.unwrap() - 1.963).abs() < 0.001);
        assert!(interval.contains(31.9) && !interval.contains(32.0));
    }

    #[test]
    fn one_run_says_nothing_about_its_spread() {
        assert_eq!(Interval::of(&[1.0]), Some(Interval { mean: 1.0, half: None }));
        assert_eq!(Interval::of(&[]), None);
    }

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
