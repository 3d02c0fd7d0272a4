//! Measures the buffer of an access point (the study of TCP-AV over a wireless LAN, section 2.3).
//!
//! A sender on the wired side sends numbered datagrams through the access point to a station, in
//! bursts that are faster than the air. From the numbers and times of the datagrams that arrive
//! follows how many packets the access point keeps.

mod burst;
mod plan;
mod reading;
mod report;
mod schedule;

pub use burst::{Burst, PRELUDE};
pub use plan::{Plan, PlanOptions, Stage, Unmeasured};
pub use reading::{BurstReading, FirstLoss, read};
pub use report::{BufferReport, Drops, FirstDrop, Isolation, LimitUnit, Sizes, Spread};
pub use schedule::{Beside, Due, Schedule, Shot};

/// The value below which the given share of `values` lies; `None` without values.
pub(crate) fn quantile(values: &[f64], share: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = (sorted.len().checked_sub(1)? as f64 * share).round() as usize;
    sorted.get(at).copied()
}

/// The median of what `of` tells of each; `None` if there are none.
pub(crate) fn median<T>(all: &[T], of: impl Fn(&T) -> f64) -> Option<f64> {
    quantile(&all.iter().map(of).collect::<Vec<_>>(), 0.5)
}
