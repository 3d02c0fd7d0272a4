//! Writes bounds into the maps of the registered algorithms: those of an interface, of a socket, targets and the
//! heartbeat. Bounds the receive windows of connections.

use std::fs::File;
use std::os::unix::fs::MetadataExt as _;

use libbpf_rs::{MapCore, MapFlags, MapHandle};
use wakeai_connection::Bounds;
use wakeai_units::Segments;
use zerocopy::{FromBytes as _, IntoBytes as _};

use crate::bounded::STALE_AFTER;
use crate::error::Error;
use crate::features::{BOUND, explain};
use crate::raw::{BoundsValue, InterfaceKey};
use crate::registration;
use crate::windows::{WindowReport, Windows};

/// A handle on the registration of our algorithms and their bounds, which all agents of the machine share. They stay
/// registered when it is dropped, until [`Control::unload`].
///
/// Bounds apply to a socket while the interface over which it is routed has a fresh heartbeat. They are the socket's
/// own bounds, or those of the interface where the socket has none.
#[derive(Debug)]
pub struct Control {
    socket_bounds: MapHandle,
    interface_bounds: MapHandle,
    heartbeats: MapHandle,
    socket_targets: MapHandle,
    /// `None` on a kernel that cannot bound receive windows.
    windows: Option<Windows>,
    /// The pin of `interface_bounds`, where it is watched.
    pin: Option<File>,
}

impl Control {
    /// Opens the registration that another agent has pinned. Where there is none, it removes an incomplete
    /// registration, and loads, registers and pins the algorithms.
    ///
    /// Needs `CAP_BPF`, `CAP_PERFMON`, `CAP_NET_ADMIN`, and `CAP_SYS_ADMIN` where it has to mount
    /// the bpffs; using the handle needs none.
    ///
    /// # Errors
    ///
    /// Where a privilege or feature is missing.
    pub fn open() -> Result<Self, Error> {
        let (maps, windows) = registration::open()?;
        let [socket_bounds, interface_bounds, heartbeats, socket_targets] = maps;
        Ok(Self { socket_bounds, interface_bounds, heartbeats, socket_targets, windows, pin: None })
    }

    /// Watches the registration from now on, so that [`Self::check`] notices when it was removed, also if another one
    /// was made. The open file keeps the bpffs from being unmounted.
    ///
    /// # Errors
    ///
    /// Where the pin cannot be opened.
    pub fn watch(&mut self) -> Result<(), Error> {
        let pin = registration::open_pin();
        self.pin = Some(pin.map_err(|error| Error::refused("watch the registration", error))?);
        Ok(())
    }

    /// Checks that the algorithms are still registered, with the maps of this handle. Otherwise bounds can be
    /// written, but no connection obeys them. It needs no privilege.
    ///
    /// # Errors
    ///
    /// Where the algorithms are not registered any more, or the pin was removed.
    pub fn check(&self) -> Result<(), Error> {
        let is_pinned = self.pin.as_ref().is_none_or(|pin| {
            pin.metadata().is_ok_and(|metadata| metadata.nlink() > 0) // 0: removed
        });
        if is_pinned && registration::are_available() {
            return Ok(());
        }
        Err(Error::refused(
            "bound connections",
            "the congestion controls wakeai_* of this process are not registered any more, because another version \
             of Wakeai or another program has removed them; start this agent or proxy again",
        ))
    }

    /// Checks that the algorithms are registered, by this process or another one. It needs no privilege.
    ///
    /// # Errors
    ///
    /// Where they are not.
    pub fn check_registered() -> Result<(), Error> {
        if registration::are_available() {
            return Ok(());
        }
        Err(Error::refused(
            "use the congestion controls wakeai_*",
            "they are not registered any more, because another version of Wakeai or another program has removed them",
        ))
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
        bounds: Bounds,
    ) -> Result<(), Error> {
        let key = interface(netns_cookie, ifindex);
        put(&self.interface_bounds, key.as_bytes(), BoundsValue::from(bounds).as_bytes())
    }

    /// Removes the interface's bounds and heartbeat, so that no bounds apply to its connections.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses. An absent entry is not an error.
    pub fn clear_interface(&self, netns_cookie: u64, ifindex: u32) -> Result<(), Error> {
        let key = interface(netns_cookie, ifindex);
        take(&self.heartbeats, key.as_bytes())?;
        take(&self.interface_bounds, key.as_bytes())
    }

    /// Sets one socket's own bounds. They are deleted when the socket closes or moves to
    /// another algorithm.
    ///
    /// # Errors
    ///
    /// Where the map is full.
    pub fn set_socket(&self, cookie: u64, bounds: Bounds) -> Result<(), Error> {
        put(&self.socket_bounds, &cookie.to_ne_bytes(), BoundsValue::from(bounds).as_bytes())
    }

    /// [`Self::set_socket`] for many sockets at once. After an error the others are still tried.
    ///
    /// # Errors
    ///
    /// The first error.
    pub fn set_sockets(&self, sockets: &[(u64, Bounds)]) -> Result<(), Error> {
        let count = u32::try_from(sockets.len()).expect("a machine has fewer sockets");
        if count == 0 {
            return Ok(());
        }
        let keys: Vec<u8> = sockets.iter().flat_map(|(cookie, _)| cookie.to_ne_bytes()).collect();
        let values: Vec<BoundsValue> =
            sockets.iter().map(|(_, bounds)| BoundsValue::from(*bounds)).collect();
        let (values, any) = (values.as_bytes(), MapFlags::ANY);
        if self.socket_bounds.update_batch(&keys, values, count, any, any).is_ok() {
            return Ok(());
        }
        // The kernel stops at the first one that it refuses.
        let each = sockets.iter().map(|(cookie, bounds)| self.set_socket(*cookie, *bounds));
        each.fold(Ok(()), Result::and)
    }

    /// Removes a socket's own bounds, so that those of its interface apply.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses. An absent entry is not an error.
    pub fn clear_socket(&self, cookie: u64) -> Result<(), Error> {
        take(&self.socket_bounds, &cookie.to_ne_bytes())
    }

    /// Whether this kernel bounds receive windows, and congestion windows of any algorithm.
    pub fn has_windows(&self) -> bool {
        self.windows.is_some()
    }

    /// Bounds the receive windows of the connections of the calling thread's network namespace, of every congestion
    /// control, as the bounds in force say ([`Bounds::receive`]). Puts back the windows of those that have no such bound
    /// any more. The window of a connection that is established later, with an algorithm of ours, is bounded at once.
    /// The kernel changes windows by itself when it enlarges a receive buffer, so this is called again and again.
    ///
    /// A window is at least as large as asked, at least two segments, and at most as large as the application allows.
    /// Where the kernel lacks the feature, nothing is done.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses.
    pub fn bound_windows(&self) -> Result<WindowReport, Error> {
        self.windows.as_ref().map_or(Ok(WindowReport::default()), Windows::bound)
    }

    /// Sets the target of a socket that runs `wakeai_av`, in payload bytes per second; 0: none. It
    /// may change at any time, and needs no heartbeat. It is deleted when the socket has
    /// closed and sent all its data, or moves to another algorithm.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses.
    pub fn set_target(&self, cookie: u64, bytes_per_second: u64) -> Result<(), Error> {
        put(&self.socket_targets, &cookie.to_ne_bytes(), &bytes_per_second.to_ne_bytes())
    }

    /// Records that the agent of this interface is alive: bounds apply for [`STALE_AFTER`](crate::STALE_AFTER) from now.
    ///
    /// # Errors
    ///
    /// Where the map is full.
    pub fn heartbeat(&self, netns_cookie: u64, ifindex: u32) -> Result<(), Error> {
        let now = monotonic_ns();
        put(&self.heartbeats, interface(netns_cookie, ifindex).as_bytes(), &now.to_ne_bytes())
    }

    /// A handle on the bounds of all interfaces of a namespace, for the process that supervises their agent.
    ///
    /// # Errors
    ///
    /// Where the maps' file descriptors cannot be copied.
    pub fn supervised(&self, netns_cookie: u64) -> Result<SupervisedBounds, Error> {
        let copy = |map: &MapHandle| {
            MapHandle::try_from(map).map_err(|error| explain("supervise bounds", BOUND, error))
        };
        let (bounds, heartbeats) = (copy(&self.interface_bounds)?, copy(&self.heartbeats)?);
        Ok(SupervisedBounds {
            netns_cookie,
            bounds,
            heartbeats,
            windows: registration::open_windows()?,
        })
    }

    /// Removes the registration and its pins, also those of an agent that died. In every network namespace, sysctls
    /// that name a `wakeai_` algorithm and connections that use one are moved to the kernel's own algorithm, and receive
    /// windows are put back. Returns `false` where there was no registration. Call it only while no other agent is alive.
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

/// The bounds of all interfaces of a namespace, as the process that supervises their agent sees them.
#[derive(Debug)]
pub struct SupervisedBounds {
    netns_cookie: u64,
    bounds: MapHandle,
    heartbeats: MapHandle,
    windows: Option<Windows>,
}

impl SupervisedBounds {
    /// Removes the bounds and the heartbeats of the namespace's interfaces whose heartbeat has been missing for longer than
    /// [`STALE_AFTER`](crate::STALE_AFTER). In the kernel these bounds have expired, but for receive windows, which are
    /// put back; so this is called in that namespace. Returns the interfaces' indices.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses. The next call tries again.
    pub fn take_back(&self) -> Result<Vec<u32>, Error> {
        let all = heartbeats(&self.heartbeats, "read a heartbeat")?.into_iter();
        let is_stale = |(key, is_stale): &(InterfaceKey, bool)| {
            key.netns_cookie == self.netns_cookie && *is_stale
        };
        let stale: Vec<_> = all.filter(is_stale).map(|(key, _)| key).collect();
        if let (Some(windows), false) = (&self.windows, stale.is_empty()) {
            windows.bound()?;
        }
        for key in &stale {
            take(&self.heartbeats, key.as_bytes())?;
            take(&self.bounds, key.as_bytes())?;
        }
        Ok(stale.iter().map(|key| key.ifindex).collect())
    }
}

impl From<Bounds> for BoundsValue {
    fn from(bounds: Bounds) -> Self {
        let (floor, ceiling, pacing, small_queue) = bounds.to_numbers();
        let receive = match bounds.receive {
            Segments::MAX => 0, // none
            segments => segments.get().max(1),
        };
        Self { floor, ceiling, pacing, small_queue, receive, zero: 0 }
    }
}

fn interface(netns_cookie: u64, ifindex: u32) -> InterfaceKey {
    InterfaceKey { netns_cookie, ifindex, zero: 0 }
}

/// The time by the clock with which the kernel compares a heartbeat (`bpf_ktime_get_ns`).
pub(crate) fn monotonic_ns() -> u64 {
    wakeai_host::read_clock(nix::time::ClockId::CLOCK_MONOTONIC).as_nanos()
}

/// The interfaces that have a heartbeat, and whether it is stale. As in `bounded.h`, neither a stale heartbeat nor
/// one from the future counts.
pub(crate) fn heartbeats(map: &MapHandle, asked: &str) -> Result<Vec<(InterfaceKey, bool)>, Error> {
    let now = monotonic_ns();
    let mut found = Vec::new();
    for key in map.keys() {
        let beat = lookup(map, &key, asked)?.and_then(|beat| beat.first_chunk().copied());
        if let (Ok(key), Some(beat)) = (InterfaceKey::read_from_bytes(&key), beat) {
            let is_stale = now.abs_diff(u64::from_ne_bytes(beat)) > STALE_AFTER.as_nanos();
            found.push((key, is_stale));
        }
    }
    Ok(found)
}

pub(crate) fn lookup(map: &MapHandle, key: &[u8], asked: &str) -> Result<Option<Vec<u8>>, Error> {
    map.lookup(key, MapFlags::ANY).map_err(|error| explain(asked, BOUND, error))
}

fn put(map: &MapHandle, key: &[u8], value: &[u8]) -> Result<(), Error> {
    map.update(key, value, MapFlags::ANY).map_err(|error| explain("write a bound", BOUND, error))
}

pub(crate) fn take(map: &MapHandle, key: &[u8]) -> Result<(), Error> {
    match map.delete(key) {
        Err(error) if error.kind() != libbpf_rs::ErrorKind::NotFound => {
            Err(explain("clear a bound", BOUND, error))
        }
        _ => Ok(()),
    }
}
