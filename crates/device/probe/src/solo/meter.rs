//! Measures the goodput of a connection at its receiver.

use wakeai_units::{Bytes, Duration, Instant, Rate};

/// The time that slow start and the filling of queues may take.
const WARMUP: Duration = Duration::from_secs(3);
const SECOND: Duration = Duration::from_secs(1);

/// The goodput of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Goodput {
    /// The goodput over the whole time.
    pub rate: Rate,
    /// The goodput in the slowest whole second.
    pub slowest_second: Rate,
}

/// Counts bytes for a given time, which begins three seconds after the first byte.
///
/// Order of calls: [`Meter::on_bytes`] for each read until [`Meter::goodput`] gives the result.
#[derive(Clone, Debug)]
pub struct Meter {
    time: Duration,
    /// When the first byte came.
    first: Option<Instant>,
    /// The number of bytes of each second after the warm-up.
    seconds: Vec<u64>,
    done: bool,
}

impl Meter {
    /// A meter that counts for `time`, which is a number of whole seconds.
    pub fn new(time: Duration) -> Self {
        Self { time, first: None, seconds: Vec::new(), done: false }
    }

    /// Takes the length of a read.
    pub fn on_bytes(&mut self, now: Instant, count: u64) {
        let begin = *self.first.get_or_insert(now) + WARMUP;
        let Some(since) = now.checked_since(begin) else { return };
        self.done |= since >= self.time;
        if !self.done {
            let second = (since.as_nanos() / SECOND.as_nanos()) as usize;
            self.seconds.resize(self.seconds.len().max(second + 1), 0);
            self.seconds[second] += count;
        }
    }

    /// The goodput; `None` until a byte has come after the end of the time.
    pub fn goodput(&self) -> Option<Goodput> {
        if !self.done {
            return None;
        }
        let whole = (self.time.as_nanos() / SECOND.as_nanos()) as usize;
        let of = |second: usize| self.seconds.get(second).copied().unwrap_or(0);
        let slowest = (0..whole).map(of).min().unwrap_or(0);
        let all: u64 = self.seconds.iter().sum();
        let rate = |bytes, span| Rate::of(Bytes::new(bytes), span);
        Some(Goodput { rate: rate(all, self.time), slowest_second: rate(slowest, SECOND) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The goodput of reads of 1000 bytes each millisecond, without reads during `pause`.
    fn metered(pause: std::ops::Range<u64>) -> Goodput {
        let mut meter = Meter::new(Duration::from_secs(5));
        for ms in (7_000..20_000).filter(|ms| !pause.contains(ms)) {
            assert_eq!(meter.goodput(), None, "{ms}");
            meter.on_bytes(Instant::ZERO + Duration::from_millis(ms), 1_000);
            if let Some(found) = meter.goodput() {
                return found;
            }
        }
        panic!("no goodput")
    }

    #[test]
    fn the_warm_up_does_not_count() {
        let found = metered(8_000..9_900);
        assert_eq!((found.rate, found.slowest_second), (Rate::from_mbps(8), Rate::from_mbps(8)));
    }

    #[test]
    fn a_pause_shows_in_the_slowest_second() {
        let found = metered(11_000..11_500);
        assert_eq!(
            (found.rate, found.slowest_second),
            (Rate::from_bps(7_200_000), Rate::from_mbps(4))
        );
        assert_eq!(metered(11_000..14_500).slowest_second, Rate::ZERO);
    }
}
