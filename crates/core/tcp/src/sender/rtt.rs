//! The round-trip time: timestamps (RFC 7323), and the estimate with the timeout that follows from it (RFC 6298
//! sections 2 and 3).

use wakeai_units::{Duration, Instant};

use crate::config::{MIN_TIMEOUT, TcpConfig};
use crate::segment::Timestamp;

/// The timestamps of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Timestamps {
    /// The peer's clock, which this end echoes.
    pub(super) echo: u32,
    /// The timestamp of this end that the segment at hand echoes; 0 where it echoes none.
    pub(super) echoed: u32,
}

impl Timestamps {
    /// The timestamp of a segment that leaves now.
    pub(super) fn outgoing(self, now: Instant) -> Timestamp {
        Timestamp { value: Timestamp::clock_ms(now), echo: self.echo }
    }

    /// Whether the segment at hand echoes a timestamp from before `sent`. It then answers an
    /// earlier transmission.
    pub(super) fn answers_before(self, sent: u32) -> bool {
        self.echoed != 0 && self.echoed.wrapping_sub(sent).cast_signed() < 0
    }

    /// The RTT by the echoed timestamp, in whole milliseconds and at least one.
    pub(super) fn rtt_us(self, now: Instant) -> Option<u32> {
        let elapsed_ms = Timestamp::clock_ms(now).wrapping_sub(self.echoed);
        (elapsed_ms < 1 << 18).then_some(elapsed_ms.max(1) * 1_000)
    }
}

/// The length of the window of the minimum RTT, as in Linux.
const MINIMUM_WINDOW: Duration = Duration::from_secs(300);
/// The granularity of the clock in RFC 6298 section 2.
const GRANULARITY_US: u32 = 1_000;
const MINIMUM_US: u32 = MIN_TIMEOUT.as_micros() as u32;

/// The smoothed RTT, its variation, and the timeout that follows from both.
///
/// There are two estimators. In that of RFC 6298 the *timeout* is at least the configured minimum.
/// In that of Linux the *variation* is at least the minimum, so on a path without jitter Linux
/// waits an RTT longer. Linux also takes the largest deviation of a round instead of four times the
/// smoothed deviation, follows a falling RTT eight times more slowly, and lets the variation decay
/// once a round.
#[derive(Clone, Debug, Default)]
pub(super) struct RttEstimator {
    linux: bool,
    maximum: Duration,
    /// Smoothed RTT, times 8; 0 before the first sample.
    pub(super) smoothed_us_by_8: u32,
    /// Mean deviation, times 4.
    deviation_us_by_4: u32,
    /// Linux: the largest `deviation_us_by_4` of this round.
    round_deviation_us: u32,
    /// The time that the timeout adds to the smoothed RTT.
    pub(super) variation_us: u32,
    /// The position whose acknowledgement ends the round.
    round_end: u64,
    /// The last sample; 0 before the first sample.
    pub(super) latest_us: u32,
    least: WindowedMinimum,
}

impl RttEstimator {
    pub(super) fn new(config: &TcpConfig) -> Self {
        Self { linux: config.is_linux(), maximum: config.max_timeout, ..Self::default() }
    }

    pub(super) fn smoothed_us(&self) -> u32 {
        self.smoothed_us_by_8 >> 3
    }

    /// The smallest sample of the last five minutes; 0 before the first sample.
    pub(super) fn least_us(&self) -> u32 {
        self.least.get()
    }

    /// The timeout without backoff; `None` before the first sample.
    pub(super) fn timeout(&self) -> Option<Duration> {
        if self.smoothed_us_by_8 == 0 {
            return None;
        }
        let mut timeout_us = u64::from(self.smoothed_us()) + u64::from(self.variation_us);
        debug_assert!(!self.linux || self.variation_us >= MINIMUM_US);
        if !self.linux {
            timeout_us = timeout_us.max(u64::from(MINIMUM_US));
        }
        Some(Duration::from_micros(timeout_us).min(self.maximum))
    }

    /// Takes the sample of an ACK. `oldest_us` is the RTT of the oldest segment that it
    /// acknowledges; the timeout must exceed this RTT. `newest_us` is the RTT of the newest
    /// segment. `una` and `nxt` are the values after the ACK.
    pub(super) fn sample(
        &mut self,
        now: Instant,
        oldest_us: u32,
        newest_us: u32,
        una: u64,
        nxt: u64,
    ) {
        debug_assert!(una <= nxt, "{una} acknowledged of {nxt}");
        let newest_us = newest_us.max(1);
        self.latest_us = newest_us;
        self.least.sample(now, newest_us);
        if self.smoothed_us_by_8 == 0 {
            self.begin(oldest_us, nxt);
        } else if self.linux {
            self.update_as_linux(oldest_us, una, nxt);
        } else {
            self.update_as_rfc6298(oldest_us);
        }
    }

    fn begin(&mut self, rtt_us: u32, nxt: u64) {
        self.smoothed_us_by_8 = (rtt_us * 8).max(1);
        self.deviation_us_by_4 = rtt_us * 2;
        let least_us = if self.linux { MINIMUM_US } else { GRANULARITY_US };
        self.variation_us = self.deviation_us_by_4.max(least_us);
        self.round_deviation_us = self.variation_us;
        self.round_end = nxt;
    }

    /// Updates the estimate by RFC 6298 section 2.3.
    fn update_as_rfc6298(&mut self, rtt_us: u32) {
        let error_us = self.smoothed_us().abs_diff(rtt_us);
        self.deviation_us_by_4 = self.deviation_us_by_4 - self.deviation_us_by_4 / 4 + error_us;
        self.smooth(rtt_us);
        self.variation_us = self.deviation_us_by_4.max(GRANULARITY_US);
    }

    fn update_as_linux(&mut self, rtt_us: u32, una: u64, nxt: u64) {
        let smoothed_us = self.smoothed_us();
        let excess_us =
            i64::from(smoothed_us.abs_diff(rtt_us)) - i64::from(self.deviation_us_by_4 >> 2);
        // A sudden fall of the RTT must not make the timeout longer.
        let gained_us =
            if rtt_us < smoothed_us && excess_us > 0 { excess_us >> 3 } else { excess_us };
        let deviation_us = (i64::from(self.deviation_us_by_4) + gained_us).max(0);
        self.deviation_us_by_4 = u32::try_from(deviation_us).unwrap_or(u32::MAX);
        self.smooth(rtt_us);
        self.round_deviation_us = self.round_deviation_us.max(self.deviation_us_by_4);
        self.variation_us = self.variation_us.max(self.round_deviation_us);
        if una > self.round_end {
            let surplus_us = self.variation_us.saturating_sub(self.round_deviation_us);
            self.variation_us -= surplus_us / 4;
            self.round_end = nxt;
            self.round_deviation_us = MINIMUM_US;
        }
    }

    fn smooth(&mut self, rtt_us: u32) {
        let smoothed = self.smoothed_us_by_8 - (self.smoothed_us_by_8 >> 3) + rtt_us;
        self.smoothed_us_by_8 = smoothed.max(1);
    }
}

/// The smallest sample of a sliding window of time. As in Nichols's algorithm, only the smallest
/// samples of three parts of the window are kept.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WindowedMinimum {
    best: [(Instant, u32); 3],
}

impl WindowedMinimum {
    pub(super) fn get(self) -> u32 {
        self.best[0].1
    }

    pub(super) fn sample(&mut self, now: Instant, value: u32) {
        debug_assert!(self.best.iter().all(|(at, _)| *at <= now), "the time went back");
        debug_assert!(self.best.is_sorted_by_key(|(at, _)| *at), "the smallest is the oldest");
        let sample = (now, value);
        let age = |of: (Instant, u32)| now.saturating_since(of.0);
        if self.best[0].1 == 0 || value <= self.best[0].1 || age(self.best[2]) > MINIMUM_WINDOW {
            self.best = [sample; 3];
            return;
        }
        if value <= self.best[1].1 {
            self.best[1] = sample;
            self.best[2] = sample;
        } else if value <= self.best[2].1 {
            self.best[2] = sample;
        }
        self.grow_old(now, sample);
    }

    /// Replaces the smallest sample where it is too old. Replaces the second or third one where a
    /// part of the window has passed without a new sample.
    fn grow_old(&mut self, now: Instant, sample: (Instant, u32)) {
        let age = now.saturating_since(self.best[0].0);
        if age > MINIMUM_WINDOW {
            self.best = [self.best[1], self.best[2], sample];
            if now.saturating_since(self.best[0].0) > MINIMUM_WINDOW {
                self.best = [self.best[1], self.best[2], sample];
            }
        } else if self.best[1].0 == self.best[0].0 && age > MINIMUM_WINDOW / 4 {
            self.best[1] = sample;
            self.best[2] = sample;
        } else if self.best[2].0 == self.best[1].0 && age > MINIMUM_WINDOW / 2 {
            self.best[2] = sample;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Profile;

    fn estimator(profile: Profile) -> RttEstimator {
        RttEstimator::new(&TcpConfig::new(profile))
    }

    fn steady(profile: Profile, rtt_us: u32) -> Duration {
        let mut rtt = estimator(profile);
        for round in 0..200 {
            rtt.sample(Instant::from_nanos(round), rtt_us, rtt_us, round + 1, round + 1);
        }
        rtt.timeout().unwrap()
    }

    #[test]
    fn the_first_sample_gives_three_times_itself() {
        // RFC 6298 section 2.2: with the first sample R the timeout is R + 4 R/2.
        for profile in [Profile::Linux, Profile::Classic] {
            let mut rtt = estimator(profile);
            assert_eq!(rtt.timeout(), None);
            rtt.sample(Instant::ZERO, 300_000, 300_000, 1, 1);
            assert_eq!(rtt.timeout(), Some(Duration::from_millis(900)));
        }
    }

    #[test]
    fn the_minimum_bounds_the_timeout_or_in_linux_the_variation() {
        assert_eq!(steady(Profile::Classic, 50_000), Duration::from_millis(200));
        let close = |a: Duration, ms| a.as_millis() == ms;
        assert!(close(steady(Profile::Linux, 50_000), 250));
        assert!(close(steady(Profile::Linux, 400_000), 600));
    }

    #[test]
    fn a_falling_rtt_lengthens_the_timeout_of_the_rfc_only() {
        let after_a_fall = |profile| {
            let mut rtt = estimator(profile);
            for round in 0..200 {
                rtt.sample(Instant::ZERO, 1_000_000, 1_000_000, round + 1, round + 1);
            }
            let before = rtt.timeout().unwrap();
            rtt.sample(Instant::ZERO, 100_000, 100_000, 201, 201);
            (before, rtt.timeout().unwrap())
        };
        let (before, after) = after_a_fall(Profile::Classic);
        assert!(after > before);
        let (before, after) = after_a_fall(Profile::Linux);
        assert!(after < before, "{before} {after}");
    }

    #[test]
    fn the_minimum_is_forgotten_after_five_minutes() {
        let mut rtt = estimator(Profile::Linux);
        let at = |secs| Instant::ZERO + Duration::from_secs(secs);
        rtt.sample(at(0), 5_000, 5_000, 1, 1);
        for secs in 1..300 {
            rtt.sample(at(secs), 9_000, 9_000, 1, 1);
            assert_eq!(rtt.least_us(), 5_000);
        }
        for secs in 300..310 {
            rtt.sample(at(secs), 9_000, 9_000, 1, 1);
        }
        assert_eq!(rtt.least_us(), 9_000);
    }
}
