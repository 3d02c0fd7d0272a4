//! The clocks of the drivers.

use nix::time::{ClockId, clock_gettime};
use wakeai_units::{Duration, Instant};

/// `CLOCK_MONOTONIC`, which decides when something is due.
pub(crate) fn now() -> Instant {
    read(ClockId::CLOCK_MONOTONIC)
}

/// The longest time that a datagram waits in a socket. A time stamp that is older, or in the future, was made before the
/// wall clock was set.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// The time by `CLOCK_MONOTONIC` of a recent time stamp of the kernel, which is by `CLOCK_REALTIME`.
pub(crate) fn monotonic(stamp: Instant) -> Instant {
    before(now(), read(ClockId::CLOCK_REALTIME), stamp)
}

/// The monotonic time of `stamp`, where the clocks show `now` and `wall`; `now` where the wall clock was set in between.
fn before(now: Instant, wall: Instant, stamp: Instant) -> Instant {
    let age = wall.checked_since(stamp).filter(|age| *age <= LONGEST_WAIT);
    Instant::from_nanos(now.as_nanos().saturating_sub(age.unwrap_or_default().as_nanos()))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wall_clock_that_is_set_moves_no_arrival_by_more_than_its_wait() {
        let seconds = |seconds: u64| Instant::from_nanos(seconds * 1_000_000_000);
        let (now, wall) = (seconds(100), seconds(1_000_000));
        assert_eq!(before(now, wall, seconds(999_998)), seconds(98));
        let days = 2 * 24 * 3600;
        assert_eq!(before(now, seconds(1_000_000 + days), seconds(999_998)), now);
        assert_eq!(before(now, seconds(1_000_000 - days), seconds(999_998)), now);
    }
}
