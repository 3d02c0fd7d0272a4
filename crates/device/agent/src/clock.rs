//! The real clock. The crates that the agent uses take `now` as a parameter.

use nix::time::{ClockId, clock_gettime};
use wakeai_units::{Duration, Instant};

/// The time since boot (`CLOCK_BOOTTIME`). It includes the time in suspend, so information from
/// before a suspend counts as old afterwards.
pub(crate) fn now() -> Instant {
    wakeai_host::since_boot()
}

/// The Unix time at the epoch of [`now`].
pub(crate) fn unix_at_epoch() -> Duration {
    let time = clock_gettime(ClockId::CLOCK_REALTIME).expect("every Linux has it");
    let parts = u64::try_from(time.tv_sec()).ok().zip(u64::try_from(time.tv_nsec()).ok());
    let (seconds, nanos) = parts.expect("the clock is past 1970");
    Duration::from_nanos(seconds * 1_000_000_000 + nanos)
        .saturating_sub(now().saturating_since(Instant::ZERO))
}
