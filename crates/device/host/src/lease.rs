//! The lease: a process's record of its changes on the host.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use nix::fcntl::Flock;

use crate::change::Change;
use crate::process::ProcessId;
use crate::registry::{Holder, Registry, Role};

/// A lease could not be taken, written or released.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// Another agent runs in this network namespace.
    #[error(
        "an agent runs already in this network namespace (pid {pid}, interface {interface}): \
         stop it first, or watch it with `wakeai status`"
    )]
    AgentRuns {
        /// The other agent's process.
        pid: ProcessId,
        /// The other agent's interface.
        interface: String,
    },
    /// Another process applies an algorithm to the same target.
    #[error(
        "another command assigns an algorithm to {what} (pid {pid}): `wakeai use --undo {pid}` ends it"
    )]
    UseRuns {
        /// The other process.
        pid: ProcessId,
        /// The target.
        what: String,
    },
    /// Another experiment uses this machine.
    #[error(
        "another experiment of `wakeai field` uses this machine (pid {pid}): wait for its end; without its controlling command it \
         ends by itself"
    )]
    FieldRuns {
        /// The process of the other experiment.
        pid: ProcessId,
    },
    /// Another process has made the same change.
    #[error("process {pid} has made this change already: {change}; stop that process first")]
    Held {
        /// The other process.
        pid: ProcessId,
        /// The change.
        change: Box<Change>,
    },
    /// The lease file could not be read or written.
    #[error("cannot keep the record of changes in {state}/leases: {0}", state = crate::state().display())]
    Io(#[from] io::Error),
}

/// The changes of this process on the host. Each is recorded on disk before it is made.
///
/// A lease that is dropped without [`Lease::release`] leaves its file, as `kill -9` would. The next
/// [`crate::sweep`] then undoes the changes.
#[derive(Debug)]
pub struct Lease {
    registry: Registry,
    holder: Mutex<Holder>,
}

impl Lease {
    /// Takes the lease of this process.
    ///
    /// # Errors
    ///
    /// [`LeaseError::AgentRuns`] where `role` is an agent's and its network namespace already has
    /// an agent; [`LeaseError::UseRuns`] where another process has the same exclusive target;
    /// [`LeaseError::Io`] where `/run/wakeai` cannot be written, for example without root.
    pub fn take(role: Role) -> Result<Self, LeaseError> {
        Self::take_in(Registry::system(), role)
    }

    pub(crate) fn take_in(registry: Registry, role: Role) -> Result<Self, LeaseError> {
        static SEQUENCE: AtomicU32 = AtomicU32::new(0);
        let sequence = SEQUENCE.fetch_add(1, Ordering::Relaxed);
        let process = ProcessId::current()?;
        let holder = Holder { process, sequence, role, changes: Vec::new() };
        let _lock = registry.lock()?;
        for other in registry.holders()? {
            if let Some(refusal) = refusal(&holder.role, &other)
                && other.process.is_alive()
            {
                return Err(refusal);
            }
        }
        registry.write(&holder)?;
        Ok(Self { registry, holder: Mutex::new(holder) })
    }

    /// Records a change that is about to be made.
    ///
    /// # Errors
    ///
    /// Where the file cannot be written; then the change must not be made.
    pub fn record(&self, change: Change) -> Result<(), LeaseError> {
        self.edit(|changes| changes.push(change))
    }

    /// Records a change that only one process may make at a time.
    ///
    /// # Errors
    ///
    /// [`LeaseError::Held`] where a live process has recorded the same change, and the errors of
    /// [`Self::record`]. Then the change must not be made, and this lease will not undo it.
    pub fn record_alone(&self, change: Change) -> Result<(), LeaseError> {
        let mut editing = self.editing()?;
        for other in editing.registry.holders()? {
            if other.changes.contains(&change) && other.process.is_alive() {
                return Err(LeaseError::Held { pid: other.process, change: Box::new(change) });
            }
        }
        editing.write(|changes| changes.push(change))
    }

    /// Removes the record of a change that was undone.
    ///
    /// # Errors
    ///
    /// Where the file cannot be written.
    pub fn forget(&self, change: &Change) -> Result<(), LeaseError> {
        self.edit(|changes| changes.retain(|other| other != change))
    }

    /// Replaces the record of a change by a more complete one.
    pub(crate) fn replace(&self, before: &Change, after: Change) -> Result<(), LeaseError> {
        self.edit(|changes| {
            changes.retain(|other| other != before);
            changes.push(after);
        })
    }

    /// The changes that are recorded now, the oldest first.
    pub fn changes(&self) -> Vec<Change> {
        self.holder.lock().unwrap_or_else(PoisonError::into_inner).changes.clone()
    }

    /// Where the second name of the socket with this number among the changes is.
    pub(crate) fn spare_path(&self, number: usize) -> PathBuf {
        let holder = self.holder.lock().unwrap_or_else(PoisonError::into_inner);
        self.registry.path(&holder).with_extension(format!("{number}.socket"))
    }

    /// The file of the lease.
    pub(crate) fn path(&self) -> PathBuf {
        self.registry.path(&self.holder.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Writes the lease again, as it is in memory.
    pub(crate) fn write_again(&self) -> Result<(), LeaseError> {
        self.edit(|_| {})
    }

    /// The directory of the leases and the content of this one, to undo the changes.
    pub(crate) fn into_parts(self) -> (Registry, Holder) {
        (self.registry, self.holder.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    fn edit(&self, edit: impl FnOnce(&mut Vec<Change>)) -> Result<(), LeaseError> {
        self.editing()?.write(edit)
    }

    /// Locks the leases and returns the changes for editing.
    pub(crate) fn editing(&self) -> Result<Editing<'_>, LeaseError> {
        let holder = self.holder.lock().unwrap_or_else(PoisonError::into_inner);
        let lock = self.registry.lock()?;
        Ok(Editing { registry: &self.registry, holder, _lock: lock })
    }
}

/// The locked leases, with the changes of this process for editing.
pub(crate) struct Editing<'a> {
    registry: &'a Registry,
    holder: MutexGuard<'a, Holder>,
    _lock: Flock<File>,
}

impl Editing<'_> {
    /// Edits the changes on disk and in memory. After an error both are as before.
    pub(crate) fn write(&mut self, edit: impl FnOnce(&mut Vec<Change>)) -> Result<(), LeaseError> {
        let mut edited = self.holder.clone();
        edit(&mut edited.changes);
        self.registry.write(&edited)?;
        *self.holder = edited;
        Ok(())
    }
}

/// The error where `role` excludes the role of `other`; `None` where both may run at a time.
fn refusal(role: &Role, other: &Holder) -> Option<LeaseError> {
    let pid = other.process;
    match (role, &other.role) {
        (Role::Agent { netns: wanted, .. }, Role::Agent { netns, interface })
            if netns == wanted =>
        {
            Some(LeaseError::AgentRuns { pid, interface: interface.clone() })
        }
        (Role::Use { exclusive: Some(wanted) }, Role::Use { exclusive: Some(what) })
            if what == wanted =>
        {
            Some(LeaseError::UseRuns { pid, what: what.clone() })
        }
        (Role::Field { netns: wanted }, Role::Field { netns }) if netns == wanted => {
            Some(LeaseError::FieldRuns { pid })
        }
        _ => None,
    }
}
