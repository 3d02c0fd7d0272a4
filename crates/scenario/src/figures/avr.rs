//! AVR, the share of time that a flow reached its target (004 §4.1).

use wakeai_units::{Bytes, Duration, Rate};

/// Length of a window.
const WINDOW: Duration = Duration::from_secs(5);

/// Counts the 5 s windows of a flow that are at or above its target.
///
/// The first window is left out (120 s make 23), and so is every other that starts before the
/// run's warmup has ended; a window that the end cuts short does not count.
///
/// Order of calls: [`AvrMeter::on_received`] with `since_start` never going back, then
/// [`AvrMeter::finish`].
#[derive(Clone, Debug)]
pub struct AvrMeter {
    target: Rate,
    /// Windows that are left out, from the flow's start.
    skipped: u64,
    /// The window that is being filled, and what it has got.
    current: u64,
    received: Bytes,
    reached: u64,
}

impl AvrMeter {
    /// A meter for a flow with `target`, whose first `warmup` (from its own start) does not count.
    pub fn new(target: Rate, warmup: Duration) -> Self {
        let skipped = warmup.as_nanos().div_ceil(WINDOW.as_nanos()).max(1);
        Self { target, skipped, current: 0, received: Bytes::ZERO, reached: 0 }
    }

    /// The receiving application got `amount` at `since_start` after the flow's start.
    pub fn on_received(&mut self, since_start: Duration, amount: Bytes) {
        self.close_until(since_start.as_nanos() / WINDOW.as_nanos());
        self.received += amount;
    }

    /// The share, with the flow at an end `since_start` after its start; `None` where no window
    /// counts.
    pub fn finish(mut self, since_start: Duration) -> Option<f64> {
        let windows = since_start.as_nanos() / WINDOW.as_nanos();
        self.close_until(windows);
        let counted = windows.checked_sub(self.skipped).filter(|counted| *counted > 0)?;
        Some(self.reached as f64 / counted as f64)
    }

    fn close_until(&mut self, window: u64) {
        if window <= self.current {
            return;
        }
        let reached = Rate::of(self.received, WINDOW) >= self.target;
        self.reached += u64::from(reached && self.current >= self.skipped);
        if self.target == Rate::ZERO {
            self.reached += window - (self.current + 1).max(self.skipped).min(window);
        }
        self.current = window;
        self.received = Bytes::ZERO;
    }
}
