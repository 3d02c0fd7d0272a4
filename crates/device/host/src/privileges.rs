//! Checks a program's capabilities (capabilities(7)) when it starts, and drops all but a few once
//! it runs.
//!
//! The uid stays 0, without `CAP_DAC_OVERRIDE`. Root owns the sockets and the leases (the records
//! of changes), so the program can still remove them. Writing `/proc/sys/net` needs only
//! `CAP_NET_ADMIN` in the network namespace. Other steps need more: entering other namespaces,
//! mounting bpffs, looking for BPF programs by id. They come before the drop. A change whose
//! undoing needs such a step is undone by the next `wakeai` command that root runs.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use caps::{CapSet, CapsHashSet};
use nix::unistd::{Gid, Uid, setgroups, setresgid, setresuid};

pub use caps::Capability;

/// The kernel may list a thread for a moment after it was joined. This is the longest wait for that.
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
    #[error("cannot give up privileges: found {0} threads, expected 1")]
    Threads(usize),
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
/// [`PrivilegeError::Missing`] with the names of the capabilities. `program` is the subject of its
/// message, such as "the agent".
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

/// Drops all capabilities but `kept` permanently. They are also removed from the bounding set,
/// where that is allowed. `no_new_privs` prevents that an executed program gets a capability back.
/// A capability of `kept` that the process does not have is not added. The process must have one
/// thread; threads that start later inherit its capabilities.
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
    // The effective set is cut before the permitted set, because it must never exceed that set
    // (capset(2)). The ambient set shrinks with the inheritable set. Children inherit the
    // capabilities that systemd has put into the ambient and the inheritable set. nft needs them
    // when the packet rules are removed.
    for set in [CapSet::Inheritable, CapSet::Effective, CapSet::Permitted] {
        let held = caps::read(None, set).map_err(refused)?;
        let left: CapsHashSet = held.intersection(&kept).copied().collect();
        caps::set(None, set, &left).map_err(refused)?;
    }
    nix::sys::prctl::set_no_new_privs().map_err(refused)
}

/// A thread that was joined may still be listed for a moment, because the kernel wakes the joining thread first.
pub(crate) fn wait_for_one_thread() -> Result<(), PrivilegeError> {
    let give_up = Instant::now() + PATIENCE;
    loop {
        let threads = std::fs::read_dir("/proc/self/task").map_err(refused)?.count();
        if threads == 1 {
            return Ok(());
        }
        if Instant::now() >= give_up {
            return Err(PrivilegeError::Threads(threads));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Gives this process to `uid` and `gid` permanently, and takes it out of all other groups. The
/// process keeps its capabilities, so [`drop_privileges`] has to be called afterwards. The process
/// must have one thread.
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
