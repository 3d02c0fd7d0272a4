//! The bounds that our algorithms obey.

use libbpf_rs::{MapCore, MapFlags, MapHandle};
use wakeai_connection::SocketBounds;
use wakeai_units::Duration;

use crate::error::Error;
use crate::features::BOUND;
use crate::libbpf::explain;
use crate::raw::{BoundsValue, InterfaceKey, Plain};
use crate::registration;

/// How long bounds bind after the last [`Control::heartbeat`].
pub const STALE_AFTER: Duration = Duration::from_millis(1500);

/// A handle on the registration of our algorithms and their bounds, which every agent of the
/// machine shares. Dropping it changes nothing: they stay for the others until
/// [`Control::unload`].
///
/// A socket is bound while the interface that it is routed over has a fresh heartbeat: by its own
/// bounds if it has some, else by those of the interface.
#[derive(Debug)]
pub struct Control {
    socket_bounds: MapHandle,
    interface_bounds: MapHandle,
    heartbeats: MapHandle,
    socket_targets: MapHandle,
}

impl Control {
    /// The name of what stands in for CUBIC; all are in [`Bounded::ALL`](crate::Bounded::ALL).
    pub const ALGORITHM: &'static str = "wakeai_cubic";

    /// Finds what another agent has registered and pinned, else loads, registers and pins it.
    /// Whatever a process that died left half-done is removed before.
    ///
    /// Needs `CAP_BPF`, `CAP_PERFMON`, `CAP_NET_ADMIN`, and `CAP_SYS_ADMIN` where it has to mount
    /// the bpffs; using the handle needs none.
    ///
    /// # Errors
    ///
    /// Where a privilege or feature is missing.
    pub fn open() -> Result<Self, Error> {
        let [socket_bounds, interface_bounds, heartbeats, socket_targets] = registration::open()?;
        Ok(Self { socket_bounds, interface_bounds, heartbeats, socket_targets })
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
        let key = interface(netns_cookie, ifindex);
        put(&self.interface_bounds, key.as_bytes(), BoundsValue::from(bounds).as_bytes())
    }

    /// Takes the interface's bounds and heartbeat away: nothing over it is bound any more.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses; that there was nothing is no error.
    pub fn clear_interface(&self, netns_cookie: u64, ifindex: u32) -> Result<(), Error> {
        let key = interface(netns_cookie, ifindex);
        take(&self.heartbeats, key.as_bytes())?;
        take(&self.interface_bounds, key.as_bytes())
    }

    /// Sets one socket's own bounds. The kernel forgets them when the socket closes or moves to
    /// another algorithm.
    ///
    /// # Errors
    ///
    /// Where the map is full.
    pub fn set_socket(&self, cookie: u64, bounds: SocketBounds) -> Result<(), Error> {
        put(&self.socket_bounds, &cookie.to_ne_bytes(), BoundsValue::from(bounds).as_bytes())
    }

    /// Takes a socket's own bounds away: those of its interface bind again.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses; that there was nothing is no error.
    pub fn clear_socket(&self, cookie: u64) -> Result<(), Error> {
        take(&self.socket_bounds, &cookie.to_ne_bytes())
    }

    /// Sets the target of a socket that runs `wakeai_av`, in payload bytes per second; 0: none. It
    /// may change at any time, and needs no heartbeat. The kernel forgets it when the socket has
    /// closed, everything under way sent, or moves to another algorithm.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses.
    pub fn set_target(&self, cookie: u64, bytes_per_second: u64) -> Result<(), Error> {
        put(&self.socket_targets, &cookie.to_ne_bytes(), &bytes_per_second.to_ne_bytes())
    }

    /// Says that the agent of this interface lives: bounds bind for [`STALE_AFTER`] from now.
    ///
    /// # Errors
    ///
    /// Where the map is full.
    pub fn heartbeat(&self, netns_cookie: u64, ifindex: u32) -> Result<(), Error> {
        let now = monotonic_ns().map_err(|error| Error::refused("read the clock", error))?;
        put(&self.heartbeats, interface(netns_cookie, ifindex).as_bytes(), &now.to_ne_bytes())
    }

    /// Removes the registration, its pins and whatever an agent that died left of them: in every
    /// network namespace, sysctls that name a `wakeai_` algorithm and connections that use one go
    /// to CUBIC. Says whether there was anything. Only for when no other agent lives.
    ///
    /// Needs `CAP_SYS_ADMIN` besides what [`Control::open`] needs, to enter the namespaces.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses.
    pub fn unload() -> Result<bool, Error> {
        registration::unload()
    }
}

impl From<SocketBounds> for BoundsValue {
    fn from(bounds: SocketBounds) -> Self {
        Self {
            floor: bounds.floor,
            ceiling: bounds.ceiling,
            pacing: bounds.pacing_bytes_per_second,
            small_queue: bounds.small_queue_bytes,
        }
    }
}

fn interface(netns_cookie: u64, ifindex: u32) -> InterfaceKey {
    InterfaceKey { netns_cookie, ifindex, zero: 0 }
}

/// The clock that the kernel compares a heartbeat with (`bpf_ktime_get_ns`).
fn monotonic_ns() -> nix::Result<u64> {
    let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC)?;
    Ok(now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64)
}

fn put(map: &MapHandle, key: &[u8], value: &[u8]) -> Result<(), Error> {
    map.update(key, value, MapFlags::ANY).map_err(|error| explain("write a bound", BOUND, error))
}

fn take(map: &MapHandle, key: &[u8]) -> Result<(), Error> {
    match map.delete(key) {
        Err(error) if error.kind() != libbpf_rs::ErrorKind::NotFound => {
            Err(explain("clear a bound", BOUND, error))
        }
        _ => Ok(()),
    }
}
