//! The kinds of change that a process makes on the host, as they are written into its lease: the
//! file that records all its changes, so that another process can undo them.

use std::fmt;
use std::fs::Metadata;
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};

use crate::namespace::NetnsId;
use crate::process::ProcessId;

/// A change that a process made on the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Change {
    /// A network namespace under `/run/netns`.
    Namespace {
        /// The name that `ip netns` lists.
        name: String,
        /// The identity of the namespace, once it is made. Without an identity, any namespace of
        /// that name is removed. That is safe, because the name contains the pid of the process
        /// that was about to make it.
        made: Option<NetnsId>,
    },
    /// A process that was started.
    Process(ProcessId),
    /// A sysctl of a network namespace.
    Sysctl {
        /// The namespace.
        netns: NetnsId,
        /// The name of the sysctl in dotted form.
        name: String,
        /// The value to restore.
        before: String,
        /// The value that was written. Any other value was set later, and is kept.
        ours: String,
    },
    /// The congestion control of a route.
    Route {
        /// The namespace.
        netns: NetnsId,
        /// The route.
        route: RouteKey,
        /// The algorithm to restore; `None`: the route had none of its own.
        before: Option<String>,
        /// The algorithm that was written. Any other algorithm was set later, and is kept.
        ours: String,
    },
    /// The root queueing discipline of an interface: [`crate::put_departures`].
    QueueingDiscipline {
        /// The namespace.
        netns: NetnsId,
        /// The interface's name.
        interface: String,
        /// The interface's index. An interface that is made anew has another one.
        index: u32,
        /// The major number of the handle. A root with another one is not ours, and is kept.
        handle: u16,
    },
    /// A change of a kind that another crate makes and undoes.
    Other(OtherChange),
    /// A Unix socket: [`crate::Lease::bind_socket`].
    Socket {
        /// Its absolute path.
        path: PathBuf,
        /// The identity of the socket, once it is made.
        made: Option<FileId>,
        /// A second name of the same socket, in the directory of the leases. Where the first name
        /// is removed, the socket gets it back from here, with all its connections.
        spare: Option<PathBuf>,
    },
    /// A directory with its contents: [`crate::Lease::create_directory`].
    Directory {
        /// Its absolute path.
        path: PathBuf,
        /// The identity of the directory, once it is made.
        made: Option<FileId>,
    },
    /// A table of nftables, of the family inet.
    PacketRules {
        /// Its namespace.
        netns: NetnsId,
        /// Its name.
        table: String,
    },
    /// A route that delivers marked packets locally, and the rule that selects it, in both address
    /// families.
    LocalRoute {
        /// Their namespace.
        netns: NetnsId,
        /// The mark.
        mark: u32,
        /// The number of the routing table.
        table: u32,
    },
}

impl Change {
    /// The path, where the change is a socket.
    pub fn socket(&self) -> Option<&Path> {
        match self {
            Self::Socket { path, .. } => Some(path),
            _ => None,
        }
    }

    /// What was changed, without the value to which it goes back.
    pub fn what(&self) -> String {
        match self {
            Self::Namespace { name, .. } => format!("network namespace {name}"),
            Self::Process(process) => format!("process {process}"),
            Self::Sysctl { name, .. } => format!("sysctl {name}"),
            Self::Route { route, .. } => format!("congestion control of the route to {route}"),
            Self::QueueingDiscipline { interface, .. } => {
                format!("queueing discipline fq of {interface}")
            }
            Self::Other(other) => other.what.clone(),
            Self::Socket { path, .. } => format!("socket {}", path.display()),
            Self::Directory { path, .. } => format!("directory {}", path.display()),
            Self::PacketRules { table, .. } => format!("table inet {table} of nftables"),
            Self::LocalRoute { mark, .. } => format!("route for packets with mark {mark:#x}"),
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what())?;
        match self {
            Self::Sysctl { before, .. } => write!(f, " (back to {before})"),
            Self::Route { before, .. } => {
                write!(f, " (back to {})", before.as_deref().unwrap_or("none of its own"))
            }
            Self::QueueingDiscipline { .. } => f.write_str(" (back to the kernel's default)"),
            _ => Ok(()),
        }
    }
}

/// A changed setting, such as a default algorithm, which can be undone before the lease is
/// released.
#[derive(Debug)]
#[must_use = "without `restore` the change is undone only when the lease is released"]
pub struct Guard(pub(crate) Change);

/// The identity of a file. Another file at the same path has another identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileId {
    device: u64,
    inode: u64,
    /// The time of creation in nanoseconds since 1970, where the file system records it. It is
    /// needed because inode numbers are reused.
    born_ns: Option<u64>,
}

impl FileId {
    pub(crate) fn of(metadata: &Metadata) -> Self {
        let born = metadata.created().ok().and_then(|born| born.duration_since(UNIX_EPOCH).ok());
        let born_ns = born.and_then(|age| u64::try_from(age.as_nanos()).ok());
        Self { device: metadata.dev(), inode: metadata.ino(), born_ns }
    }
}

/// A route of the main table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouteKey {
    /// The network's address.
    pub destination: IpAddr,
    /// The length of its prefix in bits.
    pub length: u8,
    /// `tos` of ip-route(8).
    pub tos: u8,
    /// `metric` of ip-route(8): the smaller one of two is preferred.
    pub priority: u32,
}

impl fmt::Display for RouteKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.destination, self.length)?;
        if self.priority == 0 { Ok(()) } else { write!(f, " metric {}", self.priority) }
    }
}

/// A change of a kind that this crate does not know. The crate that makes it registers how it is undone
/// ([`crate::UndoKind`]).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherChange {
    /// The name of its kind.
    pub name: String,
    /// What was changed, in words.
    pub what: String,
    /// The stage at which it is undone.
    pub stage: Stage,
    /// What its kind needs to undo it, in a form of its own.
    pub details: String,
}

/// The order in which the changes of dead processes are undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// Settings of a namespace: sysctls, routes, and queueing disciplines.
    Defaults,
    /// What covers a part of a change of the next stage.
    Part,
    /// What covers a whole namespace, or uses what is shared.
    Whole,
    /// What processes share. It is undone when no living process has recorded it.
    Shared,
    /// Everything else, namespaces included. Once the name of a namespace is removed, nothing in it can
    /// be undone.
    Rest,
}

impl Change {
    /// The stage at which the change is undone.
    pub(crate) fn stage(&self) -> Stage {
        match self {
            Self::Sysctl { .. } | Self::Route { .. } | Self::QueueingDiscipline { .. } => {
                Stage::Defaults
            }
            Self::Other(other) => other.stage,
            _ => Stage::Rest,
        }
    }
}
