//! The kinds of change, and how each is undone.

use std::fmt;
use std::fs;
use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::namespace::{Namespace, NetnsId};
use crate::process::ProcessId;
use crate::sysctl;

/// Removes what the `kernel` crate shares between processes (registrations, pins); says whether
/// there was anything. Called only when no live process holds [`Change::KernelParts`].
pub type KernelUnload<'a> = &'a dyn Fn() -> Result<bool, Box<dyn std::error::Error>>;

/// One thing that a process changed on the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Change {
    /// A network namespace under `/run/netns`.
    Namespace {
        /// The name that `ip netns` lists.
        name: String,
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
    /// A file or socket, or a directory with all that is in it.
    File {
        /// Its absolute path.
        path: PathBuf,
    },
    /// The BPF registrations and pins, which all processes share: the last one removes them.
    KernelParts,
}

impl Change {
    /// Undoes the change; says whether there was anything left to undo. The kernel's parts are
    /// not undone here, because others may use them.
    pub(crate) fn undo(&self) -> io::Result<bool> {
        match self {
            Self::Namespace { name } => Namespace::remove(name).map_err(io::Error::other),
            Self::Process(process) => process.kill(),
            Self::Sysctl { netns, name, before, ours } => match netns.open() {
                Some(namespace) => namespace
                    .run(|| sysctl::put_back(name, before, ours))
                    .map_err(io::Error::other)?,
                None => Ok(false), // it went with its namespace
            },
            Self::File { path } => match fs::remove_file(path) {
                Ok(()) => Ok(true),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
                Err(error) if error.kind() == io::ErrorKind::IsADirectory => {
                    fs::remove_dir_all(path).map(|()| true)
                }
                Err(error) => Err(error),
            },
            Self::KernelParts => Ok(false),
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Namespace { name } => write!(f, "network namespace {name}"),
            Self::Process(process) => write!(f, "process {process}"),
            Self::Sysctl { name, before, .. } => write!(f, "sysctl {name} (back to {before})"),
            Self::File { path } => write!(f, "file {}", path.display()),
            Self::KernelParts => write!(f, "BPF registrations and pins"),
        }
    }
}
