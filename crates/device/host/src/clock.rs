//! Linux's clocks.

use nix::time::{ClockId, clock_gettime};
use wakeai_units::Instant;

/// The time since boot (`CLOCK_BOOTTIME`), for durations that a person has named, and for ages that a
/// person reads. It goes on while the machine is suspended, and nobody can set it.
pub fn since_boot() -> Instant {
    read_clock(ClockId::CLOCK_BOOTTIME)
}

/// The time of a clock since its zero. Panics where Linux has no such clock, or the clock is before its
/// zero.
pub fn read_clock(clock: ClockId) -> Instant {
    let time = clock_gettime(clock).expect("Linux has the clock");
    let parts = u64::try_from(time.tv_sec()).ok().zip(u64::try_from(time.tv_nsec()).ok());
    let (seconds, nanos) = parts.expect("the clock is past its zero");
    Instant::from_nanos(seconds * 1_000_000_000 + nanos)
}
