//! The lease files, in which each process records its changes on the host, and the lock on these
//! files.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use nix::fcntl::Flock;
use serde::{Deserialize, Serialize};

use crate::change::Change;
use crate::namespace::NetnsId;
use crate::private;
use crate::process::ProcessId;

/// The extension of a lease.
const LEASE: &str = "json";
/// The extension of a lease that is being written.
const UNFINISHED: &str = "new";

/// The role of a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "role")]
pub enum Role {
    /// The agent of a network namespace, which has at most one.
    Agent {
        /// Its namespace.
        netns: NetnsId,
        /// Its Wi-Fi interface.
        interface: String,
    },
    /// A lab run.
    Lab,
    /// A command that applies an algorithm to connections.
    Use {
        /// The target in words, if only one command at a time may have it; otherwise `None`.
        exclusive: Option<String>,
    },
    /// The helper of an experiment on real machines, of which a network namespace has at most one.
    Field {
        /// Its namespace.
        netns: NetnsId,
    },
    /// Any other command.
    Command,
}

/// The content of a lease: a process and its changes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Holder {
    /// The process.
    pub process: ProcessId,
    /// The number of the lease among those of the process.
    pub sequence: u32,
    /// Its role.
    pub role: Role,
    /// Its changes, oldest first.
    pub changes: Vec<Change>,
}

impl Holder {
    /// Reads the content of a lease file.
    ///
    /// # Errors
    ///
    /// Where the content is not a lease of this version of Wakeai.
    pub fn parse(content: &[u8]) -> serde_json::Result<Self> {
        serde_json::from_slice(content)
    }
}

/// The directory of the leases.
#[derive(Clone, Debug)]
pub(crate) struct Registry {
    dir: PathBuf,
}

impl Registry {
    /// The directory of this machine's leases.
    pub(crate) fn system() -> Self {
        Self { dir: private::state().join("leases") }
    }

    #[cfg(test)]
    pub(crate) fn at(dir: &Path) -> Self {
        Self { dir: dir.to_owned() }
    }

    pub(crate) fn exists(&self) -> bool {
        self.dir.is_dir()
    }

    /// Takes the lock that every reader and writer of leases holds. Dropping the returned value
    /// releases it.
    pub(crate) fn lock(&self) -> io::Result<Flock<File>> {
        if self.dir.starts_with(private::state()) {
            private::state_directory()?;
        }
        private::private_directory(&self.dir, 0o700)?;
        Ok(private::lock(&self.dir.join(".lock"))?)
    }

    /// Writes the holder's file, completely or not at all.
    pub(crate) fn write(&self, holder: &Holder) -> io::Result<()> {
        let path = self.path(holder);
        let temporary = path.with_extension(UNFINISHED);
        let write = || {
            private::write_new(&temporary, &serde_json::to_vec(holder)?)?;
            fs::rename(&temporary, path)
        };
        write().inspect_err(|_: &io::Error| {
            let _ = fs::remove_file(&temporary); // the disk may be full
        })
    }

    pub(crate) fn remove(&self, holder: &Holder) -> io::Result<()> {
        fs::remove_file(self.path(holder))
    }

    /// Removes the unfinished files of processes that died while they wrote their leases. The
    /// caller has the lock, so no process is writing a lease now.
    pub(crate) fn remove_unfinished(&self) -> io::Result<()> {
        self.files(UNFINISHED)?.into_iter().try_for_each(fs::remove_file)
    }

    /// Every lease that can be read. A file that cannot be read as a lease is renamed, with a
    /// warning. It keeps its name where its process lives: another version of Wakeai may have
    /// written it.
    pub(crate) fn holders(&self) -> io::Result<Vec<Holder>> {
        self.read().map(|(holders, _)| holders)
    }

    /// Does what [`Self::holders`] does, and says whether living processes have leases that cannot be read. Their
    /// changes are not known.
    pub(crate) fn read(&self) -> io::Result<(Vec<Holder>, bool)> {
        let (mut holders, mut any_unread) = (Vec::new(), false);
        for path in self.files(LEASE)? {
            let read = private::read(&path).map_err(|error| error.to_string());
            let read = read.and_then(|content| {
                Holder::parse(&content).map_err(|error| format!("{}: {error}", path.display()))
            });
            match read {
                Ok(holder) => holders.push(holder),
                Err(reason) => any_unread |= !set_aside(&path, &reason),
            }
        }
        Ok((holders, any_unread))
    }

    /// The files with this extension.
    fn files(&self, wanted: &str) -> io::Result<Vec<PathBuf>> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.dir)? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == wanted) {
                files.push(path);
            }
        }
        Ok(files)
    }

    pub(crate) fn path(&self, holder: &Holder) -> PathBuf {
        let ProcessId { pid, start_time } = holder.process;
        self.dir.join(format!("{pid}-{start_time}-{}.{LEASE}", holder.sequence))
    }
}

/// The process whose lease this is. The file's name tells it.
fn process_of(lease: &Path) -> Option<ProcessId> {
    let mut numbers = lease.file_stem()?.to_str()?.split('-');
    let (pid, start_time) = (numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?);
    Some(ProcessId { pid, start_time })
}

/// Renames a lease that cannot be read; returns `false` where it stays, because its process lives.
fn set_aside(lease: &Path, reason: &str) -> bool {
    if let Some(process) = process_of(lease).filter(|process| process.is_alive()) {
        tracing::warn!(
            reason,
            "the lease of the running process {process} cannot be read, so its changes and the BPF \
             parts stay; if the process is of another version of Wakeai, end it first"
        );
        return false;
    }
    tracing::warn!(
        reason,
        "an unreadable lease is renamed to *.unreadable, and its changes are not undone"
    );
    if let Err(error) = fs::rename(lease, lease.with_extension("unreadable")) {
        tracing::warn!(lease = %lease.display(), %error, "the unreadable lease could not be renamed");
    }
    true
}
