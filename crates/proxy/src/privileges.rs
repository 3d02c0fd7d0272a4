//! The privileges that the proxy keeps once it listens, and the user that serves.

use std::io;

use nix::errno::Errno;
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, User, fork, getppid};
use wakeai_host::{Capability, become_user, drop_privileges};
use wakeai_kernel::Bounded;

use crate::config::Config;
use crate::error::ProxyError;

/// The capabilities for serving connections, and for undoing all changes at the end.
pub(crate) fn kept(config: &Config) -> Vec<Capability> {
    let mut kept = to_serve(config);
    // To unload the algorithms as their last holder.
    if config.algorithm.as_deref().is_some_and(is_ours) {
        kept.extend([Capability::CAP_BPF, Capability::CAP_PERFMON]);
    }
    kept
}

/// The capabilities for serving connections.
fn to_serve(config: &Config) -> Vec<Capability> {
    let mut kept = Vec::new();
    let transparent = config.transparent.is_any();
    // For restricted congestion controls, foreign addresses and marks; and for nft(8) and ip(8) at the end.
    if transparent || config.algorithm.is_some() {
        kept.push(Capability::CAP_NET_ADMIN);
    }
    // A client's port may be below 1024, and the proxy uses the same port towards the destination.
    if transparent {
        kept.push(Capability::CAP_NET_BIND_SERVICE);
    }
    // Target rates are written into a BPF map.
    if !config.rates.is_empty() {
        kept.push(Capability::CAP_BPF);
    }
    kept
}

/// Whether the congestion control is one that Wakeai loads.
pub(crate) fn is_ours(name: &str) -> bool {
    Bounded::ALL.iter().any(|bounded| bounded.name == name)
}

/// The user that serves; `None`: the caller.
pub(crate) fn user(config: &Config) -> Result<Option<User>, ProxyError> {
    let Some(name) = &config.user else { return Ok(None) };
    let found = User::from_name(name).map_err(refused("look a user up"))?;
    let user = found.ok_or_else(|| ProxyError::NoUser { name: name.clone() })?;
    if nix::unistd::geteuid().is_root() { Ok(Some(user)) } else { Err(ProxyError::UserNeedsRoot) }
}

/// Makes this process one of the user, with the capabilities for serving.
pub(crate) fn serve_as(user: &User, config: &Config) -> Result<(), ProxyError> {
    become_user(user.uid, user.gid)?;
    Ok(drop_privileges(&to_serve(config))?)
}

/// Which of the two processes this is.
pub(crate) enum Served {
    /// The process that serves, with the id of its parent.
    Here(Pid),
    /// The process that undoes all changes when this child has ended.
    By(Pid),
}

/// Forks the process that serves: only root can undo what was changed as root.
#[allow(unsafe_code, reason = "no crate at hand wraps fork(2)")]
pub(crate) fn serve_apart() -> Result<Served, ProxyError> {
    let parent = Pid::this();
    // SAFETY: the process has one thread (`Config::user` asks for it, and `drop_privileges` checks it in
    // both processes), so the child finds no lock that a thread which it does not have would hold.
    match unsafe { fork() }.map_err(refused("start the serving process"))? {
        ForkResult::Parent { child } => Ok(Served::By(child)),
        ForkResult::Child => Ok(Served::Here(parent)),
    }
}

/// Makes the kernel end this process with its parent, which undoes the changes. To be called after
/// [`serve_as`], because a change of the uid clears the setting (prctl(2)).
pub(crate) fn end_with(parent: Pid) -> Result<(), ProxyError> {
    set_pdeathsig(Signal::SIGKILL).map_err(refused("end with the parent"))?;
    if getppid() == parent { Ok(()) } else { Err(ProxyError::Ended) }
}

/// Ends the serving process; its parent does the rest.
pub(crate) fn end_serving(served: &Result<(), ProxyError>) -> ! {
    if let Err(error) = served {
        tracing::error!(%error, "the serving process ends");
    }
    std::process::exit(i32::from(served.is_err()))
}

/// Forwards signals to the serving process until it has ended. The caller has blocked them.
pub(crate) fn supervise(child: Pid, config: &Config) -> Result<(), ProxyError> {
    let mut kept = kept(config);
    kept.push(Capability::CAP_KILL); // the child is another user's
    drop_privileges(&kept)?;
    let handed = [Signal::SIGTERM, Signal::SIGINT, Signal::SIGUSR1, Signal::SIGCHLD];
    let handed: SigSet = handed.into_iter().collect();
    loop {
        match handed.wait().map_err(refused("wait for signals"))? {
            Signal::SIGCHLD => {}
            signal => match kill(child, signal) {
                Ok(()) | Err(Errno::ESRCH) => {}
                Err(errno) => return Err(refused("reach the serving process")(errno)),
            },
        }
        match waitpid(child, Some(WaitPidFlag::WNOHANG)).map_err(refused("wait for it"))? {
            WaitStatus::Exited(_, 0) => return Ok(()),
            WaitStatus::Exited(..) | WaitStatus::Signaled(..) => return Err(ProxyError::Ended),
            _ => {}
        }
    }
}

fn refused(asked: &'static str) -> impl FnOnce(Errno) -> ProxyError {
    move |errno| ProxyError::System { asked, source: io::Error::from(errno) }
}
