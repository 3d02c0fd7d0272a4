//! Two processes in the place of one: what was changed as root only root can undo, while what reads from the
//! network is to be another user. One process serves as that user; the other one, which reads nothing but
//! signals, keeps the lease and undoes it when the first has ended.
//!
//! Order of calls: [`serving_user`] before anything is changed, [`block_signals`], [`split`]; then the serving
//! process calls [`serve_as`] and takes signals again, and the other one [`supervise`].

use std::io;

use nix::errno::Errno;
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, User, fork, geteuid, getppid};

use crate::privileges::{Capability, PrivilegeError, become_user, drop_privileges};

/// Why a program cannot serve as another user.
#[derive(Debug, thiserror::Error)]
pub enum ApartError {
    /// No user of this name.
    #[error("there is no user named {name:?}: name one of this machine's, such as --user nobody")]
    NoUser {
        /// What was asked for.
        name: String,
    },
    /// Only root can become another user.
    #[error("to serve as another user takes root: run as root, or leave --user out")]
    NeedsRoot,
    /// The serving process has ended by itself.
    #[error("the process that serves has ended by itself; its log says why")]
    Ended,
    /// A privilege could not be given up.
    #[error(transparent)]
    Privilege(#[from] PrivilegeError),
    /// The kernel refused.
    #[error("cannot {asked}: {source}")]
    System {
        /// What was asked.
        asked: &'static str,
        /// Its reason.
        source: io::Error,
    },
}

fn refused(asked: &'static str) -> impl FnOnce(Errno) -> ApartError {
    move |errno| ApartError::System { asked, source: io::Error::from(errno) }
}

/// The user of this name, whom this process may become.
///
/// # Errors
///
/// [`ApartError::NoUser`] and [`ApartError::NeedsRoot`].
pub fn serving_user(name: &str) -> Result<User, ApartError> {
    let found = User::from_name(name).map_err(refused("look a user up"))?;
    let user = found.ok_or_else(|| ApartError::NoUser { name: name.to_owned() })?;
    if geteuid().is_root() { Ok(user) } else { Err(ApartError::NeedsRoot) }
}

/// Lets the signals that [`supervise`] hands on wait; returns the mask that was in force.
///
/// # Errors
///
/// Where the kernel refuses.
pub fn block_signals() -> Result<SigSet, ApartError> {
    handed().thread_swap_mask(SigmaskHow::SIG_BLOCK).map_err(refused("block signals"))
}

fn handed() -> SigSet {
    use Signal::{SIGCHLD, SIGHUP, SIGINT, SIGTERM, SIGUSR1};
    [SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGCHLD].into_iter().collect()
}

/// Which of the two processes this is.
#[derive(Clone, Copy, Debug)]
pub enum Apart {
    /// The one that serves; this is its parent.
    Serving(Pid),
    /// The one that undoes everything when that child has ended.
    Supervising(Pid),
}

/// Splits the process, which must have one thread.
///
/// # Errors
///
/// Where it has more threads, or the kernel refuses.
#[allow(unsafe_code, reason = "no crate at hand wraps fork(2)")]
pub fn split() -> Result<Apart, ApartError> {
    let read = std::fs::read_dir("/proc/self/task");
    let threads =
        read.map_err(|source| ApartError::System { asked: "count threads", source })?.count();
    if threads != 1 {
        return Err(PrivilegeError::Threads { threads }.into());
    }
    let parent = Pid::this();
    // SAFETY: the process has one thread, so the child finds no lock that a thread which it does not have
    // would hold.
    match unsafe { fork() }.map_err(refused("start the serving process"))? {
        ForkResult::Parent { child } => Ok(Apart::Supervising(child)),
        ForkResult::Child => Ok(Apart::Serving(parent)),
    }
}

/// Makes this process the user's, with no capabilities but `kept`. It ends when its parent does, because then
/// nobody would undo anything.
///
/// # Errors
///
/// Where the kernel refuses, or the parent has ended.
pub fn serve_as(user: &User, kept: &[Capability], parent: Pid) -> Result<(), ApartError> {
    become_user(user.uid, user.gid)?;
    drop_privileges(kept)?;
    // After the change of the uid, which ends this, too (prctl(2)).
    set_pdeathsig(Signal::SIGKILL).map_err(refused("end with the parent"))?;
    if getppid() == parent { Ok(()) } else { Err(ApartError::Ended) }
}

/// Keeps no capabilities but `kept` and `CAP_KILL`, and hands signals on to the serving process until it has
/// ended. The caller has blocked them.
///
/// # Errors
///
/// [`ApartError::Ended`] where it has not ended in order.
pub fn supervise(child: Pid, kept: &[Capability]) -> Result<(), ApartError> {
    let mut kept = kept.to_vec();
    kept.push(Capability::CAP_KILL); // the child is another user's
    drop_privileges(&kept)?;
    let handed = handed();
    loop {
        match handed.wait().map_err(refused("wait for signals"))? {
            Signal::SIGCHLD => {}
            // Not waited for yet, so the pid is still this child's.
            signal => match kill(child, signal) {
                Ok(()) | Err(Errno::ESRCH) => {}
                Err(errno) => return Err(refused("reach the serving process")(errno)),
            },
        }
        match waitpid(child, Some(WaitPidFlag::WNOHANG)).map_err(refused("wait for it"))? {
            WaitStatus::Exited(_, 0) => return Ok(()),
            WaitStatus::Exited(..) | WaitStatus::Signaled(..) => return Err(ApartError::Ended),
            _ => {}
        }
    }
}
