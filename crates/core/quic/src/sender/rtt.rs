//! The round-trip time: its estimate (RFC 9002 section 5), and the times that follow from it.

use wakeai_units::Duration;

use crate::MAX_ACK_DELAY;

/// The timer's granularity (`kGranularity`, RFC 9002 section 6.1.2).
const GRANULARITY: Duration = Duration::from_millis(1);
/// The RTT before the first sample (`kInitialRtt`, RFC 9002 section 6.2.2).
const INITIAL: Duration = Duration::from_millis(333);
/// Probe timeouts without an acknowledgement that show persistent congestion (`kPersistentCongestionThreshold`, RFC 9002
/// section 7.6.1).
const PERSISTENT: u64 = 3;

/// The estimate.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rtt {
    estimate: Option<Estimate>,
}

/// The figures after the first sample.
#[derive(Clone, Copy, Debug)]
pub(super) struct Estimate {
    pub(super) latest: Duration,
    pub(super) smoothed: Duration,
    variation: Duration,
    pub(super) least: Duration,
}

impl Rtt {
    pub(super) fn get(&self) -> Option<Estimate> {
        self.estimate
    }

    /// The smoothed RTT, or what stands for it before the first sample.
    pub(super) fn smoothed(&self) -> Duration {
        self.estimate.map_or(INITIAL, |estimate| estimate.smoothed)
    }

    /// Takes a sample (RFC 9002 section 5.3). `delay` is the time for which the receiver says that it held the
    /// acknowledgement back.
    pub(super) fn sample(&mut self, latest: Duration, delay: Duration) {
        let Some(estimate) = &mut self.estimate else {
            self.estimate =
                Some(Estimate { latest, smoothed: latest, variation: latest / 2, least: latest });
            return;
        };
        estimate.latest = latest;
        estimate.least = estimate.least.min(latest);
        let delay = delay.min(MAX_ACK_DELAY);
        let adjusted =
            if latest >= estimate.least + delay { latest.saturating_sub(delay) } else { latest };
        let smoothed = estimate.smoothed;
        let error = smoothed.saturating_sub(adjusted).max(adjusted.saturating_sub(smoothed));
        estimate.variation = (estimate.variation.saturating_mul(3) + error) / 4;
        estimate.smoothed = (smoothed.saturating_mul(7) + adjusted) / 8;
    }

    /// Forgets the smallest sample, after persistent congestion (RFC 9002 section 5.2).
    pub(super) fn forget_least(&mut self) {
        if let Some(estimate) = &mut self.estimate {
            estimate.least = estimate.latest;
        }
    }

    /// The time after which a packet is lost, once a later one is acknowledged (RFC 9002 section 6.1.2).
    pub(super) fn loss_delay(&self) -> Duration {
        let longest = self.estimate.map_or(INITIAL, |of| of.smoothed.max(of.latest));
        (longest.saturating_mul(9) / 8).max(GRANULARITY)
    }

    /// The probe timeout without backoff (RFC 9002 section 6.2.1).
    pub(super) fn probe_timeout(&self) -> Duration {
        let variation = self.estimate.map_or(INITIAL / 2, |of| of.variation);
        self.smoothed() + variation.saturating_mul(4).max(GRANULARITY) + MAX_ACK_DELAY
    }

    /// The time between two lost packets, with none acknowledged between them, that shows persistent congestion (RFC
    /// 9002 section 7.6.1). There is none before the first sample.
    pub(super) fn persistent(&self) -> Option<Duration> {
        self.estimate.map(|_| self.probe_timeout().saturating_mul(PERSISTENT))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn the_estimate_is_that_of_rfc_9002() {
        let mut rtt = Rtt::default();
        // 2 * 333 ms, as kInitialRtt / 2 is the first variation, with max_ack_delay.
        assert_eq!(rtt.probe_timeout(), ms(333 + 2 * 333 + 25));
        rtt.sample(ms(80), ms(10));
        let first = rtt.get().unwrap();
        assert_eq!((first.smoothed, first.variation, first.least), (ms(80), ms(40), ms(80)));
        rtt.sample(ms(120), ms(10));
        let next = rtt.get().unwrap();
        // The sample without its delay is 110 ms.
        assert_eq!(next.variation, Duration::from_micros(37_500));
        assert_eq!(next.smoothed, Duration::from_micros(83_750));
        assert_eq!(rtt.loss_delay(), ms(135));
        assert_eq!(rtt.probe_timeout(), Duration::from_micros(83_750 + 150_000 + 25_000));
    }

    #[test]
    fn a_delay_that_would_go_below_the_minimum_is_not_taken_off() {
        let mut rtt = Rtt::default();
        rtt.sample(ms(80), ms(0));
        rtt.sample(ms(84), ms(25));
        assert_eq!(rtt.get().unwrap().smoothed, Duration::from_micros(80_500));
    }
}
