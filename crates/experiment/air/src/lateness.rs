//! How late the events of a run were.

use wakeai_results::figures::DurationHistogram;
use wakeai_units::{Duration, Instant};

/// The distribution of delays: how long after its due time each event happened.
#[derive(Clone, Debug, Default)]
pub struct Lateness {
    times: DurationHistogram,
    /// The largest delay, which is not rounded.
    pub max: Duration,
}

impl Lateness {
    /// Adds one delay.
    pub fn record(&mut self, late: Duration) {
        self.times.record(late);
        self.max = self.max.max(late);
    }

    /// The number of delays.
    pub fn count(&self) -> u64 {
        self.times.count()
    }

    /// A percentile in whole microseconds; zero without delays.
    pub fn percentile(&self, percent: f64) -> Duration {
        self.times.percentile(percent).unwrap_or(Duration::ZERO)
    }
}

/// One host among those whose packets the kernel handles inside the calls that give them, one after another on one processor.
#[derive(Clone, Copy, Debug, Default)]
pub struct Host {
    /// When a host of its own, which begins with each packet when it is due, would have been done with all before.
    idle_from: Instant,
}

impl Host {
    /// The delay of a packet that was due at `due`, was given to this host at `begun`, and was handled at `done`: how long after
    /// the time at which a host with a processor of its own would have begun with it. So the host's own work on the packets
    /// before it is no delay, and all that others did meanwhile is one.
    pub fn delay(&mut self, due: Instant, begun: Instant, done: Instant) -> Duration {
        let could = due.max(self.idle_from);
        self.idle_from = could + done.saturating_since(begun);
        begun.saturating_since(could)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_s_own_work_on_an_aggregate_is_no_delay_and_what_others_take_is() {
        let at = |micros| Instant::ZERO + Duration::from_micros(micros);
        let mut host = Host::default();
        let mut delay = |due, begun, done| {
            let delay = host.delay(at(due), at(begun), at(done));
            delay.as_nanos() / 1_000
        };
        // Three packets of an aggregate, one after another, 3 us after their time.
        assert_eq!(delay(100, 103, 120), 3);
        assert_eq!(delay(100, 120, 137), 3);
        // Before the third another host was busy for 40 us.
        assert_eq!(delay(100, 177, 190), 43);
        // It was due when the host would have been idle for 3 us.
        assert_eq!(delay(150, 190, 200), 40);
        // It was due 5 us before the host would have been idle, and the medium was late by 60.
        assert_eq!(delay(155, 220, 221), 60);
    }
}
