//! The bounds that are in force, for those who watch.

use std::collections::HashMap;

use libbpf_rs::{MapCore as _, MapFlags, MapHandle};
use wakeai_connection::SocketBounds;
use zerocopy::{FromBytes as _, IntoBytes as _};

use crate::bounded::STALE_AFTER;
use crate::control::{interface, monotonic_ns};
use crate::error::Error;
use crate::features::{BOUND, explain};
use crate::raw::{BoundsValue, InterfaceKey};
use crate::registration;

const ASKED: &str = "read the bounds in force";

/// The bounds of all agents of the machine as they were when [`AppliedBounds::read`] was called.
#[derive(Debug)]
pub struct AppliedBounds {
    socket_bounds: MapHandle,
    /// For each interface whose agent is alive, the bounds of the sockets that have none of their
    /// own. `None` stands for an interface without such bounds.
    interfaces: HashMap<(u64, u32), Option<SocketBounds>>,
}

impl AppliedBounds {
    /// Finds the registration and the interfaces whose agents are alive. `None` where nothing is registered, or no
    /// agent is alive: then no bounds are in force.
    ///
    /// # Errors
    ///
    /// A privilege is missing, or another version of Wakeai has registered the algorithms.
    pub fn read() -> Result<Option<Self>, Error> {
        let Some([socket_bounds, interface_bounds, heartbeats]) = registration::open_to_read()?
        else {
            return Ok(None);
        };
        let now = monotonic_ns().map_err(|error| Error::refused("read the clock", error))?;
        let mut interfaces = HashMap::new();
        for key in heartbeats.keys() {
            let Ok(found) = InterfaceKey::read_from_bytes(&key) else { continue };
            let (netns_cookie, ifindex) = (found.netns_cookie, found.ifindex);
            let Some(beat) = lookup(&heartbeats, &key)? else { continue };
            let beat = beat.first_chunk().copied().map_or(0, u64::from_ne_bytes);
            // As in `bounded.h`: neither a stale heartbeat nor one from the future counts.
            if now.abs_diff(beat) > STALE_AFTER.as_nanos() {
                continue;
            }
            let key = interface(netns_cookie, ifindex);
            let bounds =
                lookup(&interface_bounds, key.as_bytes())?.and_then(|value| to_bounds(&value));
            interfaces.insert((netns_cookie, ifindex), bounds);
        }
        Ok((!interfaces.is_empty()).then_some(Self { socket_bounds, interfaces }))
    }

    /// The bounds that apply to a connection with an algorithm of ours: its own, or those of the interface over which
    /// it is routed. `None` where none apply. Without `ifindex` only its own bounds are found.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses.
    pub fn of(
        &self,
        cookie: u64,
        netns_cookie: u64,
        ifindex: Option<u32>,
    ) -> Result<Option<SocketBounds>, Error> {
        let is_alive = match ifindex {
            Some(ifindex) => self.interfaces.contains_key(&(netns_cookie, ifindex)),
            None => self.interfaces.keys().any(|(netns, _)| *netns == netns_cookie),
        };
        if !is_alive {
            return Ok(None);
        }
        let own = lookup(&self.socket_bounds, &cookie.to_ne_bytes())?;
        let own = own.and_then(|value| to_bounds(&value));
        let of_interface =
            ifindex.and_then(|ifindex| self.interfaces.get(&(netns_cookie, ifindex)));
        Ok(own.or(of_interface.copied().flatten()))
    }
}

fn lookup(map: &MapHandle, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
    map.lookup(key, MapFlags::ANY).map_err(|error| explain(ASKED, BOUND, error))
}

fn to_bounds(value: &[u8]) -> Option<SocketBounds> {
    let value = BoundsValue::read_from_bytes(value).ok()?;
    Some(SocketBounds {
        floor: value.floor,
        ceiling: value.ceiling,
        pacing_bytes_per_second: value.pacing,
        small_queue_bytes: value.small_queue,
    })
}
