//! Undoes a change of any process.

use std::io;

use crate::change::{Assigned, AssignedWay, Change};
use crate::namespace::{Namespace, NetnsId};
use crate::remove::{Kind, Undone, remove};
use crate::{route, routing, sysctl};

/// The order in which the changes of dead processes are undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Sysctls and routes that give new connections an algorithm.
    Defaults,
    /// Connections over a route. They come before those of the whole namespace, which include them.
    RouteConnections,
    /// All other connections. They may use an algorithm that is unloaded after this stage.
    Connections,
    /// Everything else, namespaces included. Connections in a namespace whose name is removed cannot be moved off
    /// an algorithm any more, and would keep it loaded.
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

/// Undoes the change. Connections need a [`crate::KernelUndo`]. The kernel's parts are unloaded by the
/// callers, because other processes may use them.
pub(crate) fn undo(change: &Change) -> io::Result<Undone> {
    let was_there = match change {
        Change::Socket { path, made } => return remove(path, Kind::Socket, made.as_ref()),
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

/// Runs `undo` in a namespace; nothing is left to undo where the namespace is gone. The calling
/// thread's own namespace is not entered, because setns(2) needs a privilege that the process may have
/// dropped.
fn inside(netns: NetnsId, undo: impl FnOnce() -> io::Result<bool> + Send) -> io::Result<bool> {
    if NetnsId::current().is_ok_and(|here| here == netns) {
        return undo();
    }
    let Some(namespace) = netns.open() else { return Ok(false) };
    namespace.run(undo).map_err(io::Error::other)?
}
