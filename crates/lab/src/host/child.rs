//! Child processes in a host's namespace, which never outlive the lab.

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

/// A process in a host's namespace. Dropping it kills it.
///
/// The kernel also kills it when the thread that started it ends (`PR_SET_PDEATHSIG`), so it does
/// not outlive a lab that was killed. If both fail, `wakeai sweep` finds it in the lease. Its program
/// begins only after the lease lists it ([`held_back`]).
#[derive(Debug)]
pub(crate) struct Child {
    process: process::Child,
    /// The name of its host.
    pub(crate) station: String,
    registered: Option<Change>,
}

impl Child {
    /// Starts `command` (of [`held_back`]) inside `host`, without standard input and in a process group of its own: a
    /// Ctrl-C at the terminal goes to the lab only. The calling thread must outlive the child.
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
        // On an error the child is dropped, and so killed.
        let id = ProcessId::of(child.id())
            .map_err(LabError::system(format!("identify the process of {name}")))?;
        lease.record(Change::Process(id))?;
        child.registered = Some(Change::Process(id));
        // Where the process has ended already, this fails, and the caller notices the end.
        let _ = gate.map(|mut gate| gate.write_all(b"\n"));
        Ok(child)
    }

    /// Its process id.
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Its exit status, if it has ended.
    pub(crate) fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.process.try_wait()
    }

    /// Its standard output, if that is a pipe; `None` from the second call on.
    pub(crate) fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.process.stdout.take()
    }

    /// Waits at most `patience` for its end, and returns its exit status.
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

    /// Sends it SIGTERM.
    pub(crate) fn terminate(&self) {
        // The child was not waited for yet, so the pid is still its own.
        if let Ok(pid) = i32::try_from(self.process.id()) {
            let _ = kill(Pid::from_raw(pid), Signal::SIGTERM);
        }
    }

    /// Kills it if it still runs, and removes it from the lease.
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

/// A command for [`Child::spawn`]: it dies with the calling thread, and its program begins only after a line on its
/// standard input. If the lab is killed before it has recorded the process, the input ends without a line, and the
/// process ends. `PR_SET_PDEATHSIG` alone has no effect if the parent is killed before setpriv(1) has set it.
pub(crate) fn held_back(program: impl AsRef<OsStr>) -> Command {
    let mut command = dying_with_us("sh");
    command.args(["-c", "read -r _ && exec \"$@\" </dev/null", "sh"]).arg(program);
    command
}

/// A command that dies with the calling thread: setpriv(1) sets `PR_SET_PDEATHSIG`.
///
/// Code between fork and exec could do the same, but the standard library would then copy the page
/// tables of the whole process for each child, which would delay the driver. Without such code it
/// uses `vfork`.
pub(crate) fn dying_with_us(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).arg(program);
    command
}

/// Runs `work` in a namespace, and returns to the thread's own afterwards. A child starts in the
/// namespace of the thread.
fn in_namespace<T>(namespace: &File, work: impl FnOnce() -> T) -> io::Result<T> {
    let home = File::open("/proc/thread-self/ns/net")?;
    setns(namespace, CloneFlags::CLONE_NEWNET)?;
    let result = work();
    setns(&home, CloneFlags::CLONE_NEWNET)?;
    Ok(result)
}
