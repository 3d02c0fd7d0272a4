//! A histogram of durations (round-trip times, or the lab's lateness) in constant memory.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use wakeai_units::Duration;

/// The rank, from 1, of a percentile among `count` values.
fn rank(count: u64, percent: f64) -> Option<u64> {
    let rank = (count as f64 * percent / 100.0).ceil() as u64;
    (count > 0).then(|| rank.clamp(1, count))
}

/// Values below this number of microseconds are counted exactly.
const EXACT: u64 = 2_048;
/// The number of buckets for each doubling of the value above [`EXACT`].
const PER_DOUBLING: u64 = 1_024;
/// The number of doublings above [`EXACT`]. They reach 2^32 us, which is more than an hour.
const DOUBLINGS: u64 = 21;

/// Counts durations. Its resolution is a microsecond below 2.048 ms, and better than 0.1 % above.
/// It takes 188 kB.
#[derive(Clone)]
pub struct DurationHistogram {
    counts: Vec<u64>,
    total: u64,
}

impl std::fmt::Debug for DurationHistogram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DurationHistogram").field("total", &self.total).finish_non_exhaustive()
    }
}

impl Default for DurationHistogram {
    fn default() -> Self {
        Self { counts: vec![0; (EXACT + PER_DOUBLING * DOUBLINGS) as usize], total: 0 }
    }
}

impl Serialize for DurationHistogram {
    /// Pairs of a bucket and its count, for the buckets that have one.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let counts = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        serializer.collect_seq(counts)
    }
}

impl<'de> Deserialize<'de> for DurationHistogram {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut read = Self::default();
        for (bucket, count) in Vec::<(usize, u64)>::deserialize(deserializer)? {
            let unknown = || de::Error::custom(format!("the histogram has no bucket {bucket}"));
            *read.counts.get_mut(bucket).ok_or_else(unknown)? = count;
            read.total = read.total.saturating_add(count);
        }
        Ok(read)
    }
}

impl DurationHistogram {
    /// Counts one sample. A sample above 2^32 - 1 us counts as 2^32 - 1 us.
    pub fn record(&mut self, duration: Duration) {
        self.counts[bucket(duration.as_micros())] += 1;
        self.total += 1;
    }

    /// Adds the samples of `other`.
    pub fn merge(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.total += other.total;
    }

    /// Adds the samples of `other`, each reduced by `base`. A sample below `base` counts as zero.
    /// The error of a reduced sample is that of the sample (0.1 % of it).
    pub fn merge_above(&mut self, other: &Self, base: Duration) {
        for (index, count) in other.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let above = largest_in(index as u64).saturating_sub(base.as_micros());
            self.counts[bucket(above)] += count;
        }
        self.total += other.total;
    }

    /// The number of samples.
    pub fn count(&self) -> u64 {
        self.total
    }

    /// The nearest-rank percentile, in whole microseconds: the smallest value such that at least
    /// `percent` % of the samples are not larger. It is exact below 2.048 ms, and at most 0.1 % too
    /// large above. `None` without samples.
    pub fn percentile(&self, percent: f64) -> Option<Duration> {
        let rank = rank(self.total, percent)?;
        let mut seen = 0;
        let bucket = self.counts.iter().position(|count| {
            seen += count;
            seen >= rank
        })?;
        Some(Duration::from_micros(largest_in(bucket as u64)))
    }
}

fn bucket(micros: u64) -> usize {
    let micros = micros.min(u64::from(u32::MAX));
    if micros < EXACT {
        return micros as usize;
    }
    let doubling = u64::from(micros.ilog2() - EXACT.ilog2());
    let within = (micros >> (doubling + 1)) - PER_DOUBLING;
    (EXACT + doubling * PER_DOUBLING + within) as usize
}

/// The largest value that falls into `bucket`.
fn largest_in(bucket: u64) -> u64 {
    let Some(above) = bucket.checked_sub(EXACT) else { return bucket };
    let (doubling, within) = (above / PER_DOUBLING, above % PER_DOUBLING);
    ((PER_DOUBLING + within + 1) << (doubling + 1)) - 1
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The exact nearest-rank percentile of `sorted`, whose values ascend; `None` without values.
    /// `percent` is between 0 and 100; 0 gives the smallest value.
    fn percentile<T: Copy>(sorted: &[T], percent: f64) -> Option<T> {
        sorted.get(rank(sorted.len() as u64, percent)? as usize - 1).copied()
    }

    #[test]
    fn nearest_rank_is_a_value_that_was_there() {
        let five = [15, 20, 35, 40, 50];
        let percents = [0.0, 5.0, 20.0, 20.1, 30.0, 40.0, 50.0, 99.0, 100.0];
        let found = percents.map(|percent| percentile(&five, percent).unwrap());
        assert_eq!(found, [15, 15, 15, 20, 20, 20, 35, 50, 50]);
        assert_eq!(percentile::<u32>(&[], 50.0), None);
        assert_eq!(DurationHistogram::default().percentile(50.0), None);
    }

    #[test]
    fn samples_are_pooled_above_a_base_of_their_own() {
        let of = |millis: &[u64]| {
            let mut histogram = DurationHistogram::default();
            for one in millis {
                histogram.record(Duration::from_millis(*one));
            }
            histogram
        };
        let mut pooled = DurationHistogram::default();
        pooled.merge_above(&of(&[10, 30, 40]), Duration::from_millis(10));
        pooled.merge_above(&of(&[100, 101]), Duration::from_millis(100));
        assert_eq!(pooled.count(), 5);
        let millis = |percent| pooled.percentile(percent).unwrap().as_micros() as f64 / 1e3;
        let found = [20.0, 60.0, 80.0, 100.0].map(millis);
        let expected: [f64; 4] = [0.0, 1.0, 20.0, 30.0];
        for (found, expected) in found.into_iter().zip(expected) {
            assert!((found - expected).abs() < 0.11, "{found} for {expected}");
        }
    }

    #[test]
    fn every_bucket_holds_its_own_largest_value_and_the_next_follows() {
        let buckets = (EXACT + PER_DOUBLING * DOUBLINGS) as usize;
        for index in 0..buckets {
            let largest = largest_in(index as u64);
            assert_eq!(bucket(largest), index);
            if index + 1 < buckets {
                assert_eq!(bucket(largest + 1), index + 1);
            }
        }
        assert_eq!(largest_in(buckets as u64 - 1), u64::from(u32::MAX));
    }

    #[test]
    fn a_sample_of_any_length_is_counted() {
        let mut histogram = DurationHistogram::default();
        histogram.record(Duration::MAX);
        histogram.record(Duration::ZERO);
        assert_eq!(histogram.count(), 2);
        let longest = histogram.percentile(100.0).unwrap();
        assert_eq!(longest, Duration::from_micros(u64::from(u32::MAX)));
    }

    proptest! {
        #[test]
        fn the_histogram_is_within_a_thousandth_above_the_exact_percentile(
            samples in prop::collection::vec(0_u64..60_000_000, 1..300), percent in 0.0_f64..100.0,
        ) {
            let mut sorted = samples.clone();
            sorted.sort_unstable();
            let mut histogram = DurationHistogram::default();
            for micros in samples {
                histogram.record(Duration::from_micros(micros));
            }
            let exact = percentile(&sorted, percent).unwrap();
            let found = histogram.percentile(percent).unwrap().as_micros();
            prop_assert!(found >= exact && found - exact <= exact / 1_000, "{found} {exact}");
        }

        #[test]
        fn merged_histograms_are_the_histogram_of_all(
            a in prop::collection::vec(0_u64..1_000_000, 0..100),
            b in prop::collection::vec(0_u64..1_000_000, 1..100),
        ) {
            let (mut one, mut two, mut all) =
                (DurationHistogram::default(), DurationHistogram::default(), DurationHistogram::default());
            for micros in &a {
                one.record(Duration::from_micros(*micros));
                all.record(Duration::from_micros(*micros));
            }
            for micros in &b {
                two.record(Duration::from_micros(*micros));
                all.record(Duration::from_micros(*micros));
            }
            one.merge(&two);
            prop_assert_eq!(one.count(), all.count());
            for percent in [1.0, 50.0, 95.0, 99.0] {
                prop_assert_eq!(one.percentile(percent), all.percentile(percent));
            }
        }
    }
}
