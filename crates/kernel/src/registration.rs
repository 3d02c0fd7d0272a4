//! The one registration of `wakeai_cubic` on this machine: made by the first agent, found by the
//! others through its pins, removed by the last.

use std::mem::MaybeUninit;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use libbpf_rs::query::MapInfoIter;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{Link, MapCore, MapFlags, MapHandle, MapMut, MapType};
use wakeai_host::{Namespace, NetnsId};

use crate::connections::move_connections;
use crate::control::STALE_AFTER;
use crate::error::Error;
use crate::features::{self, BOUND, CongControl};
use crate::libbpf::{explain, quiet};
use crate::place;
use crate::raw::{BoundsValue, InterfaceKey};
use crate::skeleton::wakeai_cubic::{WakeaiCubicSkel, WakeaiCubicSkelBuilder};

const MAPS: [&str; 3] = ["socket_bounds", "interface_bounds", "heartbeats"];

/// The pin that is made last: while it is missing, a registration is half-done. It is the link
/// where the kernel has links for `struct_ops`, else the `struct_ops` map.
const REGISTERED: &str = "wakeai_cubic";

/// Every name that we register starts like this.
const PREFIX: &str = "wakeai_";

/// The pin of the variable that tells connections to leave, and its map's name in the kernel.
const RETIRED: &str = "retired";
const RETIRED_MAP: &str = "wakeai_c.bss";

const LOAD: &str = "register the congestion control wakeai_cubic";
const UNLOAD: &str = "remove the congestion control wakeai_cubic";

pub(crate) fn open() -> Result<[MapHandle; 3], Error> {
    quiet();
    place::in_machine_mounts(|| {
        let _lock = place::lock().map_err(|error| Error::from_io(LOAD, error))?;
        if place::pin(REGISTERED).exists() {
            return pinned_maps();
        }
        if let Some(missing) = features::detect().why_not(LOAD, BOUND) {
            return Err(missing);
        }
        remove()?;
        place::prepare().map_err(|error| Error::from_io(LOAD, error))?;
        register().inspect_err(|_| drop(remove()))?;
        pinned_maps()
    })
}

pub(crate) fn unload() -> Result<bool, Error> {
    quiet();
    place::in_machine_mounts(|| {
        let _lock = place::lock().map_err(|error| Error::from_io(UNLOAD, error))?;
        remove()
    })
}

fn pinned_maps() -> Result<[MapHandle; 3], Error> {
    let [sockets, interfaces, heartbeats] = MAPS;
    let (key, bounds) = (size_of::<InterfaceKey>(), size_of::<BoundsValue>());
    Ok([
        pinned_map(sockets, size_of::<u64>(), bounds)?,
        pinned_map(interfaces, key, bounds)?,
        pinned_map(heartbeats, key, size_of::<u64>())?,
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

fn register() -> Result<(), Error> {
    let mut object = MaybeUninit::uninit();
    let failed = |error| explain(LOAD, BOUND, error);
    let mut skel = load(&mut object).map_err(failed)?;
    pin(&mut skel.maps.socket_bounds, MAPS[0])?;
    pin(&mut skel.maps.interface_bounds, MAPS[1])?;
    pin(&mut skel.maps.heartbeats, MAPS[2])?;
    pin(&mut skel.maps.bss, RETIRED)?;
    let found = features::detect();
    let map = match found.cong_control {
        Some(CongControl::Short) => &mut skel.maps.wakeai_cubic_s,
        _ => &mut skel.maps.wakeai_cubic,
    };
    let mut link = map.attach_struct_ops().map_err(failed)?;
    if found.struct_ops_link {
        return link.pin(place::pin(REGISTERED)).map_err(failed);
    }
    // Without links a registration outlives its owner, unless libbpf takes it back with the link.
    link.disconnect();
    pin(map, REGISTERED)
}

fn pin(map: &mut MapMut<'_>, name: &str) -> Result<(), Error> {
    map.pin(place::pin(name)).map_err(|error| explain(LOAD, BOUND, error))
}

fn load(object: &mut MaybeUninit<libbpf_rs::OpenObject>) -> libbpf_rs::Result<WakeaiCubicSkel<'_>> {
    let found = features::detect();
    let mut open = WakeaiCubicSkelBuilder::default().open(object)?;
    if let Some(rodata) = open.maps.rodata_data.as_deref_mut() {
        rodata.knobs.stale_after_ms = STALE_AFTER.as_millis() as u32;
    }
    let short = found.cong_control == Some(CongControl::Short);
    open.maps.wakeai_cubic.set_autocreate(!short)?;
    open.maps.wakeai_cubic_s.set_autocreate(short)?;
    open.progs.cong_control.set_autoload(!short);
    open.progs.cong_control_short.set_autoload(short);
    if !found.struct_ops_link {
        open.maps.wakeai_cubic.set_map_flags(0)?;
        open.maps.wakeai_cubic_s.set_map_flags(0)?;
    }
    open.load()
}

/// Removes everything that is there. The order matters: a namespace whose default is ours goes on
/// giving the algorithm to new connections after its registration is gone, and a connection keeps
/// it alive, so both are moved off it first.
fn remove() -> Result<bool, Error> {
    // Looking for maps by name takes CAP_SYS_ADMIN, which an agent has given up: it sees the pin.
    let is_pinned = place::pin(REGISTERED).exists();
    let mut found = is_pinned;
    if is_pinned || !registered_maps().is_empty() {
        vacate();
        unregister()?;
        retire();
        // What somebody else has removed before is waited for no longer than it takes to notice.
        found |= wait_until_gone(if is_pinned { 5000 } else { 1500 });
    }
    found |= place::clear().map_err(|error| Error::from_io(UNLOAD, error))?;
    Ok(found)
}

/// The `struct_ops` maps that are ours, registered or kept alive by connections.
fn registered_maps() -> Vec<u32> {
    MapInfoIter::default()
        .filter(|map| map.ty == MapType::StructOps)
        .filter(|map| map.name.as_encoded_bytes().starts_with(PREFIX.as_bytes()))
        .map(|map| map.id)
        .collect()
}

fn unregister() -> Result<(), Error> {
    let path = place::pin(REGISTERED);
    if features::detect().struct_ops_link {
        // A link that is not pinned died with its owner.
        return if path.exists() { unpin_link(&path) } else { Ok(()) };
    }
    let pinned = MapHandle::from_pinned_path(path).ok();
    let by_name = registered_maps().into_iter().filter_map(|id| MapHandle::from_map_id(id).ok());
    for map in pinned.into_iter().chain(by_name) {
        // An error means that it is an orphan, which only its connections keep.
        if let Err(error) = map.delete(&0_u32.to_ne_bytes()) {
            tracing::debug!(%error, "struct_ops map not unregistered");
        }
    }
    Ok(())
}

/// Tells the connections that nobody can see to leave. Only now: before it was unregistered, a new
/// one could have come.
fn retire() {
    let pinned = MapHandle::from_pinned_path(place::pin(RETIRED)).ok();
    let by_name = MapInfoIter::default()
        .filter(|map| map.name == RETIRED_MAP)
        .filter_map(|map| MapHandle::from_map_id(map.id).ok());
    for map in pinned.into_iter().chain(by_name) {
        let (key, yes) = (0_u32.to_ne_bytes(), 1_u32.to_ne_bytes());
        if let Err(error) = map.update(&key, &yes, MapFlags::ANY) {
            tracing::debug!(%error, "connections not told to leave");
        }
    }
}

fn unpin_link(path: &Path) -> Result<(), Error> {
    let link = Link::open(path).map_err(|error| explain(UNLOAD, BOUND, error))?;
    // Kernels before 6.11 cannot detach it: there it goes with its last reference.
    if let Err(error) = link.detach() {
        tracing::debug!(%error, "struct_ops link not detached");
    }
    std::fs::remove_file(path).map_err(|error| Error::from_io(UNLOAD, error))
}

/// In every network namespace, moves sysctl and connections to what the kernel itself has. In
/// the own one also without the privilege to enter another.
fn vacate() {
    vacate_here();
    let here = NetnsId::current().ok();
    for namespace in Namespace::all() {
        if Some(namespace.id()) == here {
            continue;
        }
        if let Err(error) = namespace.run(vacate_here) {
            tracing::warn!(%error, "its connections stay");
        }
    }
}

fn vacate_here() {
    if let Err(error) = vacate_default() {
        tracing::warn!(%error, "the default congestion control stays");
    }
    match move_connections(&[crate::Control::ALGORITHM], fallback(), None) {
        Ok(report) if report.failed == 0 => {}
        Ok(report) => tracing::warn!(failed = report.failed, "connections not moved"),
        Err(error) => tracing::warn!(%error, "connections not moved"),
    }
}

/// A namespace may be refused CUBIC as its default: unless it is the kernel's own default, only
/// the first namespace has leave to it. What a new namespace gets, and Reno, are always allowed.
fn vacate_default() -> std::io::Result<()> {
    const DEFAULT: &str = "net.ipv4.tcp_congestion_control";
    if !wakeai_host::read_sysctl(DEFAULT)?.starts_with(PREFIX) {
        return Ok(());
    }
    let allowed = wakeai_host::read_sysctl("net.ipv4.tcp_allowed_congestion_control")?;
    let others = allowed.split(' ').rev().filter(|name| !name.starts_with(PREFIX));
    let write = |name| std::fs::write("/proc/sys/net/ipv4/tcp_congestion_control", name);
    let mut result = write("cubic");
    for name in others {
        if result.is_ok() {
            break;
        }
        result = write(name);
    }
    result
}

/// CUBIC, or Reno, which every kernel has.
fn fallback() -> &'static str {
    let available = wakeai_host::read_sysctl("net.ipv4.tcp_available_congestion_control");
    if available.is_ok_and(|names| names.split(' ').any(|name| name == "cubic")) {
        "cubic"
    } else {
        "reno"
    }
}

/// The kernel frees a `struct_ops` after an RCU grace period. A connection that was accepted while
/// the others were moved is moved on the next round; one that nobody can see leaves with its next
/// retransmission, which comes after as long as it has been alone. Says whether all are gone.
fn wait_until_gone(patience_ms: u64) -> bool {
    let give_up = Instant::now() + Duration::from_millis(patience_ms);
    let mut rounds = 0_u32;
    while !registered_maps().is_empty() {
        if Instant::now() > give_up {
            tracing::warn!("sockets that cannot be moved keep wakeai_cubic loaded for a while");
            return false;
        }
        sleep(Duration::from_millis(20));
        rounds += 1;
        if rounds.is_multiple_of(50) {
            vacate();
        }
    }
    true
}
