//! A histogram: it counts observations by their value.

/// A histogram with fixed bounds.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    bounds: &'static [f64],
    /// The number of observations per bucket. A bucket has the observations up to its bound and above
    /// the previous bound. The last bucket has the observations above all bounds.
    counts: Vec<u64>,
    sum: f64,
}

impl Histogram {
    /// A histogram whose buckets end at these bounds. The bounds must be in ascending order.
    pub fn new(bounds: &'static [f64]) -> Self {
        Self { bounds, counts: vec![0; bounds.len() + 1], sum: 0.0 }
    }

    /// Counts a value. A value that is not finite is ignored.
    pub fn observe(&mut self, value: f64) {
        if value.is_finite() {
            let place = self.bounds.partition_point(|&bound| bound < value);
            self.counts[place] = self.counts[place].saturating_add(1);
            self.sum += value;
        }
    }

    /// The sum, the count, and each bucket's upper bound with its number of observations.
    pub(crate) fn parts(&self) -> (f64, u64, Vec<(f64, u64)>) {
        let bounds = self.bounds.iter().copied().chain([f64::INFINITY]);
        let buckets: Vec<_> = bounds.zip(self.counts.iter().copied()).collect();
        (self.sum, self.counts.iter().sum(), buckets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_observation_is_in_the_first_bucket_that_is_large_enough() {
        let mut histogram = Histogram::new(&[1.0, 2.0]);
        for value in [0.0, 1.0, 1.5, 2.0, 9.0, f64::NAN] {
            histogram.observe(value);
        }
        let (sum, count, buckets) = histogram.parts();
        assert_eq!((sum, count), (13.5, 5));
        assert_eq!(buckets, [(1.0, 2), (2.0, 2), (f64::INFINITY, 1)]);
    }
}
