//! The waits between attempts, and the time after which the attempts end.

use wakeai_units::{Duration, Instant};

const FIRST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(30);

/// The failures since the last progress. After each failure, [`Backoff::failed`] returns the wait before the next
/// attempt. After progress, [`Backoff::progressed`] resets the count of failures.
#[derive(Clone, Debug)]
pub(super) struct Backoff {
    limit: Duration,
    failures: u32,
    since: Option<Instant>,
}

impl Backoff {
    /// Starts without a failure. The attempts end `limit` after the first failure since the last progress.
    pub(super) fn new(limit: Duration) -> Self {
        Self { limit, failures: 0, since: None }
    }

    /// The upload advanced.
    pub(super) fn progressed(&mut self) {
        (self.failures, self.since) = (0, None);
    }

    /// Counts a failure and returns the wait before the next attempt. The wait doubles up to 30 s. Half of it is
    /// random, so that clients that failed together do not return together. The wait is at least `at_least`, which the
    /// server asked for.
    ///
    /// # Errors
    ///
    /// The wait would end after the limit: the time from the first failure after the last progress until now.
    pub(super) fn failed(
        &mut self,
        now: Instant,
        random: u64,
        at_least: Duration,
    ) -> Result<Duration, Duration> {
        let since = *self.since.get_or_insert(now);
        let doubled = FIRST.saturating_mul(1 << self.failures.min(16)).min(LONGEST);
        self.failures = self.failures.saturating_add(1);
        let half = doubled / 2;
        let jitter = Duration::from_nanos(random % (half.as_nanos() + 1));
        let wait = half.saturating_add(jitter).max(at_least);
        let elapsed = now.saturating_since(since);
        if elapsed.saturating_add(wait) > self.limit { Err(elapsed) } else { Ok(wait) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn progress_makes_waits_short_again() {
        let mut backoff = Backoff::new(Duration::from_secs(600));
        let mut wait = || backoff.failed(Instant::ZERO, 0, Duration::ZERO).unwrap();
        assert_eq!((wait(), wait()), (Duration::from_millis(250), Duration::from_millis(500)));
        backoff.progressed();
        let wait = backoff.failed(Instant::ZERO, 0, Duration::ZERO).unwrap();
        assert_eq!(wait, Duration::from_millis(250));
    }

    #[test]
    fn the_server_s_wish_is_kept_unless_it_exceeds_the_limit() {
        let mut backoff = Backoff::new(Duration::from_secs(60));
        let asked = Duration::from_secs(50);
        assert_eq!(backoff.failed(Instant::ZERO, 7, asked), Ok(asked));
        let now = Instant::ZERO + asked;
        assert_eq!(backoff.failed(now, 7, asked), Err(asked));
    }

    proptest! {
        #[test]
        fn attempts_end_within_the_limit(limit in 1_u64..10_000, random: u64) {
            let limit = Duration::from_secs(limit);
            let mut backoff = Backoff::new(limit);
            let mut now = Instant::ZERO;
            for _ in 0..100_000 {
                let Ok(wait) = backoff.failed(now, random, Duration::ZERO) else {
                    prop_assert!(now.saturating_since(Instant::ZERO) <= limit);
                    return Ok(());
                };
                prop_assert!(wait <= LONGEST && wait >= FIRST / 2);
                now += wait;
            }
            prop_assert!(false, "it never ended");
        }
    }
}
