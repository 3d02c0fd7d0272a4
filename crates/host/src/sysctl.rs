//! Sysctls of a network namespace, and a guard that changes one.

use std::io;
use std::path::PathBuf;

use crate::change::Change;
use crate::lease::{Lease, LeaseError};
use crate::namespace::NetnsId;

/// A sysctl could not be read, recorded or written.
#[derive(Debug, thiserror::Error)]
pub enum SysctlError {
    /// The kernel refused, or does not have it.
    #[error("sysctl {name}: {source}")]
    Io {
        /// In dotted form, such as `net.ipv4.tcp_congestion_control`.
        name: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// The lease could not be written, so nothing was changed.
    #[error(transparent)]
    Lease(#[from] LeaseError),
}

/// A changed sysctl of the namespace that the guard was made in.
///
/// [`SysctlGuard::restore`] puts the old value back where nobody has changed it since; so does
/// the lease when the process dies.
#[derive(Debug)]
#[must_use = "without `restore` the value is put back only when the lease is released"]
pub struct SysctlGuard {
    name: String,
    before: String,
    ours: String,
    netns: NetnsId,
}

/// The value of `name` (dotted form) in the calling thread's network namespace.
///
/// # Errors
///
/// Where the kernel does not have it.
pub fn read_sysctl(name: &str) -> io::Result<String> {
    Ok(std::fs::read_to_string(path(name))?.trim().to_owned())
}

impl SysctlGuard {
    /// Sets `name` (dotted form) to `value` in the calling thread's network namespace.
    ///
    /// # Errors
    ///
    /// Where the lease or the sysctl cannot be written; then nothing was changed.
    pub fn set(lease: &Lease, name: &str, value: &str) -> Result<Self, SysctlError> {
        let failed = |source| SysctlError::Io { name: name.to_owned(), source };
        let before = read_sysctl(name).map_err(failed)?;
        let netns = NetnsId::current().map_err(failed)?;
        let guard = Self { name: name.to_owned(), before, ours: value.to_owned(), netns };
        lease.record(guard.change())?;
        if let Err(source) = std::fs::write(path(name), value) {
            lease.forget(&guard.change())?;
            return Err(failed(source));
        }
        Ok(guard)
    }

    /// Puts the old value back, in the namespace of the calling thread, which must be the one
    /// that the guard was made in.
    ///
    /// # Errors
    ///
    /// Where the kernel or the lease refuses.
    pub fn restore(self, lease: &Lease) -> Result<(), SysctlError> {
        put_back(&self.name, &self.before, &self.ours)
            .map_err(|source| SysctlError::Io { name: self.name.clone(), source })?;
        lease.forget(&self.change())?;
        Ok(())
    }

    fn change(&self) -> Change {
        Change::Sysctl {
            netns: self.netns,
            name: self.name.clone(),
            before: self.before.clone(),
            ours: self.ours.clone(),
        }
    }
}

/// Writes `before` if the value still is `ours`; another value that was set since stays. Returns whether
/// it wrote.
pub(crate) fn put_back(name: &str, before: &str, ours: &str) -> io::Result<bool> {
    if read_sysctl(name)? != ours {
        return Ok(false);
    }
    std::fs::write(path(name), before)?;
    Ok(true)
}

fn path(name: &str) -> PathBuf {
    PathBuf::from("/proc/sys").join(name.replace('.', "/"))
}
