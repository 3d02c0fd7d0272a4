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

/// What one host does with packets that are due at the same time, such as those of an aggregate, where the kernel handles each
/// inside the call that gives it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Host {
    /// When its last packet was due.
    due: Instant,
    /// The time that it has needed for the packets that were due then.
    busy: Duration,
}

impl Host {
    /// The delay of a packet that was due at `due`, was given to this host at `begun`, and was handled at `done`. What the host
    /// itself needed for packets that were due at the same time is no delay: it would need that on a machine of its own, too.
    pub fn delay(&mut self, due: Instant, begun: Instant, done: Instant) -> Duration {
        if self.due != due {
            *self = Self { due, busy: Duration::ZERO };
        }
        let delay = begun.saturating_since(due).saturating_sub(self.busy);
        self.busy += done.saturating_since(begun);
        delay
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
        // The next aggregate was due meanwhile: all of what was before it counts.
        assert_eq!(delay(150, 190, 200), 40);
    }
}
