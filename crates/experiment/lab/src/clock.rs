//! The lab's clock.

use nix::time::{ClockId, clock_gettime};
use wakeai_units::{Duration, Instant};

/// The time of `CLOCK_MONOTONIC`, which the network, the flows and the monitor's timestamps use.
pub(crate) fn now() -> Instant {
    let time = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("Linux has CLOCK_MONOTONIC");
    let (seconds, nanos) = (time.tv_sec().unsigned_abs(), time.tv_nsec().unsigned_abs());
    Instant::from_nanos(seconds * 1_000_000_000 + nanos)
}

/// Sleeps until `at`; returns at once if `at` has passed.
pub(crate) fn sleep_until(at: Instant) {
    sleep(at.saturating_since(now()));
}

/// Sleeps for `span`.
pub(crate) fn sleep(span: Duration) {
    std::thread::sleep(std::time::Duration::from_nanos(span.as_nanos()));
}
