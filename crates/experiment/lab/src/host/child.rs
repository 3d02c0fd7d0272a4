//! Child processes in a host's namespace. None of them outlives the lab.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::process::CommandExt;
use std::process::{self, Command, ExitStatus, Stdio};

use nix::sched::{CloneFlags, setns};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;
use wakeai_host::{Change, Lease, ProcessId};
use wakeai_units::Duration;

use super::Host;
use crate::clock;
use crate::error::LabError;

/// The time between two checks of a child that is ending.
const POLL: std::time::Duration = std::time::Duration::from_millis(5);
/// The longest search for a moment at which a child waits, and the time between two looks.
const WAIT_PATIENCE: Duration = Duration::from_millis(200);
const WAIT_POLL: std::time::Duration = std::time::Duration::from_micros(200);
/// The system calls in which a program waits for its files and sockets.
const WAITING_CALLS: &[libc::c_long] = &[
    libc::SYS_read,
    libc::SYS_recvfrom,
    libc::SYS_pselect6,
    libc::SYS_ppoll,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_select,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
];

/// A process in a host's namespace. Dropping this value kills the process.
///
/// The kernel also kills the process when the thread that started it ends (`PR_SET_PDEATHSIG`), so
/// it does not outlive a lab that was killed. If the process survives nevertheless, `wakeai sweep`
/// finds it in the lease, the record of the lab's changes. The program begins only after the lease
/// lists the process ([`held_back`]).
#[derive(Debug)]
pub(crate) struct Child {
    pub(crate) process: process::Child,
    /// The name of the process's host.
    pub(crate) station: String,
    registered: Option<Change>,
}

impl Child {
    /// Starts `command`, which [`held_back`] has made, inside `host`. The child has a process group
    /// of its own, so that Ctrl-C at the terminal reaches only the lab. The calling thread must
    /// outlive the child.
    pub(crate) fn spawn(
        command: &mut Command,
        host: &Host,
        lease: &Lease,
    ) -> Result<Self, LabError> {
        let name = command.get_program().to_string_lossy().into_owned();
        let namespace = host
            .namespace_file()
            .map_err(LabError::system(format!("open the namespace of {}", host.name)))?;
        command.process_group(0).stdin(Stdio::piped());
        let spawn = || command.spawn();
        let mut process = in_namespace(&namespace, spawn)
            .map_err(LabError::system(format!("enter the namespace of {}", host.name)))?
            .map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => LabError::missing(
                    format!("the program {name}"),
                    "install it (`make deps` installs all that the lab needs)",
                ),
                _ => LabError::System { action: format!("start {name}"), source: error },
            })?;
        let gate = process.stdin.take();
        let mut child = Self { process, station: host.name.clone(), registered: None };
        // After an error the child is dropped, which kills it.
        let id = ProcessId::of(child.process.id())
            .map_err(LabError::system(format!("identify the process of {name}")))?;
        lease.record(Change::Process(id))?;
        child.registered = Some(Change::Process(id));
        // If the process has already ended, writing fails; the caller notices the end.
        let _ = gate.map(|mut gate| gate.write_all(b"\n"));
        Ok(child)
    }

    /// Waits at most `patience` for the child's end, and returns its exit status.
    pub(crate) fn wait_for(&mut self, patience: Duration) -> Option<ExitStatus> {
        let deadline = clock::now() + patience;
        loop {
            match self.process.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) if clock::now() < deadline => std::thread::sleep(POLL),
                _ => return None,
            }
        }
    }

    /// Sends SIGTERM to the child.
    pub(crate) fn terminate(&self) {
        let _ = kill(self.pid(), Signal::SIGTERM);
    }

    /// Sends SIGTERM to the child while it waits in a system call. A child that computes for
    /// [`WAIT_PATIENCE`] without a wait gets the signal all the same.
    ///
    /// It is for programs whose signal handler does more than a handler may (signal-safety(7)), and
    /// must not interrupt their other code.
    pub(crate) fn terminate_while_it_waits(&self) {
        stop_while_it_waits(self.pid(), WAIT_PATIENCE);
        self.terminate();
        let _ = kill(self.pid(), Signal::SIGCONT);
    }

    /// The kernel gives this pid to no other process until the lab has waited for the child.
    fn pid(&self) -> Pid {
        Pid::from_raw(self.process.id().cast_signed())
    }

    /// Kills the child if it still runs, and removes it from the lease.
    pub(crate) fn end(mut self, lease: &Lease) -> Result<(), LabError> {
        self.reap();
        if let Some(change) = self.registered.take() {
            lease.forget(&change)?;
        }
        Ok(())
    }

    fn reap(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.reap();
    }
}

/// Stops a child of this process (SIGSTOP) in one of the [`WAITING_CALLS`]. Returns `false` where
/// the child has ended, and where it was in none of them for the time `patience`; it is stopped then,
/// too.
fn stop_while_it_waits(pid: Pid, patience: Duration) -> bool {
    let give_up = clock::now() + patience;
    loop {
        let _ = kill(pid, Signal::SIGSTOP);
        let ends = WaitPidFlag::WSTOPPED | WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
        if !matches!(waitid(Id::Pid(pid), ends), Ok(WaitStatus::Stopped(..))) {
            return false;
        }
        // The line begins with the number of the system call, or with -1 outside one (proc(5)).
        let call = fs::read_to_string(format!("/proc/{pid}/syscall")).unwrap_or_default();
        let call = call.split_ascii_whitespace().next().and_then(|number| number.parse().ok());
        if call.is_some_and(|call| WAITING_CALLS.contains(&call)) {
            return true;
        }
        if clock::now() >= give_up {
            return false;
        }
        let _ = kill(pid, Signal::SIGCONT);
        std::thread::sleep(WAIT_POLL);
    }
}

/// A command for [`Child::spawn`]. Its process dies with the calling thread, and begins the program
/// only after it has read a line from its standard input. The lab writes this line once it has
/// recorded the process. If the lab is killed before, the input ends without a line, and the
/// process ends. `PR_SET_PDEATHSIG` alone would not suffice, because the lab may be killed before
/// setpriv(1) has set it.
pub(crate) fn held_back(program: impl AsRef<OsStr>) -> Command {
    let mut command = dying_with_us("sh");
    command.args(["-c", "read -r _ && exec \"$@\" </dev/null", "sh"]).arg(program);
    command
}

/// A command that dies with the calling thread: setpriv(1) sets `PR_SET_PDEATHSIG`.
///
/// A closure between fork and exec could set it, too. But with such a closure the standard library
/// uses `fork`, which copies the page tables of the whole process and would delay the driver.
/// Without a closure it uses `vfork`.
pub(crate) fn dying_with_us(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).arg(program);
    command
}

/// Runs `work` in a namespace, and returns to the thread's own namespace afterwards. A child that
/// `work` starts begins in the namespace.
fn in_namespace<T>(namespace: &File, work: impl FnOnce() -> T) -> io::Result<T> {
    let home = File::open("/proc/thread-self/ns/net")?;
    setns(namespace, CloneFlags::CLONE_NEWNET)?;
    let result = work();
    setns(&home, CloneFlags::CLONE_NEWNET)?;
    Ok(result)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn a_child_is_stopped_where_it_waits_and_only_there() {
        // A shell that waits may come to it late on a busy machine.
        let long = Duration::from_secs(60);
        for (script, patience, waits) in [
            ("echo; read -r _", long, true),
            ("echo; while :; do :; done", Duration::from_millis(50), false),
        ] {
            let mut shell = Command::new("sh");
            shell.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut child = shell.spawn().unwrap();
            child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
            let pid = Pid::from_raw(child.id().cast_signed());
            assert_eq!(stop_while_it_waits(pid, patience), waits, "{script}");
            child.kill().unwrap();
            assert!(!stop_while_it_waits(pid, long), "a child that has ended");
            child.wait().unwrap();
        }
    }
}
