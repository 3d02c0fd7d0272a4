//! Real-time scheduling for the driver's thread, with limits that protect the rest of the machine.

use std::io;

use nix::sys::mman::{MlockAllFlags, mlockall, munlockall};
use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// The real-time priority of a thread that runs a medium, from the range 1 to 99.
const PRIORITY: i32 = 50;

/// The CPU time, in microseconds, that a real-time thread may use without blocking
/// (`RLIMIT_RTTIME`). A thread that exceeds it runs away, and the kernel kills the process: an
/// endless loop would otherwise occupy a processor for ever. The driver blocks many times per
/// millisecond, so it stays far below the limit.
const RUNAWAY_MICROS: u64 = 2_000_000;

/// Real-time settings of the process: its memory is locked, and runaway threads are limited.
/// Dropping this value restores the settings from before.
#[derive(Debug)]
pub struct Realtime {
    limit_before: Option<(u64, u64)>,
    locked: bool,
    /// The settings that could not be made, as notes for the user.
    pub missing: Vec<String>,
}

impl Realtime {
    /// Locks the memory of the process and limits runaway threads.
    pub fn prepare() -> Self {
        let mut missing = Vec::new();
        let limit_before = getrlimit(Resource::RLIMIT_RTTIME).ok().filter(|(_, hard)| {
            setrlimit(Resource::RLIMIT_RTTIME, RUNAWAY_MICROS.min(*hard), *hard).is_ok()
        });
        let locked = match mlockall(MlockAllFlags::MCL_CURRENT | MlockAllFlags::MCL_FUTURE) {
            Ok(()) => true,
            Err(errno) => {
                missing.push(format!("memory is not locked (mlockall: {errno})"));
                false
            }
        };
        Self { limit_before, locked, missing }
    }

    /// Whether runaway threads are limited. Only then may a thread become a real-time thread.
    pub fn guarded(&self) -> bool {
        self.limit_before.is_some()
    }
}

impl Drop for Realtime {
    fn drop(&mut self) {
        if self.locked {
            let _ = munlockall();
        }
        if let Some((soft, hard)) = self.limit_before {
            let _ = setrlimit(Resource::RLIMIT_RTTIME, soft, hard);
        }
    }
}

/// Makes the calling thread a real-time thread until it ends, with `SCHED_FIFO` and without timer
/// slack. Threads and processes that it starts have ordinary scheduling.
///
/// # Errors
///
/// The process lacks the privilege.
#[allow(unsafe_code, reason = "sched_setscheduler and prctl have no safe wrapper")]
pub fn enter() -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: PRIORITY };
    // SAFETY: both calls change only the calling thread, and `parameters` outlives them.
    let results = unsafe {
        [
            libc::prctl(libc::PR_SET_TIMERSLACK, 1, 0, 0, 0),
            libc::sched_setscheduler(
                0,
                libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK,
                &raw const parameters,
            ),
        ]
    };
    if results.contains(&-1) { Err(io::Error::last_os_error()) } else { Ok(()) }
}
