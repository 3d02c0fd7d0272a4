//! Sysctls of a network namespace: reads them, sets them for the life of a process, and restores them.

use std::io;
use std::path::PathBuf;

use crate::change::{Change, Guard};
use crate::lease::{Lease, LeaseError};
use crate::namespace::NetnsId;

/// The sysctl that names the default congestion control algorithm of a namespace's new connections.
pub const DEFAULT_ALGORITHM: &str = "net.ipv4.tcp_congestion_control";

/// A sysctl could not be read, recorded or written.
#[derive(Debug, thiserror::Error)]
pub enum SysctlError {
    /// The kernel refused, or has no such sysctl.
    #[error("sysctl {name}: {source}")]
    Io {
        /// The name in dotted form, such as `net.ipv4.tcp_congestion_control`.
        name: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// The lease could not be written, so nothing was changed.
    #[error(transparent)]
    Lease(#[from] LeaseError),
}

/// The value of `name` (dotted form) in the calling thread's network namespace.
///
/// # Errors
///
/// Where the kernel has no such sysctl.
pub fn read_sysctl(name: &str) -> io::Result<String> {
    Ok(std::fs::read_to_string(path(name))?.trim().to_owned())
}

/// Sets `name` (dotted form) to `value` in the calling thread's network namespace.
///
/// # Errors
///
/// Where the lease or the sysctl cannot be written; then nothing was changed.
pub fn set_sysctl(lease: &Lease, name: &str, value: &str) -> Result<Guard, SysctlError> {
    let failed = |source| SysctlError::Io { name: name.to_owned(), source };
    let before = read_sysctl(name).map_err(failed)?;
    let netns = NetnsId::current().map_err(failed)?;
    let change = Change::Sysctl { netns, name: name.to_owned(), before, ours: value.to_owned() };
    lease.record(change.clone())?;
    if let Err(source) = write(name, value) {
        lease.forget(&change)?;
        return Err(failed(source));
    }
    Ok(Guard(change))
}

/// Restores `before` if the value still is `ours`; a value that was set later stays. Returns whether it wrote the
/// sysctl.
pub(crate) fn restore(name: &str, before: &str, ours: &str) -> io::Result<bool> {
    if read_sysctl(name)? != ours {
        return Ok(false);
    }
    write(name, before).map(|()| true)
}

/// Writes the sysctl.
pub(crate) fn write(name: &str, value: &str) -> io::Result<()> {
    std::fs::write(path(name), value)
}

fn path(name: &str) -> PathBuf {
    PathBuf::from("/proc/sys").join(name.replace('.', "/"))
}
