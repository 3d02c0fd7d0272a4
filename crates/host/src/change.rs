//! The kinds of change that a process makes on the host, as they are written into its lease.

use std::fmt;
use std::fs::Metadata;
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};

use crate::namespace::NetnsId;
use crate::process::ProcessId;

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

impl Change {
    /// Where a process listens, if that is what it made. The version before called it a file.
    pub fn socket(&self) -> Option<&Path> {
        match self {
            Self::Socket { path, .. } | Self::File { path, made: None } => Some(path),
            _ => None,
        }
    }
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

/// What a file is known by, whatever its path: another file at the same path has another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileId {
    device: u64,
    inode: u64,
    /// Nanoseconds since 1970, where the file system knows: inodes are used again.
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

/// Connections that one process put on an algorithm. They go back to what they had before, or
/// would have had; only the `kernel` crate can do that ([`crate::KernelUndo`]).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assigned {
    /// Their namespace; `None`: any.
    pub netns: Option<NetnsId>,
    /// The algorithm's name.
    pub algorithm: String,
    /// How they came to it.
    pub way: AssignedWay,
}

/// How connections came to an algorithm that they had not asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "way")]
pub enum AssignedWay {
    /// It was the default of their namespace, or of their route.
    Default {
        /// The network that the route leads to: address and length of the prefix.
        destination: Option<(IpAddr, u8)>,
        /// What they would have had; `None`: the default of their namespace.
        before: Option<String>,
    },
    /// Each was moved, and the kernel noted for whom and from which algorithm.
    Moved {
        /// For whom: a process id.
        owner: u32,
    },
}
