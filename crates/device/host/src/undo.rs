//! Undoes a change of any process.

use std::io;

use crate::change::{Assigned, AssignedWay, Change};
use crate::namespace::{Namespace, NetnsId};
use crate::remove::{Kind, Undone, remove};
use crate::{route, routing, sysctl};

/// The order in which the changes of dead processes are undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Sysctls, and routes that give new connections an algorithm.
    Defaults,
    /// Connections over a route. They come before the connections of the whole namespace, because
    /// these include them.
    RouteConnections,
    /// All other connections. They come before the algorithms are unloaded, because they may still
    /// use one.
    Connections,
    /// Everything else, namespaces included. Namespaces come last: once the name of a namespace is
    /// removed, its connections cannot be moved to another algorithm, and would keep theirs loaded.
    Rest,
}

/// The stage at which a change is undone.
pub(crate) fn stage(change: &Change) -> Stage {
    match change {
        Change::Sysctl { .. } | Change::Route { .. } => Stage::Defaults,
        Change::Connections(Assigned {
            way: AssignedWay::Default { destination: Some(_), .. },
            ..
        }) => Stage::RouteConnections,
        Change::Connections(_) => Stage::Connections,
        _ => Stage::Rest,
    }
}

/// Undoes the change. It moves no connections, which needs a [`crate::KernelUndo`]. It does not
/// unload the kernel's parts (registrations and pins that all processes share) either: the callers
/// do, once no process uses them.
pub(crate) fn undo(change: &Change) -> io::Result<Undone> {
    let was_there = match change {
        Change::Socket { path, made, spare } => {
            if let Some(spare) = spare {
                remove(spare, Kind::Socket, made.as_ref())?;
            }
            return remove(path, Kind::Socket, made.as_ref());
        }
        Change::Directory { path, made } => return remove(path, Kind::Directory, made.as_ref()),
        Change::File { path, made } => return remove(path, Kind::File, made.as_ref()),
        Change::Namespace { name, made: Some(made) } if Namespace::is_another(name, *made) => {
            return Ok(Undone::Kept("another namespace has its name now".to_owned()));
        }
        Change::Namespace { name, .. } => Namespace::remove(name).map_err(io::Error::other),
        Change::Process(process) => process.kill(),
        Change::Sysctl { netns, name, before, ours } => {
            inside(*netns, || sysctl::restore(name, before, ours))
        }
        Change::Route { netns, route, before, ours } => {
            inside(*netns, || route::restore(route, before.as_deref(), ours))
        }
        Change::Connections(_) => Err(io::Error::other("only a sweep restores connections")),
        Change::PacketRules { netns, table } => {
            inside(*netns, || routing::remove_packet_rules(table).map_err(io::Error::other))
        }
        Change::LocalRoute { netns, mark, table } => {
            inside(*netns, || routing::remove_local_route(*mark, *table).map_err(io::Error::other))
        }
        Change::KernelParts => Ok(false),
    };
    was_there.map(|was_there| if was_there { Undone::Done } else { Undone::Nothing })
}

/// Runs `undo` in a namespace. Where the namespace does not exist any more, nothing is left to
/// undo. In the calling thread's own namespace it runs `undo` directly, because setns(2) needs a
/// privilege that the process may have dropped.
fn inside(netns: NetnsId, undo: impl FnOnce() -> io::Result<bool> + Send) -> io::Result<bool> {
    within(netns, undo).unwrap_or(Ok(false))
}

/// Does what [`inside`] does; `None` where the namespace does not exist any more.
pub(crate) fn within<T: Send>(
    netns: NetnsId,
    work: impl FnOnce() -> io::Result<T> + Send,
) -> Option<io::Result<T>> {
    if NetnsId::current().is_ok_and(|here| here == netns) {
        return Some(work());
    }
    let namespace = netns.open()?;
    Some(namespace.run(work).map_err(io::Error::other).and_then(|done| done))
}
