//! The bounds that are in force, for those who watch.

use std::collections::HashMap;

use libbpf_rs::MapHandle;
use wakeai_connection::Bounds;
use wakeai_units::Segments;
use zerocopy::{FromBytes as _, IntoBytes as _};

use crate::control::{heartbeats, lookup};
use crate::error::Error;
use crate::raw::BoundsValue;
use crate::registration;

const ASKED: &str = "read the bounds in force";

/// The bounds of all agents of the machine as they were when [`AppliedBounds::read`] was called.
#[derive(Debug)]
pub struct AppliedBounds {
    socket_bounds: MapHandle,
    /// For each interface whose agent is alive, the bounds of the sockets that have none of their
    /// own. `None` stands for an interface without such bounds.
    interfaces: HashMap<(u64, u32), Option<Bounds>>,
}

impl AppliedBounds {
    /// Finds the registration and the interfaces whose agents are alive. `None` where nothing is registered, or no
    /// agent is alive: then no bounds are in force.
    ///
    /// # Errors
    ///
    /// A privilege is missing, or another version of Wakeai has registered the algorithms.
    pub fn read() -> Result<Option<Self>, Error> {
        let Some([socket_bounds, interface_bounds, beats, _]) = registration::open_to_read()?
        else {
            return Ok(None);
        };
        let mut interfaces = HashMap::new();
        for (key, _) in heartbeats(&beats, ASKED)?.into_iter().filter(|(_, is_stale)| !is_stale) {
            let bounds = lookup(&interface_bounds, key.as_bytes(), ASKED)?;
            let bounds = bounds.and_then(|value| to_bounds(&value));
            interfaces.insert((key.netns_cookie, key.ifindex), bounds);
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
    ) -> Result<Option<Bounds>, Error> {
        let is_alive = match ifindex {
            Some(ifindex) => self.interfaces.contains_key(&(netns_cookie, ifindex)),
            None => self.interfaces.keys().any(|(netns, _)| *netns == netns_cookie),
        };
        if !is_alive {
            return Ok(None);
        }
        let own = lookup(&self.socket_bounds, &cookie.to_ne_bytes(), ASKED)?;
        let own = own.and_then(|value| to_bounds(&value));
        let of_interface =
            ifindex.and_then(|ifindex| self.interfaces.get(&(netns_cookie, ifindex)));
        Ok(own.or(of_interface.copied().flatten()))
    }
}

fn to_bounds(value: &[u8]) -> Option<Bounds> {
    let BoundsValue { floor, ceiling, pacing, small_queue, receive, zero: _ } =
        BoundsValue::read_from_bytes(value).ok()?;
    let receive = if receive == 0 { Segments::MAX } else { Segments::new(receive) };
    Some(Bounds { receive, ..Bounds::from_numbers(floor, ceiling, pacing, small_queue) })
}
