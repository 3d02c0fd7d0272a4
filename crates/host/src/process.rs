//! Processes, identified by pid and start time, because pids are reused.

use std::fmt;
use std::io;
use std::path::PathBuf;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

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
    /// `NotFound` where there is none.
    pub fn of(pid: u32) -> io::Result<Self> {
        let stat = std::fs::read_to_string(PathBuf::from(format!("/proc/{pid}/stat")))?;
        let start_time = start_time(&stat).ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidData, format!("/proc/{pid}/stat has no field 22"))
        })?;
        let pid = i32::try_from(pid)
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "a pid above 2^31"))?;
        Ok(Self { pid, start_time })
    }

    /// Whether this process still runs. A zombie does not run: it has released its resources.
    pub fn is_alive(self) -> bool {
        let Ok(stat) = std::fs::read_to_string(format!("/proc/{}/stat", self.pid)) else {
            return false;
        };
        start_time(&stat) == Some(self.start_time) && !matches!(state(&stat), Some('Z' | 'X'))
    }

    /// Kills the process; returns `false` where it had ended.
    ///
    /// # Errors
    ///
    /// Where the signal was refused.
    pub fn kill(self) -> io::Result<bool> {
        if !self.is_alive() {
            return Ok(false);
        }
        match kill(Pid::from_raw(self.pid), Signal::SIGKILL) {
            Ok(()) => Ok(true),
            Err(Errno::ESRCH) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }
}

impl fmt::Display for ProcessId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pid.fmt(f)
    }
}

/// The fields after the command name, which is in parentheses and may contain any character.
fn fields(stat: &str) -> Option<std::str::SplitAsciiWhitespace<'_>> {
    Some(stat.get(stat.rfind(')')? + 1..)?.split_ascii_whitespace())
}

fn start_time(stat: &str) -> Option<u64> {
    fields(stat)?.nth(19)?.parse().ok() // field 22; the first after the name is field 3
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
        assert!(!earlier.kill().unwrap(), "a stranger with our pid must not be killed");
    }
}
