//! Means and their confidence intervals.

use serde::{Deserialize, Serialize};

use super::mean;

/// 97.5 % quantiles of Student's t for 1 to 30 degrees of freedom.
const T_QUANTILES: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];
/// The 97.5 % quantile of the normal distribution.
const NORMAL_QUANTILE: f64 = 1.959_964;

/// A mean and half the width of its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The mean.
    pub mean: f64,
    /// Half the width of the interval around `mean`; `None` for a single value.
    pub half: Option<f64>,
}

impl Interval {
    /// The confidence interval of the mean of independent values; `None` without values.
    pub fn of(values: &[f64]) -> Option<Self> {
        let mean = mean(values)?;
        let half = variance(values).map(|variance| {
            let count = values.len() as f64;
            t_quantile(count - 1.0) * (variance / count).sqrt()
        });
        Some(Self { mean, half })
    }

    /// The confidence interval of the difference of two means, `b` less `a`, of independent values whose variances may
    /// differ (Welch, Biometrika 34, 1947). `None` where either has no values.
    pub fn of_difference(a: &[f64], b: &[f64]) -> Option<Self> {
        let difference = mean(b)? - mean(a)?;
        let half = variance(a).zip(variance(b)).map(|(of_a, of_b)| {
            let (count_a, count_b) = (a.len() as f64, b.len() as f64);
            let (error_a, error_b) = (of_a / count_a, of_b / count_b);
            let error = error_a + error_b;
            if error == 0.0 {
                return 0.0;
            }
            let freedom = error * error
                / (error_a * error_a / (count_a - 1.0) + error_b * error_b / (count_b - 1.0));
            t_quantile(freedom) * error.sqrt()
        });
        Some(Self { mean: difference, half })
    }

    /// Whether `value` lies in the interval; always true for a single value.
    pub fn contains(&self, value: f64) -> bool {
        self.half.is_none_or(|half| (value - self.mean).abs() <= half)
    }
}

/// The estimate of the variance from the sample `values` (with the divisor n - 1); `None` for fewer
/// than two values.
pub fn variance(values: &[f64]) -> Option<f64> {
    let mean = mean(values).filter(|_| values.len() > 1)?;
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    Some(squares / (values.len() - 1) as f64)
}

/// The 97.5 % quantile of Student's t with `freedom` degrees of freedom, which is at least 1. It is exact to 0.002 for
/// whole numbers, and larger than the exact one by at most 0.2 between 1 and 2.
fn t_quantile(freedom: f64) -> f64 {
    let below = freedom.floor().max(1.0);
    let whole = |freedom: f64| {
        let of_table = T_QUANTILES.get(freedom as usize - 1).copied();
        of_table.unwrap_or_else(|| for_many(freedom))
    };
    if below >= 30.0 {
        return if below > 30.0 { for_many(freedom) } else { whole(30.0) };
    }
    // The quantile is nearly linear in the reciprocal of the degrees of freedom.
    let (low, high) = (whole(below), whole(below + 1.0));
    let part = (1.0 / below - 1.0 / freedom.max(1.0)) / (1.0 / below - 1.0 / (below + 1.0));
    low + (high - low) * part
}

/// The expansion for many degrees of freedom (Abramowitz and Stegun, 26.7.5).
fn for_many(freedom: f64) -> f64 {
    let z = NORMAL_QUANTILE;
    let first = (z.powi(3) + z) / 4.0;
    let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
    z + first / freedom + second / (freedom * freedom)
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
        let difference = Interval::of_difference(&[1.0], &[3.0, 4.0]).unwrap();
        assert_eq!(difference, Interval { mean: 2.5, half: None });
    }

    #[test]
    fn quantiles_are_those_of_the_tables() {
        // Printed tables have these for 40, 60, 120 and 1000 degrees of freedom.
        for (freedom, exact) in [
            (1.0, 12.706),
            (9.0, 2.262),
            (40.0, 2.021),
            (60.0, 2.000),
            (120.0, 1.980),
            (1000.0, 1.962),
        ] {
            assert!(
                (t_quantile(freedom) - exact).abs() < 0.001,
                "{freedom}: {}",
                t_quantile(freedom)
            );
        }
        // t(4.5) is 2.6585.
        assert!((t_quantile(4.5) - 2.6585).abs() < 0.01);
        let mut last = f64::INFINITY;
        for tenth in 10..500 {
            let now = t_quantile(f64::from(tenth) / 10.0);
            assert!(now <= last, "{tenth}");
            last = now;
        }
    }

    #[test]
    fn a_difference_is_welchs() {
        // Variances 2.5 and 10: error 0.5 + 2 = 2.5, freedom 6.25 / (0.0625 + 1) = 5.88, t = 2.459.
        let a = [1.0, 2.0, 3.0, 4.0, 5.0];
        let b = [2.0, 4.0, 6.0, 8.0, 10.0];
        let found = Interval::of_difference(&a, &b).unwrap();
        assert!((found.mean - 3.0).abs() < 1e-12);
        assert!((found.half.unwrap() - 2.459 * 2.5_f64.sqrt()).abs() < 0.02, "{found:?}");
        assert_eq!(Interval::of_difference(&[2.0; 3], &[3.0; 4]).unwrap().half, Some(0.0));
    }
}
