//! The registration of our algorithms in this machine's kernel. The first agent makes it. The other
//! agents find it by its pins, which are names in the BPF file system. The last agent removes it.

mod held;
mod load;
mod vacate;

use std::fs::File;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use libbpf_rs::query::{LinkInfoIter, LinkTypeInfo, MapInfoIter};
use libbpf_rs::{Link, MapCore, MapFlags, MapHandle, MapType};

use self::vacate::vacate;
use crate::bounded::{Bounded, is_available};
use crate::error::Error;
use crate::features::{self, BOUND, explain};
use crate::place;
use crate::raw::{BoundsValue, InterfaceKey};
use crate::skeleton::quiet;
use crate::windows::Windows;

/// The pins of the maps that the algorithms share.
const SOCKETS: &str = "socket_bounds";
const INTERFACES: &str = "interface_bounds";
const HEARTBEATS: &str = "heartbeats";
pub(crate) const TARGETS: &str = "socket_targets";
/// The pin of the map of moved connections (see `assign`). It exists while a process uses the
/// shared maps, even if no algorithm is registered.
pub(crate) const MOVED: &str = "moved_sockets";
/// The pin of the program that bounds receive windows.
pub(crate) const WINDOWS: &str = "bound_windows";
/// The name, as a pin and in the kernel, of the map that makes connections change their algorithm.
const RETIRED: &str = "wakeai_retired";

/// The prefix of all registered names.
const PREFIX: &str = "wakeai_";

const LOAD: &str = "register the congestion controls wakeai_*";
const UNLOAD: &str = "remove the congestion controls wakeai_*";
const ELSEWHERE: &str = "they are registered from outside this container, or from inside a container. The \
     /sys/fs/bpf and /run/wakeai there are not visible here: run the command there. Under `ip netns exec`, which \
     mounts a /sys of its own, enter the network namespace alone: `nsenter --net=/run/netns/NAME wakeai ...`";

pub(crate) fn open() -> Result<([MapHandle; 4], Option<Windows>), Error> {
    quiet();
    place::in_machine_mounts(|| {
        let _lock = place::lock().map_err(|error| Error::from_io(LOAD, error))?;
        place::check_pins().map_err(|error| Error::from_io(LOAD, error))?;
        if is_complete() {
            place::keep();
            return Ok((pinned_maps()?, Windows::open()?));
        }
        if let Some(missing) = features::detect().why_not(LOAD, BOUND) {
            return Err(missing);
        }
        remove_but_moved()?;
        if is_registered_elsewhere() {
            return Err(Error::refused(LOAD, ELSEWHERE));
        }
        place::prepare().map_err(|error| Error::from_io(LOAD, error))?;
        place::keep();
        load::register().inspect_err(|_| drop(remove_but_moved()))?;
        Ok((pinned_maps()?, Windows::open()?))
    })
}

/// The program that bounds receive windows. `None` where there is none.
pub(crate) fn open_windows() -> Result<Option<Windows>, Error> {
    place::in_machine_mounts(Windows::open)
}

/// The maps of the bounds and of the heartbeats, without holding the registration. `None` where nothing is registered.
pub(crate) fn open_to_read() -> Result<Option<[MapHandle; 4]>, Error> {
    quiet();
    place::in_machine_mounts(|| {
        if !place::pin(HEARTBEATS).exists() {
            return Ok(None);
        }
        pinned_maps().map(Some)
    })
}

pub(crate) fn unload() -> Result<bool, Error> {
    quiet();
    place::in_machine_mounts(|| {
        let _lock = place::lock().map_err(|error| Error::from_io(UNLOAD, error))?;
        let found = remove()?;
        Ok(found | place::clear().map_err(|error| Error::from_io(UNLOAD, error))?)
    })
}

/// Removes every registration and its pins. Removes the map of moved connections only if no process
/// uses it.
fn remove_but_moved() -> Result<(), Error> {
    remove()?;
    let is_needed = place::pin(MOVED).exists();
    let cleared = if is_needed { place::clear_but(MOVED) } else { place::clear() };
    cleared.map(drop).map_err(|error| Error::from_io(UNLOAD, error))
}

fn pinned_maps() -> Result<[MapHandle; 4], Error> {
    let (key, bounds) = (size_of::<InterfaceKey>(), size_of::<BoundsValue>());
    Ok([
        pinned_map(SOCKETS, size_of::<u64>(), bounds)?,
        pinned_map(INTERFACES, key, bounds)?,
        pinned_map(HEARTBEATS, key, size_of::<u64>())?,
        pinned_map(TARGETS, size_of::<u64>(), size_of::<u64>())?,
    ])
}

fn pinned_map(name: &str, key_bytes: usize, value_bytes: usize) -> Result<MapHandle, Error> {
    let map = MapHandle::from_pinned_path(place::pin(name))
        .map_err(|error| explain(LOAD, BOUND, error))?;
    if (map.key_size() as usize, map.value_size() as usize) == (key_bytes, value_bytes) {
        return Ok(map);
    }
    let found = format!(
        "another version of Wakeai has registered it (its map {name} has entries of {} + {} bytes, \
         {key_bytes} + {value_bytes} were expected); stop its agents first",
        map.key_size(),
        map.value_size(),
    );
    Err(Error::refused(LOAD, found))
}

/// Opens the pin of the interfaces' bounds. It is removed together with the registration, so it
/// shows whether the registration still exists.
pub(crate) fn open_pin() -> std::io::Result<File> {
    File::options().read(true).custom_flags(libc::O_PATH).open(place::pin(INTERFACES))
}

/// Whether all algorithms are available to sockets.
pub(crate) fn are_available() -> bool {
    Bounded::ALL.iter().all(|bounded| is_available(bounded.name))
}

/// The existing pins of algorithms. A pin keeps its algorithm registered.
fn pinned_algorithms() -> impl Iterator<Item = PathBuf> {
    Bounded::ALL.into_iter().map(|bounded| place::pin(bounded.name)).filter(|pin| pin.exists())
}

/// Whether all algorithms are registered. A missing pin means that a registration was interrupted, or made
/// by an older version.
fn is_complete() -> bool {
    let has_windows = place::pin(WINDOWS).exists() || !features::receive_windows();
    has_windows && pinned_algorithms().count() == Bounded::ALL.len()
}

/// Removes every registration, but not the other pins. Defaults and connections are first moved to
/// other algorithms. Otherwise a namespace whose default is one of our algorithms would still give
/// it to new connections, and every connection would keep it loaded.
fn remove() -> Result<bool, Error> {
    // An agent has given up CAP_SYS_ADMIN, which finding maps by name needs. So it looks for the
    // pins.
    let is_pinned = pinned_algorithms().next().is_some();
    if !is_pinned && is_registered_elsewhere() {
        tracing::debug!("a registration whose pins are not seen here is left alone");
        return Ok(false);
    }
    let mut found = is_pinned;
    if is_pinned || !registered_maps().is_empty() {
        vacate();
        unregister()?;
        retire();
        // Without a pin another process may already have unregistered the algorithms. Then a
        // shorter time is enough.
        found |= wait_until_gone(if is_pinned { 5000 } else { 1500 });
    }
    Ok(found)
}

/// The ids of the `struct_ops` maps of our algorithms. A map exists while its algorithm is
/// registered or a connection uses it.
fn registered_maps() -> Vec<u32> {
    MapInfoIter::default()
        .filter(|map| map.ty == MapType::StructOps)
        .filter(|map| map.name.as_encoded_bytes().starts_with(PREFIX.as_bytes()))
        .map(|map| map.id)
        .collect()
}

/// Whether another container holds a registration whose pins are not visible here. Algorithms are
/// registered for the whole machine, while pins and leases belong to a container. Without links
/// only the initial PID namespace can find this out. It sees every process, so there a registration
/// without a pin belongs to no process.
fn is_registered_elsewhere() -> bool {
    let registered = registered_maps();
    if registered.is_empty() {
        return false;
    }
    if !features::detect().struct_ops_link {
        return !place::in_first_pid_namespace();
    }
    LinkInfoIter::default().any(|link| match link.info {
        LinkTypeInfo::StructOps(of) => registered.contains(&of.map_id),
        _ => false,
    })
}

fn unregister() -> Result<(), Error> {
    if features::detect().struct_ops_link {
        // Only pinned links have to be removed, because a link without a pin died with its owner.
        return pinned_algorithms().try_for_each(|pin| unpin_link(&pin));
    }
    let pinned = pinned_algorithms().filter_map(|pin| MapHandle::from_pinned_path(pin).ok());
    let by_name = registered_maps().into_iter().filter_map(|id| MapHandle::from_map_id(id).ok());
    for map in pinned.chain(by_name) {
        // An error means that the algorithm is already unregistered. Then only connections keep it
        // loaded.
        if let Err(error) = map.delete(&0_u32.to_ne_bytes()) {
            tracing::debug!(%error, "struct_ops map not unregistered");
        }
    }
    // The pins are removed, too, because a pin would keep its map, and `wait_until_gone` waits
    // until all maps are freed.
    pinned_algorithms().try_for_each(|pin| {
        std::fs::remove_file(pin).map_err(|error| Error::from_io(UNLOAD, error))
    })
}

/// Makes the connections that no iterator shows change their algorithm. This comes after the
/// algorithms are unregistered, because until then new connections could get them.
fn retire() {
    let pinned = MapHandle::from_pinned_path(place::pin(RETIRED)).ok();
    let by_name = MapInfoIter::default()
        .filter(|map| map.name == RETIRED)
        .filter_map(|map| MapHandle::from_map_id(map.id).ok());
    for map in pinned.into_iter().chain(by_name) {
        let (key, yes) = (0_u32.to_ne_bytes(), 1_u32.to_ne_bytes());
        if let Err(error) = map.update(&key, &yes, MapFlags::ANY) {
            tracing::debug!(%error, "connections are not made to change their algorithm");
        }
    }
}

fn unpin_link(path: &Path) -> Result<(), Error> {
    let link = Link::open(path).map_err(|error| explain(UNLOAD, BOUND, error))?;
    // Kernels before 6.11 cannot detach a link. There the link ends with its last reference.
    if let Err(error) = link.detach() {
        tracing::debug!(%error, "struct_ops link not detached");
    }
    std::fs::remove_file(path).map_err(|error| Error::from_io(UNLOAD, error))
}

/// The number of rounds of [`wait_until_gone`] between two searches for connections that can be
/// moved, and the number of rounds before the first search. Usually no search is needed.
const ROUNDS_PER_LOOK: u32 = 50;
const SOON: u32 = 10;

/// Waits until the kernel has freed the `struct_ops` maps of our algorithms, which takes an RCU
/// grace period. A connection that was accepted while the others were moved is moved in a later
/// round, and so is a socket that exists only as an open file. A connection that was closed with
/// data in flight, in a namespace that cannot be entered, changes its algorithm at its next
/// retransmission. Returns whether all maps are freed.
fn wait_until_gone(patience_ms: u64) -> bool {
    let give_up = Instant::now() + Duration::from_millis(patience_ms);
    let mut rounds = 0_u32;
    while !registered_maps().is_empty() {
        if Instant::now() > give_up {
            tracing::warn!(
                "connections that were closed with data in flight, in a network namespace without a \
                 name or a process, keep the algorithms of Wakeai loaded until they send again"
            );
            return false;
        }
        sleep(Duration::from_millis(20));
        rounds += 1;
        if rounds % ROUNDS_PER_LOOK == SOON {
            vacate();
            held::give_back();
        }
    }
    true
}
