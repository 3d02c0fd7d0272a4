//! The lab's clock.

pub(crate) use wakeai_air::now;
use wakeai_units::{Duration, Instant};

/// Sleeps until `at`; returns at once if `at` has passed.
pub(crate) fn sleep_until(at: Instant) {
    sleep(at.saturating_since(now()));
}

/// Sleeps for `span`.
pub(crate) fn sleep(span: Duration) {
    std::thread::sleep(span.into());
}
