//! Splits a program into two processes. The serving process reads from the network, and may become another user, so
//! that an attacker who takes it over is not root. The supervising process stays what it was, because only root can
//! undo the changes that root has made. It reads nothing but signals and the kernel's reports, and keeps the lease
//! (the record of these changes): it puts back what other programs undo meanwhile ([`crate::Watch`]), and takes back
//! what must not stay in force while the serving process hangs ([`WatchOthers::take_back`]). When the serving process
//! has ended, it undoes the changes.
//!
//! Order of calls: [`serving_user`] before anything is changed, [`block_signals`], [`serve_apart`]. The serving process then
//! starts its event loop and unblocks the signals. An event loop that ran before the split would be shared: the two
//! processes have all open files in common.

use std::io;
use std::os::fd::AsFd as _;
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, User, fork, geteuid, getppid};

use crate::lease::Lease;
use crate::privileges::{
    Capability, PrivilegeError, become_user, drop_privileges, wait_for_one_thread,
};
use crate::watch::{Keeper, Told, Watch, WatchOthers, channel};

/// The shortest time between two looks at the changes.
const PAUSE: Duration = Duration::from_millis(250);
/// The longest time between two checks whether the serving process hangs.
const CHECK_EVERY: Duration = Duration::from_millis(400);

/// The exit status of a process that ends because another program has changed what it holds on the
/// host, where that is not put back. It has a status of its own so that a service manager does not
/// start the process again, which would make the change anew.
pub const LOST_STATUS: u8 = 3;

/// A program cannot serve in a process of its own, or as another user.
#[derive(Debug, thiserror::Error)]
pub enum ApartError {
    /// No user of this name.
    #[error("there is no user named {0:?}: name a user of this machine, such as --user nobody")]
    NoUser(String),
    /// Only root can become another user.
    #[error("serving as another user needs root: run as root, or leave --user out")]
    NeedsRoot,
    /// The serving process has ended by itself.
    #[error("the serving process has ended by itself; see its log for the reason")]
    Ended,
    /// The serving process has ended with [`LOST_STATUS`].
    #[error(
        "the serving process has ended, because another program has changed what it holds on the host; see \
         its log for what was found, and start it again when that program is done"
    )]
    Lost,
    /// A privilege could not be given up.
    #[error(transparent)]
    Privilege(#[from] PrivilegeError),
    /// The kernel refused.
    #[error("cannot {asked}: {source}")]
    System {
        /// The operation.
        asked: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
}

fn refused(asked: &'static str) -> impl FnOnce(Errno) -> ApartError {
    move |errno| ApartError::System { asked, source: io::Error::from(errno) }
}

/// The user of this name. Only root may become another user.
///
/// # Errors
///
/// [`ApartError::NoUser`] and [`ApartError::NeedsRoot`].
pub fn serving_user(name: &str) -> Result<User, ApartError> {
    let found = User::from_name(name).map_err(refused("look a user up"))?;
    let user = found.ok_or_else(|| ApartError::NoUser(name.to_owned()))?;
    if geteuid().is_root() { Ok(user) } else { Err(ApartError::NeedsRoot) }
}

/// Blocks the signals that the supervising process passes on. Returns the previous mask.
///
/// # Errors
///
/// Where the kernel refuses.
pub fn block_signals() -> Result<SigSet, ApartError> {
    passed_on().thread_swap_mask(SigmaskHow::SIG_BLOCK).map_err(refused("block signals"))
}

fn passed_on() -> SigSet {
    use Signal::{SIGCHLD, SIGHUP, SIGINT, SIGTERM, SIGUSR1};
    [SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGCHLD].into_iter().collect()
}

/// Serves in a second process, as `user` where one is given, and with the capabilities `to_serve` alone. The calling
/// process keeps the lease and the capabilities `to_undo` until the serving process has ended. What other programs undo
/// meanwhile it puts back, and tells the serving process. The caller has blocked the signals with [`block_signals`]. It
/// has one thread, and no event loop.
///
/// `serve` is called in the serving process alone, and returns its exit status. When the calling process dies, the
/// kernel sends the serving process the signal `orphaned`. A process that itself has to take something back handles this
/// signal; to others it is SIGKILL.
///
/// # Errors
///
/// [`ApartError::Ended`] where the serving process was killed or ended with an error, and
/// [`ApartError::Lost`] where it ended with [`LOST_STATUS`].
pub fn serve_apart(
    user: Option<&User>,
    lease: &Lease,
    [to_serve, to_undo]: [&[Capability]; 2],
    others: &dyn WatchOthers,
    orphaned: Signal,
    serve: impl FnOnce(&Told) -> u8,
) -> Result<(), ApartError> {
    let failed = |source| ApartError::System { asked: "open a channel", source };
    let (to, told) = channel().map_err(failed)?;
    let parent = Pid::this();
    match split()? {
        ForkResult::Child => {
            drop(to);
            let status = serve_as(user, to_serve, parent, orphaned).map_or_else(
                |error| {
                    tracing::error!(%error, "the serving process ends");
                    1
                },
                |()| serve(&told),
            );
            std::process::exit(status.into())
        }
        ForkResult::Parent { child } => {
            drop((serve, told));
            let mut kept = to_undo.to_vec();
            kept.extend(user.map(|_| Capability::CAP_KILL)); // the child belongs to another user
            supervise(child, &kept, &mut Keeper { watch: Watch::new(lease), lease, others, to })
        }
    }
}

/// Splits the process, which must have one thread.
#[allow(unsafe_code, reason = "no crate at hand wraps fork(2)")]
fn split() -> Result<ForkResult, ApartError> {
    wait_for_one_thread()?;
    // SAFETY: the process has one thread. So no other thread, which the child would not have, holds
    // a lock that the child needs.
    unsafe { fork() }.map_err(refused("start the serving process"))
}

/// Gives this process to `user`, if one is given, with the capabilities `kept` alone. From then on the kernel ends
/// this process by the signal `orphaned` when its parent ends: without the parent, no process would undo the changes.
fn serve_as(
    user: Option<&User>,
    kept: &[Capability],
    parent: Pid,
    orphaned: Signal,
) -> Result<(), ApartError> {
    if let Some(user) = user {
        become_user(user.uid, user.gid)?;
    }
    drop_privileges(kept)?;
    // The parent-death signal is set last, because a change of the uid clears it (prctl(2)).
    set_pdeathsig(orphaned).map_err(refused("end with the parent"))?;
    if getppid() == parent { Ok(()) } else { Err(ApartError::Ended) }
}

/// Keeps the capabilities `kept` alone, and passes signals on to the serving process `child` until that process has
/// ended. Meanwhile `keeper` looks after the changes.
fn supervise(child: Pid, kept: &[Capability], keeper: &mut Keeper<'_>) -> Result<(), ApartError> {
    drop_privileges(kept)?;
    let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
    let signals = SignalFd::with_flags(&passed_on(), flags).map_err(refused("wait for signals"))?;
    loop {
        keeper.look();
        keeper.others.take_back();
        wait(&signals, keeper).map_err(refused("wait for signals"))?;
        while let Some(signal) = signals.read_signal().map_err(refused("wait for signals"))? {
            let signal = i32::try_from(signal.ssi_signo).ok().map(Signal::try_from);
            let Some(Ok(signal)) = signal.filter(|signal| *signal != Ok(Signal::SIGCHLD)) else {
                continue;
            };
            // The kernel gives this PID to no other process before waitpid(2) has returned the
            // child's end.
            match kill(child, signal) {
                Ok(()) | Err(Errno::ESRCH) => {}
                Err(errno) => return Err(refused("reach the serving process")(errno)),
            }
        }
        match waitpid(child, Some(WaitPidFlag::WNOHANG))
            .map_err(refused("wait for the serving process"))?
        {
            WaitStatus::Exited(_, 0) => return Ok(()),
            WaitStatus::Exited(_, status) if status == i32::from(LOST_STATUS) => {
                return Err(ApartError::Lost);
            }
            WaitStatus::Exited(..) | WaitStatus::Signaled(..) => return Err(ApartError::Ended),
            _ => {}
        }
    }
}

/// Waits for a signal, for a report of the kernel, or until the next check is due. After a report the
/// kernel may make many more, so there is a pause between two looks, which a signal ends.
fn wait(signals: &SignalFd, keeper: &Keeper<'_>) -> Result<(), Errno> {
    let signal = || PollFd::new(signals.as_fd(), PollFlags::POLLIN);
    if poll_for(&mut [signal()], PAUSE)? {
        return Ok(());
    }
    let mut ready: Vec<_> =
        keeper.watch.sockets().map(|socket| PollFd::new(socket, PollFlags::POLLIN)).collect();
    ready.push(signal());
    poll_for(&mut ready, CHECK_EVERY).map(drop)
}

/// Waits at most this long, or until a signal comes. Returns whether anything is ready.
///
/// # Errors
///
/// Where the kernel refuses.
pub fn poll_for(ready: &mut [PollFd<'_>], longest: Duration) -> Result<bool, Errno> {
    // The time is rounded up, so that the wait does not end before a deadline.
    let longest = PollTimeout::try_from(longest.as_millis() + 1).unwrap_or(PollTimeout::MAX);
    match poll(ready, longest) {
        Ok(count) => Ok(count > 0),
        Err(Errno::EINTR) => Ok(false),
        Err(errno) => Err(errno),
    }
}
