//! The kinds of change, and how each is undone.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::assigned::{Assigned, AssignedWay};
use crate::made::{self, FileId, Kind};
use crate::namespace::{Namespace, NetnsId};
use crate::process::ProcessId;
use crate::route::{self, RouteKey};
use crate::routing;
use crate::sysctl;

/// Removes what the `kernel` crate shares between processes (registrations, pins); says whether
/// there was anything. Called only when no live process holds [`Change::KernelParts`].
pub type KernelUnload<'a> = &'a dyn Fn() -> Result<bool, Box<dyn std::error::Error>>;

/// What only the `kernel` crate can undo, which this one does not know. Both say whether there was
/// anything.
pub trait KernelUndo {
    /// See [`KernelUnload`].
    ///
    /// # Errors
    ///
    /// Where the kernel refuses.
    fn unload(&self) -> Result<bool, Box<dyn std::error::Error>>;

    /// Puts connections back on the algorithm that they had before.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses.
    fn give_back(&self, assigned: &Assigned) -> Result<bool, Box<dyn std::error::Error>>;
}

/// One thing that a process changed on the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Change {
    /// A network namespace under `/run/netns`.
    Namespace {
        /// The name that `ip netns` lists.
        name: String,
        /// Which one it is, once it is made. Without, whatever has the name is removed: it names the
        /// process that was to make it.
        #[serde(default)]
        made: Option<NetnsId>,
    },
    /// A process that was started.
    Process(ProcessId),
    /// A sysctl of a network namespace.
    Sysctl {
        /// The namespace.
        netns: NetnsId,
        /// In dotted form.
        name: String,
        /// The value that is put back.
        before: String,
        /// The value that was written: another one means that somebody chose since.
        ours: String,
    },
    /// The congestion control of a route.
    Route {
        /// The namespace.
        netns: NetnsId,
        /// The route.
        route: RouteKey,
        /// What is put back; `None`: none.
        before: Option<String>,
        /// What was written: another one means that somebody chose since.
        ours: String,
    },
    /// Connections that were put on another algorithm.
    Connections(Assigned),
    /// A Unix socket: [`crate::Lease::bind_socket`].
    Socket {
        /// Its absolute path.
        path: PathBuf,
        /// Which one it is, once it is made.
        made: Option<FileId>,
    },
    /// A directory, with all that is in it: [`crate::Lease::create_directory`].
    Directory {
        /// Its absolute path.
        path: PathBuf,
        /// Which one it is, once it is made.
        made: Option<FileId>,
    },
    /// A regular file. Leases of the version before mean sockets and directories, too, and do not
    /// say which one was made: of those only a dead socket is removed.
    File {
        /// Its absolute path.
        path: PathBuf,
        /// Which one it is, once it is made.
        #[serde(default)]
        made: Option<FileId>,
    },
    /// A table of nftables, of the family inet.
    PacketRules {
        /// Its namespace.
        netns: NetnsId,
        /// Its name.
        table: String,
    },
    /// A route that takes marked packets for the machine's own, and the rule that leads to it, in
    /// both address families.
    LocalRoute {
        /// Their namespace.
        netns: NetnsId,
        /// The mark.
        mark: u32,
        /// The number of the routing table.
        table: u32,
    },
    /// The BPF registrations and pins, which all processes share: the last one removes them.
    KernelParts,
}

/// What came of undoing a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Undone {
    /// It is undone.
    Done,
    /// There was nothing left of it.
    Nothing,
    /// What is there now may be somebody else's, and stays; why.
    Kept(String),
}

impl From<bool> for Undone {
    fn from(was_there: bool) -> Self {
        if was_there { Self::Done } else { Self::Nothing }
    }
}

/// The order in which changes are undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// What gives connections an algorithm: while it is there, new ones come to it.
    Defaults,
    /// Connections over a route, which would be taken for some of their whole namespace.
    RouteConnections,
    /// The other connections. They may use one of the kernel's parts, which go next.
    Connections,
    /// All else. A connection in a namespace without a name can no longer be moved off the
    /// algorithm that it uses, and would keep it loaded.
    Rest,
}

impl Change {
    /// Where a process listens, if that is what it made. The version before called it a file.
    pub fn socket(&self) -> Option<&Path> {
        match self {
            Self::Socket { path, .. } | Self::File { path, made: None } => Some(path),
            _ => None,
        }
    }

    /// When it is undone, among the changes of several dead processes: the smallest first.
    pub(crate) fn stage(&self) -> Stage {
        match self {
            Self::Sysctl { .. } | Self::Route { .. } => Stage::Defaults,
            Self::Connections(Assigned {
                way: AssignedWay::Default { destination: Some(_), .. },
                ..
            }) => Stage::RouteConnections,
            Self::Connections(_) => Stage::Connections,
            _ => Stage::Rest,
        }
    }

    /// Undoes the change. The kernel's parts are not undone here, because others may use them, and
    /// connections only by [`KernelUndo`].
    pub(crate) fn undo(&self) -> io::Result<Undone> {
        let was_there = match self {
            Self::Socket { path, made } => return made::remove(path, Kind::Socket, made.as_ref()),
            Self::Directory { path, made } => {
                return made::remove(path, Kind::Directory, made.as_ref());
            }
            Self::File { path, made } => return made::remove(path, Kind::File, made.as_ref()),
            Self::Namespace { name, made: Some(made) } if Namespace::is_another(name, *made) => {
                return Ok(Undone::Kept("another one has its name now".to_owned()));
            }
            Self::Namespace { name, .. } => Namespace::remove(name).map_err(io::Error::other),
            Self::Process(process) => process.kill(),
            Self::Sysctl { netns, name, before, ours } => {
                inside(*netns, || sysctl::put_back(name, before, ours))
            }
            Self::Route { netns, route, before, ours } => {
                inside(*netns, || route::put_back(route, before.as_deref(), ours))
            }
            Self::Connections(_) => Err(io::Error::other("not by this process")),
            Self::PacketRules { netns, table } => {
                inside(*netns, || routing::remove_packet_rules(table).map_err(io::Error::other))
            }
            Self::LocalRoute { netns, mark, table } => inside(*netns, || {
                routing::remove_local_route(*mark, *table).map_err(io::Error::other)
            }),
            Self::KernelParts => Ok(false),
        };
        was_there.map(Into::into)
    }
}

/// Undoes something in its namespace, with which it may have gone. In the calling thread's own it
/// takes no privilege to enter: a process that has given up the others still undoes its changes.
fn inside(netns: NetnsId, undo: impl FnOnce() -> io::Result<bool> + Send) -> io::Result<bool> {
    if NetnsId::current().is_ok_and(|here| here == netns) {
        return undo();
    }
    let Some(namespace) = netns.open() else { return Ok(false) };
    namespace.run(undo).map_err(io::Error::other)?
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Namespace { name, .. } => write!(f, "network namespace {name}"),
            Self::Process(process) => write!(f, "process {process}"),
            Self::Sysctl { name, before, .. } => write!(f, "sysctl {name} (back to {before})"),
            Self::Route { route, before, .. } => {
                let before = before.as_deref().unwrap_or("none of its own");
                write!(f, "congestion control of the route to {route} (back to {before})")
            }
            Self::Connections(Assigned { algorithm, .. }) => {
                write!(f, "connections that were put on {algorithm}")
            }
            Self::Socket { path, .. } => write!(f, "socket {}", path.display()),
            Self::Directory { path, .. } => write!(f, "directory {}", path.display()),
            Self::File { path, .. } => write!(f, "file {}", path.display()),
            Self::PacketRules { table, .. } => write!(f, "table inet {table} of nftables"),
            Self::LocalRoute { mark, .. } => write!(f, "route for packets with mark {mark:#x}"),
            Self::KernelParts => write!(f, "BPF registrations and pins"),
        }
    }
}
