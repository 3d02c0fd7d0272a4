//! Established connections are put on another congestion control algorithm.

use crate::Error;
use crate::tcp::not_yet;

/// What [`move_connections`] did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MoveReport {
    /// Sockets that use the new algorithm now.
    pub moved: u32,
    /// Sockets that refused it.
    pub failed: u32,
}

/// Moves the TCP sockets of the calling thread's network namespace whose algorithm is one of
/// `from` (empty: any other) to the algorithm `to`; with `ifindex` only those routed over that
/// interface.
///
/// # Errors
///
/// Where a privilege or feature is missing.
pub fn move_connections(
    from: &[&str],
    to: &str,
    ifindex: Option<u32>,
) -> Result<MoveReport, Error> {
    let _ = (from, to, ifindex);
    Err(not_yet("move connections"))
}
