//! Round-trip times, and a grade for how much queues add to them.

use serde::Serialize;
use wakeai_units::Duration;

use crate::buffer::quantile;

/// Round-trip times of small datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct RoundTrips {
    /// The smallest round-trip time.
    pub min_ms: f64,
    /// The median.
    pub median_ms: f64,
    /// The 95th percentile.
    pub p95_ms: f64,
    /// The number of answers.
    pub answers: usize,
    /// The number of datagrams without an answer.
    pub lost: usize,
}

impl RoundTrips {
    /// The figures of these round trips. Without an answer all times are zero.
    pub fn from_times(times: &[Option<Duration>]) -> Self {
        let answered: Vec<f64> = times.iter().flatten().map(|time| time.as_millis_f64()).collect();
        let at = |share| quantile(&answered, share).unwrap_or(0.0);
        let lost = times.len() - answered.len();
        Self {
            min_ms: at(0.0),
            median_ms: at(0.5),
            p95_ms: at(0.95),
            answers: answered.len(),
            lost,
        }
    }
}

/// How much the queues add to a round trip under load. The borders are those of the grades that
/// tests of bufferbloat on the web give.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Grade {
    /// Below 5 ms.
    Excellent,
    /// Below 30 ms: it does not disturb a call.
    Good,
    /// Below 60 ms.
    Fair,
    /// Below 200 ms: a call lags.
    Poor,
    /// Below 400 ms.
    Bad,
    /// 400 ms and more: names are looked up again, and a page stalls.
    VeryBad,
}

impl Grade {
    /// The grade of an increase of the median round-trip time.
    pub fn from_increase(increase_ms: f64) -> Self {
        match increase_ms {
            ms if ms < 5.0 => Self::Excellent,
            ms if ms < 30.0 => Self::Good,
            ms if ms < 60.0 => Self::Fair,
            ms if ms < 200.0 => Self::Poor,
            ms if ms < 400.0 => Self::Bad,
            _ => Self::VeryBad,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips_have_their_percentiles_and_losses() {
        let mut times: Vec<_> = (1..=100).map(|ms| Some(Duration::from_millis(ms))).collect();
        times.extend([None, None]);
        let found = RoundTrips::from_times(&times);
        assert_eq!((found.min_ms, found.p95_ms, found.answers, found.lost), (1.0, 95.0, 100, 2));
        assert!((found.median_ms - 50.5).abs() <= 0.5, "{found:?}");
        assert_eq!(
            RoundTrips::from_times(&[None]),
            RoundTrips { lost: 1, ..RoundTrips::default() }
        );
    }

    #[test]
    fn a_grade_falls_with_the_increase() {
        let grades = [-1.0, 4.9, 5.0, 30.0, 60.0, 200.0, 400.0, 4_000.0].map(Grade::from_increase);
        let expected = [
            Grade::Excellent,
            Grade::Excellent,
            Grade::Good,
            Grade::Fair,
            Grade::Poor,
            Grade::Bad,
            Grade::VeryBad,
            Grade::VeryBad,
        ];
        assert_eq!(grades, expected);
    }
}
