//! The lease files, and the lock that keeps their readers and writers apart.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::PathBuf;

use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};

use crate::change::Change;
use crate::namespace::NetnsId;
use crate::process::ProcessId;

/// What a process is.
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
    /// One that puts an algorithm to work.
    Use {
        /// What it rules, in words, where nothing else may rule it at the same time.
        exclusive: Option<String>,
    },
    /// Any other command.
    Command,
}

/// A process and what it holds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Holder {
    /// The process.
    pub process: ProcessId,
    /// Tells the leases of one process apart.
    pub sequence: u32,
    /// What it is.
    pub role: Role,
    /// What it changed, oldest first.
    pub changes: Vec<Change>,
}

/// The directory of the leases.
#[derive(Clone, Debug)]
pub(crate) struct Registry {
    dir: PathBuf,
}

impl Registry {
    /// The machine's own.
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

    /// Takes the lock that every reader and writer holds; it goes with the returned value.
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
            let _ = fs::remove_file(&temporary); // it may be the disk that is full
        })
    }

    pub(crate) fn remove(&self, holder: &Holder) -> io::Result<()> {
        fs::remove_file(self.path(holder))
    }

    /// Every lease. A file that cannot be read as one is set aside and named, never guessed at.
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
