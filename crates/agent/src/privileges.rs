//! What the process may do: checked at start, and given up but for three capabilities.
//!
//! The uid stays 0, without `CAP_DAC_OVERRIDE`: root owns the agent's socket and lease, so they
//! can still be removed, and `/proc/sys/net` asks for `CAP_NET_ADMIN` in the namespace alone.
//! Whatever needs more (entering other namespaces, mounting bpffs, looking for programs by id)
//! happens before, or is left to the next command's sweep.

use caps::{CapSet, Capability, CapsHashSet};

/// What the agent keeps: loading and running its BPF programs, and its namespace's network
/// settings.
pub(crate) const KEPT: [Capability; 3] =
    [Capability::CAP_BPF, Capability::CAP_PERFMON, Capability::CAP_NET_ADMIN];

/// The privileges could not be checked or given up.
#[derive(Debug, thiserror::Error)]
pub enum PrivilegeError {
    /// The agent cannot work with what it has.
    #[error(
        "the agent needs {}, and this process lacks {missing}; start it as root, or as a service \
         of systemd with these capabilities", names(&KEPT)
    )]
    Missing {
        /// The capabilities that are not there.
        missing: String,
    },
    /// Other threads would keep their privileges.
    #[error("cannot give up privileges: found {threads} threads, expected 1")]
    Threads {
        /// How many there are.
        threads: usize,
    },
    /// The kernel refused.
    #[error("cannot give up privileges: {0}")]
    Kernel(String),
}

fn names(capabilities: &[Capability]) -> String {
    let names: Vec<_> = capabilities.iter().map(ToString::to_string).collect();
    names.join(", ")
}

fn refused(error: impl std::fmt::Display) -> PrivilegeError {
    PrivilegeError::Kernel(error.to_string())
}

/// Whether this process has what the agent keeps.
///
/// # Errors
/// [`PrivilegeError::Missing`] with the names.
pub(crate) fn require() -> Result<(), PrivilegeError> {
    let effective = caps::read(None, CapSet::Effective).map_err(refused)?;
    let missing: Vec<_> = KEPT.into_iter().filter(|wanted| !effective.contains(wanted)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(PrivilegeError::Missing { missing: names(&missing) })
}

/// Gives up everything but [`KEPT`], for good: in the bounding set too where that is allowed, and
/// with `no_new_privs`, so that nothing that is executed gets it back. Called while there is one
/// thread; threads started later inherit.
///
/// # Errors
/// Where there are more threads or the kernel refuses.
pub(crate) fn drop_to_kept() -> Result<(), PrivilegeError> {
    let threads = std::fs::read_dir("/proc/self/task").map_err(refused)?.count();
    if threads != 1 {
        return Err(PrivilegeError::Threads { threads });
    }
    let kept = CapsHashSet::from(KEPT);
    if caps::has_cap(None, CapSet::Effective, Capability::CAP_SETPCAP).map_err(refused)? {
        for capability in caps::runtime::thread_all_supported().difference(&kept) {
            caps::drop(None, CapSet::Bounding, *capability).map_err(refused)?;
        }
    }
    caps::clear(None, CapSet::Inheritable).map_err(refused)?;
    // Effective first: it must never exceed permitted (capset(2)).
    for set in [CapSet::Effective, CapSet::Permitted] {
        caps::set(None, set, &kept).map_err(refused)?;
    }
    nix::sys::prctl::set_no_new_privs().map_err(refused)
}
