//! SIGINT (Ctrl-C), SIGTERM and SIGHUP (a closed terminal) during a command that waits. The first signal ends the
//! command in good order, the second ends it at once.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use anyhow::Context as _;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use crate::failure::Failure;

/// If signal n has ended a process, a shell shows its exit status as this number plus n.
const BY_SIGNAL: i32 = 128;

/// The number of the signal that asked the command to end, or 0.
#[derive(Clone, Debug)]
pub(crate) struct Interrupt(Arc<AtomicUsize>);

impl Interrupt {
    /// Handles the signals from here on, until the process ends.
    pub(crate) fn install() -> Result<Self, Failure> {
        Self::try_install().context("cannot handle signals").map_err(Failure::failed)
    }

    fn try_install() -> io::Result<Self> {
        let (asked, signal) = (Arc::new(AtomicBool::new(false)), Arc::default());
        // nohup(1) ignores SIGHUP. The run then continues after its terminal was closed.
        let hangup = (!ignores(SIGHUP)?).then_some(SIGHUP);
        for number in [SIGINT, SIGTERM].into_iter().chain(hangup) {
            // The order matters: when the first signal arrives, this handler must see that the flag `asked` is not set
            // yet.
            flag::register_conditional_shutdown(number, BY_SIGNAL + number, Arc::clone(&asked))?;
            flag::register(number, Arc::clone(&asked))?;
            flag::register_usize(number, Arc::clone(&signal), number.unsigned_abs() as usize)?;
        }
        Ok(Self(signal))
    }

    /// Whether one of the signals has arrived.
    pub(crate) fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }

    /// The exit status of an interrupted command.
    pub(crate) fn exit_status(&self) -> u8 {
        BY_SIGNAL.unsigned_abs() as u8 + self.0.load(Ordering::Relaxed) as u8
    }
}

/// Returns when a signal asks the process to end, or when no signal can be waited for.
pub(crate) async fn terminated() {
    if let Err(error) = wakeai_daemon::terminated().await {
        tracing::error!(%error, "the signals SIGTERM and SIGINT cannot be handled: stopping");
    }
}

/// Whether this process ignores the signal: `SigIgn` of `proc_pid_status(5)` is a mask in hexadecimal.
pub(crate) fn ignores(signal: i32) -> io::Result<bool> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    Ok(mask >> (signal - 1) & 1 == 1)
}
