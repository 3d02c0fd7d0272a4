//! Measures of how evenly the air was shared.

/// Jain's index over the `n` values `x`: (Σx)² / (n·Σx²). It is 1/n if one station has everything,
/// and 1 if all have the same. `None` if there are no values or all are zero. Values must be finite
/// and not negative.
///
/// Where the values are the ratios of each station's goodput to the goodput that it reaches alone,
/// this is the capacity-normalised index of Matsuno et al., §7.1. The paper prints the denominator
/// without the square. That formula would be the mean of the ratios.
///
/// Jain, Chiu and Hawe, DEC-TR-301.
pub fn jain(values: &[f64]) -> Option<f64> {
    // The values are divided by the largest, so that no square overflows or vanishes.
    let largest = values.iter().copied().fold(0.0, f64::max);
    if largest <= 0.0 {
        return None;
    }
    let (sum, squares) = values.iter().fold((0.0, 0.0), |(sum, squares), value| {
        let scaled = value / largest;
        (sum + scaled, squares + scaled * scaled)
    });
    Some(sum * sum / (values.len() as f64 * squares))
}

/// The arithmetic mean; `None` without values.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The formula as Jain, Chiu and Hawe print it.
    fn jain_as_printed(x: &[f64]) -> f64 {
        let sum: f64 = x.iter().sum();
        sum * sum / (x.len() as f64 * x.iter().map(|x| x * x).sum::<f64>())
    }

    fn goodputs() -> impl Strategy<Value = Vec<f64>> {
        prop::collection::vec(0.001_f64..1e4, 1..50)
    }

    proptest! {
        #[test]
        fn jain_is_the_formula_and_between_one_nth_and_one(x in goodputs()) {
            let index = jain(&x).unwrap();
            prop_assert!((index - jain_as_printed(&x)).abs() < 1e-9);
            prop_assert!(index <= 1.0 + 1e-9 && index >= 1.0 / x.len() as f64 - 1e-9);
        }

        #[test]
        fn jain_knows_no_unit_and_no_order(x in goodputs(), scale in 1e-200_f64..1e200) {
            let mut other: Vec<f64> = x.iter().map(|x| x * scale).collect();
            other.reverse();
            prop_assert!((jain(&x).unwrap() - jain(&other).unwrap()).abs() < 1e-9);
        }

        #[test]
        fn k_of_n_that_share_evenly_have_an_index_of_k_over_n(k in 1_usize..40, n in 0_usize..40) {
            let mut x = vec![3.5; k];
            x.resize(k + n, 0.0);
            prop_assert!((jain(&x).unwrap() - k as f64 / (k + n) as f64).abs() < 1e-9);
        }

        #[test]
        fn the_denominator_as_the_paper_prints_it_gives_the_mean_utilisation(
            ratios in goodputs(),
        ) {
            let sum: f64 = ratios.iter().sum();
            let printed = sum * sum / (ratios.len() as f64 * sum);
            let mean = mean(&ratios).unwrap();
            prop_assert!((printed - mean).abs() <= 1e-9 * mean);
        }
    }

    #[test]
    fn figures_of_nothing_are_none() {
        assert_eq!(jain(&[]), None);
        assert_eq!(jain(&[0.0, 0.0]), None);
        assert_eq!(mean(&[]), None);
    }
}
