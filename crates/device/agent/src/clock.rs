//! The real clock. The crates that the agent uses take `now` as a parameter.

use nix::time::ClockId;
use wakeai_host::read_clock;
use wakeai_units::{Duration, Instant};

/// The time since boot (`CLOCK_BOOTTIME`). It includes the time in suspend, so information from
/// before a suspend counts as old afterwards.
pub(crate) fn now() -> Instant {
    wakeai_host::since_boot()
}

/// The Unix time at the epoch of [`now`].
pub(crate) fn unix_at_epoch() -> Duration {
    read_clock(ClockId::CLOCK_REALTIME).saturating_since(now())
}
