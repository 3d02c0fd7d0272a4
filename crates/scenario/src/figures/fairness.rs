//! How evenly, and how well, the air was shared.

use wakeai_units::Rate;

/// Jain's index over `values`, (Σx)² / (n·Σx²): from 1/n (one has all) to 1 (all have the same).
/// `None` where there are no values or all are zero. Values must be finite and not negative.
///
/// Jain, Chiu and Hawe, DEC-TR-301.
pub fn jain(values: &[f64]) -> Option<f64> {
    // Scaled by the largest: a square cannot overflow or vanish.
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

/// Jain's index over r = x / Max (Matsuno et al., §7.1, "improved"), with the square that the paper's printed
/// denominator lacks: as printed it equals [`mean_utilisation`]. `None` where a maximum is not
/// above zero, the lists differ in length, or all of `goodputs` are zero.
pub fn capacity_normalised(goodputs: &[f64], maxima: &[f64]) -> Option<f64> {
    jain(&ratios(goodputs, maxima)?)
}

/// The mean of x / Max. `None` where a maximum is not above zero, the lists differ in length, or
/// they are empty.
pub fn mean_utilisation(goodputs: &[f64], maxima: &[f64]) -> Option<f64> {
    mean(&ratios(goodputs, maxima)?)
}

fn ratios(goodputs: &[f64], maxima: &[f64]) -> Option<Vec<f64>> {
    if goodputs.len() != maxima.len() {
        return None;
    }
    let pairs = goodputs.iter().zip(maxima);
    pairs.map(|(goodput, max)| (*max > 0.0).then(|| goodput / max)).collect()
}

/// The arithmetic mean; `None` of nothing.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// NRT, the normalised required throughput (TCP-AV paper, §4.1): the target rate over the effective bandwidth,
/// which is the goodput of one flow alone.
/// `None` where the latter is zero.
pub fn normalised_required_throughput(target: Rate, effective_bandwidth: Rate) -> Option<f64> {
    let bandwidth = effective_bandwidth.bits_per_second();
    (bandwidth > 0).then(|| target.bits_per_second() as f64 / bandwidth as f64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The formula as it is printed.
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
        fn shares_in_proportion_to_what_each_reaches_alone_are_perfectly_fair(
            max in goodputs(), share in 0.01_f64..1.0,
        ) {
            let x: Vec<f64> = max.iter().map(|max| max * share).collect();
            prop_assert!((capacity_normalised(&x, &max).unwrap() - 1.0).abs() < 1e-9);
            prop_assert!((mean_utilisation(&x, &max).unwrap() - share).abs() < 1e-9);
        }

        #[test]
        fn the_denominator_as_the_paper_prints_it_gives_the_mean_utilisation(
            pairs in prop::collection::vec((0.001_f64..1e4, 0.001_f64..1e4), 1..50),
        ) {
            let (x, max): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
            let sum: f64 = x.iter().zip(&max).map(|(x, max)| x / max).sum();
            let printed = sum * sum / (x.len() as f64 * sum); // Matsuno et al., §7.1
            let mean = mean_utilisation(&x, &max).unwrap();
            prop_assert!((printed - mean).abs() <= 1e-9 * mean);
        }
    }

    #[test]
    fn figures_of_nothing_are_none() {
        assert_eq!(jain(&[]), None);
        assert_eq!(jain(&[0.0, 0.0]), None);
        assert_eq!(capacity_normalised(&[1.0], &[0.0]), None);
        assert_eq!(capacity_normalised(&[1.0, 2.0], &[1.0]), None);
        assert_eq!(mean_utilisation(&[], &[]), None);
        assert_eq!(normalised_required_throughput(Rate::from_mbps(1), Rate::ZERO), None);
    }

    #[test]
    fn the_required_throughput_is_relative_to_the_bandwidth() {
        let target = Rate::from_mbps(5);
        let nrt = normalised_required_throughput(target, Rate::from_mbps(20));
        assert_eq!(nrt, Some(0.25));
    }
}
