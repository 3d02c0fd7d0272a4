//! How evenly, and how well, the air was shared.

use wakeai_units::{Bytes, Duration, Rate};

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

/// Jain's index over r = x / Max (000 §7.1, "improved"), with the square that the paper's printed
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

/// NRT (004 §4.1): the target over the effective bandwidth, which is what one flow reaches alone.
/// `None` where the latter is zero.
pub fn normalised_required_throughput(target: Rate, effective_bandwidth: Rate) -> Option<f64> {
    let bandwidth = effective_bandwidth.bits_per_second();
    (bandwidth > 0).then(|| target.bits_per_second() as f64 / bandwidth as f64)
}

/// The time that `stations` transfers of `size` each take where nothing is lost to contention
/// (003 §3.2): n · size / effective bandwidth, rounded up. `None` where that is zero or the
/// product does not fit.
pub fn ideal_transfer_time(
    stations: u32,
    size: Bytes,
    effective_bandwidth: Rate,
) -> Option<Duration> {
    let total = size.get().checked_mul(u64::from(stations))?;
    effective_bandwidth.time_for(Bytes::new(total))
}
