//! The size of the receive buffer: dynamic right-sizing, as Linux does it
//! (`tcp_rcv_space_adjust`; Fisk and Feng, "Dynamic Right-Sizing in TCP").
//!
//! The estimate of the sender's window is the number of bytes that the application took in one RTT.
//! The buffer is at least twice this number, and larger while the number grows, so that the buffer
//! does not limit the sender.

use wakeai_units::{Duration, Instant};

/// The number of segments that arrive in the first RTT (RFC 6928).
const INITIAL_WINDOW: u64 = 10;

/// The measurements of one receiver.
#[derive(Clone, Debug)]
pub(super) struct Autotune {
    /// Smoothed RTT in microseconds, times 8; 0 before the first sample.
    rtt_us_times_8: u64,
    /// The echoed timestamp of the last sample. Each echo gives one sample.
    last_echo: Option<u32>,
    /// The window whose duration is measured: the position of its end, and the time at which it
    /// began.
    round: Option<(u64, Instant)>,
    /// The most bytes that the application took in one RTT.
    taken: u64,
    /// The position and the time at which the present RTT began.
    since: (u64, Instant),
}

/// Positions in the stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadProgress {
    /// The position up to which the application has read.
    pub(super) read: u64,
    /// The position up to which data has arrived in order.
    pub(super) next: u64,
    /// The distance from `next` to the end of the data that has arrived out of order.
    pub(super) ahead: u64,
}

impl Autotune {
    /// The state of a connection that is established now.
    pub(super) fn new(now: Instant, mss: u64) -> Self {
        Self {
            rtt_us_times_8: 0,
            last_echo: None,
            round: None,
            taken: INITIAL_WINDOW * mss,
            since: (1, now),
        }
    }

    /// The RTT that was estimated from the data.
    pub(super) fn rtt(&self) -> Option<Duration> {
        (self.rtt_us_times_8 > 0).then(|| Duration::from_micros(self.rtt_us_times_8 / 8))
    }

    /// Takes an RTT sample from a segment that echoes a timestamp. This end sent the timestamp
    /// `elapsed_ms` milliseconds ago.
    /// Only a full segment gives a sample. While the application has unread data (`drained` is
    /// false), only a smaller RTT counts.
    pub(super) fn on_echo(&mut self, echo: u32, elapsed_ms: u32, full: bool, drained: bool) {
        if self.last_echo.replace(echo) == Some(echo) || !full {
            return;
        }
        let sample_us = 1000 * u64::from(elapsed_ms.max(1));
        if self.shrink(sample_us) || !drained {
            return;
        }
        self.rtt_us_times_8 += sample_us - self.rtt_us_times_8 / 8;
    }

    /// Estimates the RTT without timestamps. The RTT is at most the time in which a whole window
    /// arrives.
    pub(super) fn on_data(&mut self, now: Instant, next: u64, window: u64) {
        if let Some((end, began)) = self.round {
            if next < end {
                return;
            }
            self.shrink(now.saturating_since(began).as_micros().max(1));
        }
        self.round = Some((next + window, now));
    }

    /// Takes a sample where it is the first one or smaller than the estimate. Returns whether the
    /// sample was taken.
    fn shrink(&mut self, sample_us: u64) -> bool {
        let smaller = self.rtt_us_times_8 == 0 || sample_us * 8 < self.rtt_us_times_8;
        if smaller {
            self.rtt_us_times_8 = sample_us * 8;
        }
        smaller
    }

    /// Handles a read of the application. Returns the new size of the buffer, at most once per RTT,
    /// and only where the application took more than in any RTT before.
    pub(super) fn on_read(&mut self, now: Instant, progress: ReadProgress) -> Option<u64> {
        let (position, began) = self.since;
        if now.saturating_since(began) < self.rtt()? {
            return None;
        }
        self.since = (progress.read, now);
        let waiting = progress.next - progress.read;
        let taken = (progress.read - position).saturating_sub(waiting);
        if taken <= self.taken {
            return None;
        }
        let before = std::mem::replace(&mut self.taken, taken);
        // The measurement is one RTT old, and the sender may double its window in the next RTT.
        let window = 2 * taken;
        let growth = window.saturating_mul(taken - before) / before.max(1);
        Some(window + 2 * growth + progress.ahead)
    }

    /// The new size of the buffer for data that is stored behind a gap.
    pub(super) fn with_gap(&self, ahead: u64) -> u64 {
        2 * self.taken + ahead
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1448;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn read(position: u64) -> ReadProgress {
        ReadProgress { read: position, next: position, ahead: 0 }
    }

    #[test]
    fn the_buffer_is_a_multiple_of_what_was_taken_in_an_rtt() {
        let mut autotune = Autotune::new(at(0), MSS);
        autotune.on_echo(1, 100, true, true);
        assert_eq!(autotune.on_read(at(99), read(40 * MSS)), None);
        // The application took 20 segments in the RTT, so the sender may have 40 in the next. The
        // 20 are 100 % more than the 10 before, so twice 100 % of 40 is added: 40 + 80 = 120.
        assert_eq!(autotune.on_read(at(100), read(1 + 20 * MSS)), Some(120 * MSS));
        assert_eq!(autotune.on_read(at(200), read(1 + 40 * MSS)), None, "no more than before");
    }

    #[test]
    fn what_the_application_leaves_lying_counts_against_it() {
        let mut autotune = Autotune::new(at(0), MSS);
        autotune.on_echo(1, 100, true, true);
        let slow = ReadProgress { read: 1 + 20 * MSS, next: 1 + 30 * MSS, ahead: 0 };
        assert_eq!(autotune.on_read(at(100), slow), None);
    }

    #[test]
    fn the_rtt_follows_downward_at_once_and_upward_by_eighths() {
        let mut autotune = Autotune::new(at(0), MSS);
        for (echo, elapsed_ms, rtt_ms) in [(1, 100, 100), (2, 20, 20), (3, 100, 30), (3, 900, 30)] {
            autotune.on_echo(echo, elapsed_ms, true, true);
            assert_eq!(autotune.rtt(), Some(Duration::from_millis(rtt_ms)));
        }
    }

    #[test]
    fn without_timestamps_the_rtt_is_the_time_of_a_window() {
        let mut autotune = Autotune::new(at(0), MSS);
        autotune.on_data(at(10), MSS, 10 * MSS);
        autotune.on_data(at(30), 10 * MSS, 10 * MSS);
        assert_eq!(autotune.rtt(), None);
        autotune.on_data(at(60), 11 * MSS, 10 * MSS);
        assert_eq!(autotune.rtt(), Some(Duration::from_millis(50)));
    }
}
