//! The time by which uploads expire.
//!
//! It counts while the machine is on, in suspend too (`CLOCK_BOOTTIME`), also while no server runs. The wall clock has no
//! part in it: that one steps when it is set, and then uploads would expire too early or never. A machine that boots
//! begins a new `CLOCK_BOOTTIME`, so the journal keeps readings, each with the boot that it belongs to. After a boot the time
//! goes on from what is known of the one before. The time in which the machine was off does not count.

use std::time::{Duration, SystemTime};

use nix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// The kernel's random name of this boot (random(4)).
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// What the clocks showed at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ClockReading {
    /// The boot. It is empty where the kernel does not tell it, and then the next start counts as another boot.
    boot: String,
    /// `CLOCK_BOOTTIME`, milliseconds.
    boottime_ms: u64,
    /// The time of the directory, milliseconds since its first use.
    elapsed_ms: u64,
}

/// The time of a directory. It never goes back.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    start: ClockReading,
}

impl Clock {
    /// Goes on from the last reading. `latest_ms` is the latest time that the journal has of an upload, which may be later
    /// than that reading.
    pub(crate) fn resume(last: Option<&ClockReading>, latest_ms: u64) -> Self {
        let boot = std::fs::read_to_string(BOOT_ID).unwrap_or_default();
        Self::resume_at(last, latest_ms, boot.trim(), boottime_ms())
    }

    fn resume_at(
        last: Option<&ClockReading>,
        latest_ms: u64,
        boot: &str,
        boottime_ms: u64,
    ) -> Self {
        let known = last.map_or(0, |last| {
            let same = !boot.is_empty() && last.boot == boot;
            let since = if same { boottime_ms.saturating_sub(last.boottime_ms) } else { 0 };
            last.elapsed_ms.saturating_add(since)
        });
        let elapsed_ms = known.max(latest_ms);
        Self { start: ClockReading { boot: boot.to_owned(), boottime_ms, elapsed_ms } }
    }

    /// Milliseconds since the first use of the directory.
    pub(crate) fn now_ms(&self) -> u64 {
        self.at(boottime_ms())
    }

    fn at(&self, boottime_ms: u64) -> u64 {
        self.start.elapsed_ms.saturating_add(boottime_ms.saturating_sub(self.start.boottime_ms))
    }

    /// What the clocks show now.
    pub(crate) fn read(&self) -> ClockReading {
        let boottime_ms = boottime_ms();
        ClockReading {
            boot: self.start.boot.clone(),
            boottime_ms,
            elapsed_ms: self.at(boottime_ms),
        }
    }
}

fn boottime_ms() -> u64 {
    let time = clock_gettime(ClockId::CLOCK_BOOTTIME).expect("Linux has it since 2.6.39");
    u64::try_from(Duration::from(time).as_millis()).unwrap_or(u64::MAX)
}

/// The wall clock's time `ahead_ms` from now, for a person or another machine: seconds since 1970.
pub(crate) fn wall_seconds(ahead_ms: u64) -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    now.saturating_add(Duration::from_millis(ahead_ms)).as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(boot: &str, boottime_ms: u64, elapsed_ms: u64) -> ClockReading {
        ClockReading { boot: boot.to_owned(), boottime_ms, elapsed_ms }
    }

    #[test]
    fn the_time_goes_on_within_a_boot_also_while_no_server_runs() {
        let last = reading("a", 5_000, 700);
        let clock = Clock::resume_at(Some(&last), 0, "a", 9_000);
        assert_eq!(clock.at(9_000), 4_700);
        assert_eq!(clock.at(9_500), 5_200);
    }

    #[test]
    fn after_a_boot_the_time_goes_on_from_what_is_known() {
        let last = reading("a", 5_000, 700);
        let clock = Clock::resume_at(Some(&last), 0, "b", 90_000);
        assert_eq!(clock.at(90_000), 700);
        assert_eq!(clock.at(91_000), 1_700);
        // An upload's time may be later than the last reading.
        assert_eq!(Clock::resume_at(Some(&last), 950, "b", 20).at(20), 950);
        // Without a name of the boot, nothing says that it is the same one.
        let unknown = reading("", 5_000, 700);
        assert_eq!(Clock::resume_at(Some(&unknown), 0, "", 9_000).at(9_000), 700);
    }

    #[test]
    fn a_boot_time_that_goes_back_does_not_turn_the_time_back() {
        let last = reading("a", 5_000, 700);
        let clock = Clock::resume_at(Some(&last), 0, "a", 1_000); // another time namespace
        assert_eq!(clock.at(1_000), 700);
        assert_eq!(clock.at(0), 700);
    }

    #[test]
    fn a_directory_begins_at_zero() {
        assert_eq!(Clock::resume_at(None, 0, "a", 9_000).at(9_000), 0);
    }
}
