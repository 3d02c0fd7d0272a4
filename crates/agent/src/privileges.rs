//! What the agent keeps of its privileges: all else is given up once it has started.

use wakeai_host::{Capability, PrivilegeError, drop_privileges, require_privileges};

/// What the agent keeps: loading and running its BPF programs, and its namespace's network
/// settings.
const KEPT: [Capability; 3] =
    [Capability::CAP_BPF, Capability::CAP_PERFMON, Capability::CAP_NET_ADMIN];

/// Whether this process has what the agent keeps.
///
/// # Errors
/// [`PrivilegeError::Missing`] with the names.
pub(crate) fn require() -> Result<(), PrivilegeError> {
    require_privileges("the agent", &KEPT)
}

/// Gives up everything else, for good. Called while there is one thread.
///
/// # Errors
/// Where there are more threads or the kernel refuses.
pub(crate) fn drop_to_kept() -> Result<(), PrivilegeError> {
    drop_privileges(&KEPT)
}
