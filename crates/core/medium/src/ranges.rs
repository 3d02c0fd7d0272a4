//! The ranges of the values that Wi-Fi and cellular configurations have in common.

use wakeai_units::Duration;
use wakeai_wifi::{QueueLimit, Wired};

use crate::MAX_PACKET;
use crate::error::ConfigError;

/// Longest delay on the wire.
const LONGEST_DELAY: Duration = Duration::from_secs(3_600);

/// Checks the wired leg.
pub(crate) fn wired(wired: &Wired) -> Result<(), ConfigError> {
    range("wired.rate", wired.rate.bits_per_second(), 1, u64::MAX, "1bit/s and more")?;
    limit("wired.queue", wired.queue)?;
    let losses = u64::from(wired.loss_ppm);
    range("wired.loss_ppm", losses, 0, 1_000_000, "0 to 1000000 parts per million")?;
    delay("wired.delay", wired.delay)
}

/// Checks a delay on the wire.
pub(crate) fn delay(what: &'static str, delay: Duration) -> Result<(), ConfigError> {
    let (found, most) = (delay.as_nanos(), LONGEST_DELAY.as_nanos());
    range(what, found, 0, most, "0s to 1h, in nanoseconds")
}

/// Checks the number of stations.
pub(crate) fn stations(count: usize) -> Result<(), ConfigError> {
    range("stations", count as u64, 0, 1_000_000, "0 to 1000000")
}

/// Checks the length of a queue.
pub(crate) fn packets(what: &'static str, count: usize) -> Result<(), ConfigError> {
    range(what, count as u64, 1, u64::from(u32::MAX), "1 and more packets")
}

/// Checks the limit of a queue.
pub(crate) fn limit(what: &'static str, limit: QueueLimit) -> Result<(), ConfigError> {
    match limit {
        QueueLimit::Packets(count) => packets(what, count as usize),
        QueueLimit::Bytes(bytes) => {
            let least = MAX_PACKET as u64;
            range(what, bytes.get(), least, u64::from(u32::MAX), "2296 B to 4 GB")
        }
    }
}

/// Checks that a number is from `least` to `most`; `allowed` names this range in the error.
pub(crate) fn range(
    what: &'static str,
    found: u64,
    least: u64,
    most: u64,
    allowed: &str,
) -> Result<(), ConfigError> {
    if (least..=most).contains(&found) {
        return Ok(());
    }
    Err(ConfigError::Range { what, found, allowed: allowed.to_owned() })
}
