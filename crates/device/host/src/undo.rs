//! Undoes a change of any process, in the namespace in which it was made; the kinds of other crates, too.

use std::error::Error;
use std::io;

use crate::change::{Change, OtherChange};
use crate::namespace::{Namespace, NetnsId};
use crate::remove::{Kind, Undone, remove};
use crate::{departures, route, routing, sysctl};

/// Undoes the changes of one kind that another crate makes.
pub trait UndoKind {
    /// The kind's name, which its changes have ([`OtherChange::name`]).
    fn name(&self) -> &'static str;

    /// The change, where processes share a single one. A sweep undoes it whenever no living process has
    /// recorded it, so it also removes what no lease names.
    fn shared(&self) -> Option<Change> {
        None
    }

    /// Undoes a change; returns `true` where there was anything to undo.
    ///
    /// # Errors
    ///
    /// Where that is not possible now. The change stays recorded.
    fn undo(&self, change: &OtherChange) -> Result<bool, Box<dyn Error>>;
}

/// The kinds of change of other crates that a process can undo.
pub type UndoKinds<'a> = &'a [&'a dyn UndoKind];

/// Undoes the change.
pub(crate) fn undo(change: &Change, kinds: UndoKinds<'_>) -> Result<Undone, Box<dyn Error>> {
    let undone = match change {
        Change::Socket { path, made, spare } => {
            if let Some(spare) = spare {
                remove(spare, Kind::Socket, made.as_ref())?;
            }
            return Ok(remove(path, Kind::Socket, made.as_ref())?);
        }
        Change::Directory { path, made } => {
            return Ok(remove(path, Kind::Directory, made.as_ref())?);
        }
        Change::Namespace { name, made: Some(made) }
            if Namespace::open(name).is_ok_and(|found| found.id() != *made) =>
        {
            return Ok(Undone::Kept("another namespace has its name now".to_owned()));
        }
        Change::Namespace { name, .. } => Some(Ok(Namespace::remove(name)?)),
        Change::Process(process) => Some(process.kill()),
        Change::Sysctl { netns, name, before, ours } => {
            within(*netns, || sysctl::restore(name, before, ours))
        }
        Change::Route { netns, route, before, ours } => {
            within(*netns, || route::restore(route, before.as_deref(), ours))
        }
        Change::PacketRules { netns, table } => {
            within(*netns, || routing::remove_packet_rules(table).map_err(io::Error::other))
        }
        Change::LocalRoute { netns, mark, table } => {
            within(*netns, || routing::remove_local_route(*mark, *table))
        }
        Change::QueueingDiscipline { netns, interface, index, handle } => {
            within(*netns, || departures::remove(interface, *index, *handle))
        }
        Change::Other(other) => {
            let kind = kinds.iter().find(|kind| kind.name() == other.name);
            Some(Ok(kind.ok_or("this command cannot undo this kind of change")?.undo(other)?))
        }
    };
    // Where the namespace does not exist any more, nothing is left to undo.
    let was_there = undone.unwrap_or(Ok(false))?;
    Ok(if was_there { Undone::Done } else { Undone::Nothing })
}

/// Runs `work` in a namespace; `None` where the namespace does not exist any more. In the calling
/// thread's own namespace it runs `work` directly, because setns(2) needs a privilege that the
/// process may have dropped.
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
