//! The shared registration of `wakeai_cubic`, and the bounds that it obeys.

use wakeai_units::Duration;

use crate::Error;
use crate::tcp::not_yet;

/// How long bounds bind after the last [`Control::heartbeat`].
pub const STALE_AFTER: Duration = Duration::from_millis(1500);

/// The bounds of one socket; 0 means none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SocketBounds {
    /// Segments: the window is not below this but in Loss.
    pub floor: u32,
    /// Segments: the window is not above this.
    pub ceiling: u32,
    /// Bytes per second: the socket does not send faster than this.
    pub pacing_bytes_per_second: u64,
}

impl SocketBounds {
    /// Plain behaviour.
    pub const NONE: Self = Self { floor: 0, ceiling: 0, pacing_bytes_per_second: 0 };
}

/// A handle on the registration and its bounds. Dropping it changes nothing: they stay for the
/// other agents until [`Control::unload`].
#[derive(Debug)]
pub struct Control(());

impl Control {
    /// The algorithm's name, as `tcp_congestion_control` and `TCP_CONGESTION` take it.
    pub const ALGORITHM: &'static str = "wakeai_cubic";

    /// Finds what another agent has registered and pinned, else loads, registers and pins it.
    ///
    /// # Errors
    ///
    /// Where a privilege or feature is missing.
    pub fn open() -> Result<Self, Error> {
        Err(not_yet("register wakeai_cubic"))
    }

    /// Sets the bounds of every socket that is routed over the interface and has none of its own.
    ///
    /// # Errors
    ///
    /// Where the map is full.
    pub fn set_interface(
        &self,
        netns_cookie: u64,
        ifindex: u32,
        bounds: SocketBounds,
    ) -> Result<(), Error> {
        let _ = (netns_cookie, ifindex, bounds);
        Err(not_yet("set the bounds of an interface"))
    }

    /// Takes the interface's bounds and heartbeat away: nothing over it is bound any more.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses; that there was nothing is no error.
    pub fn clear_interface(&self, netns_cookie: u64, ifindex: u32) -> Result<(), Error> {
        let _ = (netns_cookie, ifindex);
        Err(not_yet("clear the bounds of an interface"))
    }

    /// Sets one socket's own bounds. They bind while the heartbeat of the interface that it is
    /// routed over is fresh.
    ///
    /// # Errors
    ///
    /// Where the map is full.
    pub fn set_socket(&self, cookie: u64, bounds: SocketBounds) -> Result<(), Error> {
        let _ = (cookie, bounds);
        Err(not_yet("set the bounds of a socket"))
    }

    /// Takes a socket's own bounds away: those of its interface bind again.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses; that there was nothing is no error.
    pub fn clear_socket(&self, cookie: u64) -> Result<(), Error> {
        let _ = cookie;
        Err(not_yet("clear the bounds of a socket"))
    }

    /// Says that the agent of this interface lives: bounds bind for [`STALE_AFTER`] from now.
    ///
    /// # Errors
    ///
    /// Where the map is full.
    pub fn heartbeat(&self, netns_cookie: u64, ifindex: u32) -> Result<(), Error> {
        let _ = (netns_cookie, ifindex);
        Err(not_yet("write a heartbeat"))
    }

    /// Removes the registration, its pins and whatever an agent that died left of them: in every
    /// network namespace, sysctls that name a `wakeai_` algorithm and connections that use one go
    /// to CUBIC. Says whether there was anything. Only for when no other agent lives.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses.
    pub fn unload() -> Result<bool, Error> {
        Ok(false)
    }
}
