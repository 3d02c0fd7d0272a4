//! The real clock. The crates that the agent uses take `now` as a parameter.

use nix::time::{ClockId, clock_gettime};
use wakeai_units::{Duration, Instant};

/// The time since boot (`CLOCK_BOOTTIME`). It includes the time in suspend, so information from
/// before a suspend counts as old afterwards.
pub(crate) fn now() -> Instant {
    Instant::from_nanos(read(ClockId::CLOCK_BOOTTIME))
}

/// The Unix time at the epoch of [`now`].
pub(crate) fn unix_at_epoch() -> Duration {
    let unix = read(ClockId::CLOCK_REALTIME);
    Duration::from_nanos(unix.saturating_sub(read(ClockId::CLOCK_BOOTTIME)))
}

fn read(clock: ClockId) -> u64 {
    let time = clock_gettime(clock).expect("Linux has both clocks since 2.6.39");
    let parts = u64::try_from(time.tv_sec()).ok().zip(u64::try_from(time.tv_nsec()).ok());
    let (seconds, nanos) = parts.expect("both clocks are past 1970 and past boot");
    seconds * 1_000_000_000 + nanos
}
