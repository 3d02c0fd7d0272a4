//! Child processes in a host's namespace. None of them outlives the lab.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::process::CommandExt;
use std::process::{self, ChildStdout, Command, ExitStatus, Stdio};

use nix::sched::{CloneFlags, setns};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use wakeai_host::{Change, Lease, ProcessId};
use wakeai_units::Duration;

use super::Host;
use crate::clock;
use crate::error::LabError;

/// The time between two checks of a child that is ending.
const POLL: std::time::Duration = std::time::Duration::from_millis(5);

/// A process in a host's namespace. Dropping this value kills the process.
///
/// The kernel also kills the process when the thread that started it ends (`PR_SET_PDEATHSIG`), so
/// it does not outlive a lab that was killed. If the process survives nevertheless, `wakeai sweep`
/// finds it in the lease, the record of the lab's changes. The program begins only after the lease
/// lists the process ([`held_back`]).
#[derive(Debug)]
pub(crate) struct Child {
    process: process::Child,
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
                io::ErrorKind::NotFound => LabError::Missing {
                    what: format!("the program {name}"),
                    remedy: "install it (`make deps` installs all that the lab needs)".to_owned(),
                },
                _ => LabError::System { action: format!("start {name}"), source: error },
            })?;
        let gate = process.stdin.take();
        let mut child = Self { process, station: host.name.clone(), registered: None };
        // After an error the child is dropped, which kills it.
        let id = ProcessId::of(child.id())
            .map_err(LabError::system(format!("identify the process of {name}")))?;
        lease.record(Change::Process(id))?;
        child.registered = Some(Change::Process(id));
        // If the process has already ended, writing fails; the caller notices the end.
        let _ = gate.map(|mut gate| gate.write_all(b"\n"));
        Ok(child)
    }

    /// The child's process id.
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// The child's exit status, if it has ended.
    pub(crate) fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.process.try_wait()
    }

    /// The child's standard output, if it is a pipe; `None` from the second call on.
    pub(crate) fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.process.stdout.take()
    }

    /// Waits at most `patience` for the child's end, and returns its exit status.
    pub(crate) fn wait_for(&mut self, patience: Duration) -> Option<ExitStatus> {
        let deadline = clock::now() + patience;
        loop {
            match self.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) if clock::now() < deadline => std::thread::sleep(POLL),
                _ => return None,
            }
        }
    }

    /// Sends SIGTERM to the child.
    pub(crate) fn terminate(&self) {
        // The kernel gives the pid to no other process until this process has waited for the child.
        if let Ok(pid) = i32::try_from(self.process.id()) {
            let _ = kill(Pid::from_raw(pid), Signal::SIGTERM);
        }
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
