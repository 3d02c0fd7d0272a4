//! The algorithms that obey bounds: whether one can be used here, and the age at which bounds count as expired.

pub use wakeai_connection::{Bounded, HOLDS_A_RATE};
use wakeai_units::Duration;

/// The time after the last [`Control::heartbeat`](crate::Control::heartbeat) at which bounds expire.
pub const STALE_AFTER: Duration = Duration::from_millis(1500);

/// Whether the kernel has the algorithm `name` now.
pub(crate) fn is_available(name: &str) -> bool {
    let available = wakeai_host::read_sysctl("net.ipv4.tcp_available_congestion_control");
    available.is_ok_and(|names| names.split(' ').any(|found| found == name))
}
