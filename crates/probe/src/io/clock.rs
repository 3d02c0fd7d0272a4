//! The clocks of the drivers.

use nix::time::{ClockId, clock_gettime};
use wakeai_units::{Duration, Instant};

/// `CLOCK_MONOTONIC`, which decides when something is due.
pub(crate) fn now() -> Instant {
    read(ClockId::CLOCK_MONOTONIC)
}

/// `CLOCK_REALTIME`, which the kernel uses for the time stamps of datagrams.
pub(crate) fn stamp() -> Instant {
    read(ClockId::CLOCK_REALTIME)
}

fn read(clock: ClockId) -> Instant {
    let time = clock_gettime(clock).expect("every Linux has both clocks");
    instant(&time)
}

/// Converts a time of the kernel.
pub(crate) fn instant(time: &nix::sys::time::TimeSpec) -> Instant {
    let (seconds, nanos) = (time.tv_sec().max(0), time.tv_nsec().max(0));
    Instant::from_nanos(seconds.cast_unsigned() * 1_000_000_000 + nanos.cast_unsigned())
}

/// Waits until `due`, and returns the time then.
pub(crate) fn sleep_until(due: Instant) -> Instant {
    let before = now();
    let wait = due.saturating_since(before);
    if wait <= Duration::from_micros(20) {
        return before; // a sleep would take longer
    }
    std::thread::sleep(wait.into());
    now()
}
