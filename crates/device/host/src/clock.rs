//! The clock for durations that a person has named, and for ages that a person reads.

use nix::time::{ClockId, clock_gettime};
use wakeai_units::Instant;

/// The time since boot (`CLOCK_BOOTTIME`). It goes on while the machine is suspended, and nobody can
/// set it.
pub fn since_boot() -> Instant {
    let time = clock_gettime(ClockId::CLOCK_BOOTTIME).expect("Linux has it since 2.6.39");
    let parts = u64::try_from(time.tv_sec()).ok().zip(u64::try_from(time.tv_nsec()).ok());
    let (seconds, nanos) = parts.expect("a boot is never in the future");
    Instant::from_nanos(seconds * 1_000_000_000 + nanos)
}
