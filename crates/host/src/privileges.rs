//! Capabilities (capabilities(7)), which are checked when a program starts. Once it runs, all but a few are dropped.
//!
//! The uid stays 0, without `CAP_DAC_OVERRIDE`: root owns the leases and sockets, so they can still
//! be removed, and writing `/proc/sys/net` takes `CAP_NET_ADMIN` in the namespace alone. Steps that need
//! more (entering other namespaces, mounting bpffs, looking for BPF programs by id) precede the
//! drop, or are left to the next command's sweep.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use caps::{CapSet, CapsHashSet};
use nix::unistd::{Gid, Uid, setgroups, setresgid, setresuid};

pub use caps::Capability;

/// The time in which threads that have been joined end.
const PATIENCE: Duration = Duration::from_secs(1);

/// The privileges could not be checked or dropped.
#[derive(Debug, thiserror::Error)]
pub enum PrivilegeError {
    /// The program needs capabilities that the process does not have.
    #[error(
        "{program} needs {needed}, and this process lacks {missing}; start it as root, or as a \
         service of systemd with these capabilities"
    )]
    Missing {
        /// The program.
        program: &'static str,
        /// All capabilities that it needs.
        needed: String,
        /// Those that the process does not have.
        missing: String,
    },
    /// Other threads would keep their privileges.
    #[error("cannot give up privileges: found {threads} threads, expected 1")]
    Threads {
        /// The number of threads.
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

/// The effective capabilities of the calling thread.
///
/// # Errors
///
/// Where the kernel refuses.
pub fn effective_privileges() -> Result<HashSet<Capability>, PrivilegeError> {
    caps::read(None, CapSet::Effective).map_err(refused)
}

/// Checks that this process has the capabilities `needed`.
///
/// # Errors
///
/// [`PrivilegeError::Missing`] with the names; `program` is its subject ("the agent").
pub fn require_privileges(
    program: &'static str,
    needed: &[Capability],
) -> Result<(), PrivilegeError> {
    let effective = effective_privileges()?;
    let missing: Vec<_> =
        needed.iter().copied().filter(|wanted| !effective.contains(wanted)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(PrivilegeError::Missing { program, needed: names(needed), missing: names(&missing) })
}

/// Drops all capabilities but `kept` permanently. They are also removed from the bounding set, where that is allowed,
/// and `no_new_privs` prevents that an executed program gets one back. A capability of `kept` that the process does
/// not have is not added. The process must have one thread; threads that start later inherit the sets.
///
/// # Errors
///
/// Where there are more threads or the kernel refuses.
pub fn drop_privileges(kept: &[Capability]) -> Result<(), PrivilegeError> {
    wait_for_one_thread()?;
    let kept: CapsHashSet = kept.iter().copied().collect();
    if caps::has_cap(None, CapSet::Effective, Capability::CAP_SETPCAP).map_err(refused)? {
        for capability in caps::runtime::thread_all_supported().difference(&kept) {
            caps::drop(None, CapSet::Bounding, *capability).map_err(refused)?;
        }
    }
    // The effective set comes first, because it must never exceed the permitted set (capset(2)). The ambient set
    // shrinks with the inheritable one. Children keep the capabilities that a service has in both (nft needs them at
    // the end).
    for set in [CapSet::Inheritable, CapSet::Effective, CapSet::Permitted] {
        let held = caps::read(None, set).map_err(refused)?;
        let left: CapsHashSet = held.intersection(&kept).copied().collect();
        caps::set(None, set, &left).map_err(refused)?;
    }
    nix::sys::prctl::set_no_new_privs().map_err(refused)
}

/// A thread that was joined may still be listed for a moment, because the kernel wakes the joining thread first.
fn wait_for_one_thread() -> Result<(), PrivilegeError> {
    let give_up = Instant::now() + PATIENCE;
    loop {
        let threads = std::fs::read_dir("/proc/self/task").map_err(refused)?.count();
        if threads == 1 {
            return Ok(());
        }
        if Instant::now() >= give_up {
            return Err(PrivilegeError::Threads { threads });
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Gives this process to `uid` and `gid`, in no other group, permanently. It keeps its capabilities, so
/// [`drop_privileges`] is called after it. The process must have one thread.
///
/// # Errors
///
/// Where the kernel refuses.
pub fn become_user(uid: Uid, gid: Gid) -> Result<(), PrivilegeError> {
    nix::sys::prctl::set_keepcaps(true).map_err(refused)?;
    setgroups(&[]).map_err(refused)?;
    setresgid(gid, gid, gid).map_err(refused)?;
    setresuid(uid, uid, uid).map_err(refused)?;
    // The change of the uid has cleared the effective set (capabilities(7)).
    let permitted = caps::read(None, CapSet::Permitted).map_err(refused)?;
    caps::set(None, CapSet::Effective, &permitted).map_err(refused)
}
