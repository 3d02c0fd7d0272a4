//! The lease files, and the lock on them.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::PathBuf;

use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};

use crate::change::Change;
use crate::namespace::NetnsId;
use crate::process::ProcessId;

/// The role of a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "role")]
pub enum Role {
    /// The agent of a network namespace: one each.
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
        /// Its target in words, where no other command may have the same target at the same time.
        exclusive: Option<String>,
    },
    /// Any other command.
    Command,
}

/// A process and its changes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Holder {
    /// The process.
    pub process: ProcessId,
    /// Distinguishes the leases of one process.
    pub sequence: u32,
    /// Its role.
    pub role: Role,
    /// Its changes, oldest first.
    pub changes: Vec<Change>,
}

/// The directory of the leases.
#[derive(Clone, Debug)]
pub(crate) struct Registry {
    dir: PathBuf,
}

impl Registry {
    /// The directory of this machine's leases.
    pub(crate) fn system() -> Self {
        Self { dir: PathBuf::from("/run/wakeai/leases") }
    }

    #[cfg(test)]
    pub(crate) fn at(dir: &std::path::Path) -> Self {
        Self { dir: dir.to_owned() }
    }

    pub(crate) fn exists(&self) -> bool {
        self.dir.is_dir()
    }

    /// Takes the lock, which every reader and writer holds; dropping the returned value releases it.
    pub(crate) fn lock(&self) -> io::Result<Flock<File>> {
        fs::create_dir_all(&self.dir)?;
        let file = File::create(self.dir.join(".lock"))?;
        Flock::lock(file, FlockArg::LockExclusive).map_err(|(_, errno)| errno.into())
    }

    /// Writes the holder's file whole or not at all.
    pub(crate) fn write(&self, holder: &Holder) -> io::Result<()> {
        let path = self.path(holder);
        let temporary = path.with_extension("new");
        let write = || {
            File::create(&temporary)?.write_all(&serde_json::to_vec(holder)?)?;
            fs::rename(&temporary, path)
        };
        write().inspect_err(|_: &io::Error| {
            let _ = fs::remove_file(&temporary); // the disk may be full
        })
    }

    pub(crate) fn remove(&self, holder: &Holder) -> io::Result<()> {
        fs::remove_file(self.path(holder))
    }

    /// Every lease. A file that is not a lease is renamed, with a warning.
    pub(crate) fn holders(&self) -> io::Result<Vec<Holder>> {
        let mut holders = Vec::new();
        for entry in fs::read_dir(&self.dir)? {
            let path = entry?.path();
            if path.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            match serde_json::from_slice(&fs::read(&path)?) {
                Ok(holder) => holders.push(holder),
                Err(error) => {
                    let aside = path.with_extension("unreadable");
                    tracing::warn!(lease = %path.display(), %error, "unreadable lease set aside");
                    fs::rename(&path, aside)?;
                }
            }
        }
        Ok(holders)
    }

    fn path(&self, holder: &Holder) -> PathBuf {
        let ProcessId { pid, start_time } = holder.process;
        self.dir.join(format!("{pid}-{start_time}-{}.json", holder.sequence))
    }
}
