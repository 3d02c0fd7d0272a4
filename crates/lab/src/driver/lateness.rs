//! How late packets left the emulated radio.

use wakeai_units::Duration;

/// Sub-buckets per power of two: a percentile is at most 1/32 too high.
const SUB_BITS: u32 = 5;

/// A histogram of lateness with relative precision, in constant memory.
#[derive(Clone, Debug)]
pub struct Lateness {
    buckets: Vec<u64>,
    count: u64,
    max: Duration,
}

impl Default for Lateness {
    fn default() -> Self {
        let buckets = ((64 - SUB_BITS as usize) + 1) << SUB_BITS;
        Self { buckets: vec![0; buckets], count: 0, max: Duration::ZERO }
    }
}

impl Lateness {
    /// Adds one release.
    pub(crate) fn record(&mut self, late: Duration) {
        self.buckets[bucket_of(late.as_nanos())] += 1;
        self.count += 1;
        self.max = self.max.max(late);
    }

    /// Releases in all.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The largest lateness, exact.
    pub fn max(&self) -> Duration {
        self.max
    }

    /// The upper edge of the bucket that holds the given share of the releases (0.99 for the
    /// 99th percentile); zero where nothing was released.
    pub fn quantile(&self, share: f64) -> Duration {
        let wanted = (self.count as f64 * share).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (bucket, count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return Duration::from_nanos(upper_edge(bucket)).min(self.max);
            }
        }
        Duration::ZERO
    }
}

fn bucket_of(nanos: u64) -> usize {
    let exponent = nanos.checked_ilog2().unwrap_or(0).saturating_sub(SUB_BITS);
    ((exponent as usize) << SUB_BITS) + (nanos >> exponent) as usize
}

fn upper_edge(bucket: usize) -> u64 {
    let exponent = (bucket >> SUB_BITS).saturating_sub(1) as u32;
    let first = (bucket - ((exponent as usize) << SUB_BITS)) as u64;
    (first << exponent) + ((1_u64 << exponent) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_at_most_a_32nd_below_its_bucket_s_edge() {
        for nanos in
            (0..10_000).chain([1 << 20, (1 << 20) - 1, 123_456_789, 1 << 40, u64::MAX >> 1])
        {
            let edge = upper_edge(bucket_of(nanos));
            assert!(edge >= nanos, "{nanos} above its edge {edge}");
            assert!(edge - nanos <= nanos / 32, "{nanos} far below its edge {edge}");
        }
    }

    #[test]
    fn quantiles_count_releases() {
        let mut lateness = Lateness::default();
        assert_eq!(lateness.quantile(0.99), Duration::ZERO);
        for micros in 1..=100 {
            lateness.record(Duration::from_micros(micros));
        }
        let p99 = lateness.quantile(0.99).as_nanos();
        assert!((99_000..=99_000 + 99_000 / 32).contains(&p99), "{p99}");
        assert_eq!(lateness.quantile(1.0), Duration::from_micros(100));
        assert_eq!(lateness.max(), Duration::from_micros(100));
        assert_eq!(lateness.count(), 100);
    }
}
