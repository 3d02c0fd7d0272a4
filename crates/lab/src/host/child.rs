//! Child processes that live in a host's namespace and never outlive the lab.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::{self, ChildStdout, Command, ExitStatus};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use wakeai_host::{Change, Lease, ProcessId};
use wakeai_units::Duration;

use super::Host;
use crate::clock;
use crate::error::LabError;

/// Between two looks at a child that is ending.
const POLL: std::time::Duration = std::time::Duration::from_millis(5);

/// A process in a host's namespace. Dropping it kills it.
///
/// The kernel kills it as well when the thread that started it ends (`PR_SET_PDEATHSIG`), so it
/// does not outlive a lab that was killed; the lease names it for the case that it escapes both.
#[derive(Debug)]
pub(crate) struct Child {
    process: process::Child,
    /// Whose it is.
    pub(crate) station: String,
    registered: Option<Change>,
}

impl Child {
    /// Starts `command` inside `host`, in a process group of its own: a Ctrl-C at the terminal
    /// is for the lab alone.
    pub(crate) fn spawn(
        command: &mut Command,
        host: &Host,
        lease: &Lease,
    ) -> Result<Self, LabError> {
        let name = command.get_program().to_string_lossy().into_owned();
        let namespace = host
            .namespace_file()
            .map_err(LabError::system(format!("open the namespace of {}", host.name)))?;
        command.process_group(0);
        enter_before_exec(command, namespace);
        let process = command.spawn().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => LabError::Missing {
                what: format!("the program {name}"),
                remedy: "install it (`make deps` installs all that the lab needs)".to_owned(),
            },
            _ => LabError::System { action: format!("start {name}"), source: error },
        })?;
        let registered = ProcessId::of(process.id()).ok().map(Change::Process);
        let child = Self { process, station: host.name.clone(), registered };
        if let Some(change) = &child.registered {
            lease.record(change.clone())?; // on an error the child is dropped, and so killed
        }
        Ok(child)
    }

    /// The process id.
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// How it ended, if it has.
    pub(crate) fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.process.try_wait()
    }

    /// Its standard output, where that was asked to be a pipe; once.
    pub(crate) fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.process.stdout.take()
    }

    /// Waits for it to end, but not longer than `patience`; how it ended.
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

    /// Asks it to end.
    pub(crate) fn terminate(&self) {
        // Not yet waited for, so the pid is still this child's.
        if let Ok(pid) = i32::try_from(self.process.id()) {
            let _ = kill(Pid::from_raw(pid), Signal::SIGTERM);
        }
    }

    /// Kills it where it still runs, and strikes it out of the lease.
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

#[allow(unsafe_code, reason = "the child has to enter its namespace between fork and exec")]
fn enter_before_exec(command: &mut Command, namespace: File) {
    let parent = process::id();
    let enter = move || {
        // SAFETY: setns, prctl and getppid are async-signal-safe system calls, and the file was
        // opened before the fork.
        unsafe {
            if libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) < 0
                || libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) < 0
            {
                return Err(io::Error::last_os_error());
            }
            if libc::getppid().unsigned_abs() != parent {
                libc::_exit(1); // the lab died before it could be named as the parent
            }
        }
        Ok(())
    };
    // SAFETY: the closure only makes system calls and allocates nothing.
    unsafe { command.pre_exec(enter) };
}
