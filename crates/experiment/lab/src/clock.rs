//! The lab's clock.

use nix::time::ClockId;
use wakeai_host::read_clock;
use wakeai_units::{Duration, Instant};

/// The time of `CLOCK_MONOTONIC`, which the network, the flows and the monitor's timestamps use.
pub(crate) fn now() -> Instant {
    read_clock(ClockId::CLOCK_MONOTONIC)
}

/// Sleeps until `at`; returns at once if `at` has passed.
pub(crate) fn sleep_until(at: Instant) {
    sleep(at.saturating_since(now()));
}

/// Sleeps for `span`.
pub(crate) fn sleep(span: Duration) {
    std::thread::sleep(span.into());
}
