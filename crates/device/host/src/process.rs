//! Processes, identified by pid and start time, because pids are reused.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};

/// The flag of a task whose resources the kernel frees (`include/linux/sched.h`), in field 9 of
/// `/proc/PID/stat`.
const PF_EXITING: u32 = 4;
/// The longest wait for the end of a process that was killed.
const END_PATIENCE: Duration = Duration::from_secs(2);

/// A process: its pid and its start time in clock ticks since boot (proc(5), field 22 of `stat`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessId {
    /// The process id.
    pub pid: i32,
    /// The start time in clock ticks since boot.
    pub start_time: u64,
}

impl ProcessId {
    /// The calling process.
    ///
    /// # Errors
    ///
    /// Where `/proc` is not mounted.
    pub fn current() -> io::Result<Self> {
        Self::of(std::process::id())
    }

    /// The process that has this pid now.
    ///
    /// # Errors
    ///
    /// `NotFound` where no process has this pid.
    pub fn of(pid: u32) -> io::Result<Self> {
        let stat = std::fs::read_to_string(PathBuf::from(format!("/proc/{pid}/stat")))?;
        let start_time = start_time(&stat).ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidData, format!("/proc/{pid}/stat has no field 22"))
        })?;
        let pid = i32::try_from(pid)
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "a pid above 2^31"))?;
        Ok(Self { pid, start_time })
    }

    /// Whether this process still runs. A zombie counts as ended, because it has released its
    /// resources.
    pub fn is_alive(self) -> bool {
        let Ok(stat) = std::fs::read_to_string(format!("/proc/{}/stat", self.pid)) else {
            return false;
        };
        start_time(&stat) == Some(self.start_time) && !matches!(state(&stat), Some('Z' | 'X'))
    }

    /// Kills the process, and waits for its end; returns `false` where it had ended before.
    ///
    /// # Errors
    ///
    /// Where the signal was refused.
    pub fn kill(self) -> io::Result<bool> {
        let was_there = self.signal(Signal::SIGKILL)?;
        self.wait_for_end(|_| true);
        Ok(was_there)
    }

    /// Waits for the end of the process where it was killed or exits already, and returns at once
    /// where it goes on.
    pub(crate) fn wait_if_ending(self) {
        self.wait_for_end(Self::is_ending);
    }

    /// Waits for the end of the process, as long as `goes_on` says so. The kernel frees a process's
    /// resources before the process ends. That may take a moment, and longer where a device does not
    /// answer.
    fn wait_for_end(self, goes_on: impl Fn(Self) -> bool) {
        let give_up = Instant::now() + END_PATIENCE;
        while self.is_alive() && goes_on(self) && Instant::now() < give_up {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Whether the process has a SIGKILL that it has not taken yet, or the kernel frees its resources.
    fn is_ending(self) -> bool {
        let read = |file| std::fs::read_to_string(format!("/proc/{}/{file}", self.pid));
        let exits = read("stat").is_ok_and(|stat| {
            let flags: Option<u32> = fields(&stat).and_then(|mut all| all.nth(6)?.parse().ok());
            flags.is_some_and(|flags| flags & PF_EXITING != 0)
        });
        exits || read("status").is_ok_and(|status| has_sigkill(&status))
    }

    /// Sends a signal to the process; returns `false` where it had ended. The signal goes through a
    /// pidfd, a file that stands for one process (`pidfd_open(2)`). The pidfd is opened before the
    /// start time is compared, so another process that gets the same pid meanwhile does not receive
    /// the signal.
    ///
    /// # Errors
    ///
    /// Where the signal was refused.
    pub fn signal(self, signal: Signal) -> io::Result<bool> {
        self.signal_after(signal, || {})
    }

    /// Does what [`Self::signal`] does; `between` runs after the comparison and before the signal.
    fn signal_after(self, signal: Signal, between: impl FnOnce()) -> io::Result<bool> {
        let invalid = || io::Error::from(io::ErrorKind::InvalidInput);
        let pid = Pid::from_raw(self.pid).filter(|_| self.pid > 0).ok_or_else(invalid)?;
        let signal = rustix::process::Signal::from_named_raw(signal as i32).ok_or_else(invalid)?;
        let held = match pidfd_open(pid, PidfdFlags::empty()) {
            Err(Errno::SRCH) => return Ok(false),
            other => other?,
        };
        if !self.is_alive() {
            return Ok(false);
        }
        between();
        match pidfd_send_signal(held, signal) {
            Ok(()) => Ok(true),
            Err(Errno::SRCH) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }
}

impl fmt::Display for ProcessId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pid.fmt(f)
    }
}

/// The fields of `/proc/PID/stat` after the command name, which is in parentheses and may contain
/// any character.
fn fields(stat: &str) -> Option<std::str::SplitAsciiWhitespace<'_>> {
    Some(stat.get(stat.rfind(')')? + 1..)?.split_ascii_whitespace())
}

fn start_time(stat: &str) -> Option<u64> {
    fields(stat)?.nth(19)?.parse().ok() // `fields` begins with field 3 of the file: 3 + 19 = 22
}

/// Whether SIGKILL waits for the process, by the text of `/proc/PID/status`.
fn has_sigkill(status: &str) -> bool {
    let pending = |line: &str| {
        let mask = line.strip_prefix("SigPnd:").or_else(|| line.strip_prefix("ShdPnd:"))?;
        u64::from_str_radix(mask.trim(), 16).ok()
    };
    let sigkill = 1 << (Signal::SIGKILL as i32 - 1);
    status.lines().filter_map(pending).any(|mask| mask & sigkill != 0)
}

fn state(stat: &str) -> Option<char> {
    fields(stat)?.next()?.chars().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_spaces_and_parentheses_does_not_shift_the_fields() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4242 0 0";
        assert_eq!(start_time(stat), Some(4242));
        assert_eq!(state(stat), Some('S'));
    }

    #[test]
    fn a_pid_with_another_start_time_is_another_process() {
        let me = ProcessId::current().unwrap();
        assert!(me.is_alive());
        let earlier = ProcessId { start_time: me.start_time - 1, ..me };
        assert!(!earlier.is_alive());
        assert!(!earlier.kill().unwrap(), "another process with our PID must not be killed");
    }

    /// Starts a process that has this pid (clone(2), `set_tid`). The process runs until it is killed.
    #[allow(unsafe_code, reason = "no crate at hand wraps clone3(2)")]
    fn start_with(pid: i32) {
        let mut arguments = [0_u64; 11];
        arguments[4] = Signal::SIGCHLD as u64; // exit_signal
        arguments[8] = std::ptr::from_ref(&pid) as u64; // set_tid
        arguments[9] = 1; // set_tid_size
        // SAFETY: `size` is the length of the arguments, and the only memory that they point to is
        // `pid`. The child is a copy of this process with one thread, and only calls pause(2).
        unsafe {
            let (number, size) = (nix::libc::SYS_clone3, size_of_val(&arguments));
            let made = nix::libc::syscall(number, arguments.as_ptr(), size);
            if made == 0 {
                loop {
                    nix::libc::pause();
                }
            }
            assert_eq!(made, i64::from(pid), "{}", io::Error::last_os_error());
        }
    }

    #[test]
    fn a_signal_does_not_reach_a_process_that_reuses_the_pid() {
        use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
        if !nix::unistd::geteuid().is_root() {
            let required = std::env::var_os("WAKEAI_REQUIRE_KERNEL").is_some_and(|it| it == "1");
            assert!(!required, "WAKEAI_REQUIRE_KERNEL=1, but this is not root");
            let _ =
                io::Write::write_all(&mut io::stdout(), b"SKIPPED: choosing a pid needs root\n");
            return;
        }
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let process = ProcessId::of(child.id()).unwrap();
        let reached = process.signal_after(Signal::SIGKILL, || {
            child.kill().unwrap();
            child.wait().unwrap();
            start_with(process.pid);
        });
        let other = nix::unistd::Pid::from_raw(process.pid);
        let found = waitpid(other, Some(WaitPidFlag::WNOHANG));
        let _ = nix::sys::signal::kill(other, Signal::SIGKILL);
        let _ = waitpid(other, None);
        assert_eq!(found, Ok(WaitStatus::StillAlive), "the other process was reached");
        assert!(!reached.unwrap());
    }
}
