//! Ctrl-C, SIGTERM and a closed terminal: the run ends in good order, and at the second signal at
//! once.

use std::io;
use std::sync::atomic::{AtomicI32, Ordering};

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

use crate::error::LabError;

/// The signal; 0: none came.
static ASKED: AtomicI32 = AtomicI32::new(0);

/// While this lives, SIGINT, SIGTERM and SIGHUP ask the lab to end instead of killing the process.
#[derive(Debug)]
pub(crate) struct Interrupt {
    before: Vec<(Signal, SigAction)>,
}

#[allow(unsafe_code, reason = "what a signal handler may call has no safe form")]
extern "C" fn ask(signal: libc::c_int) {
    if ASKED.swap(signal, Ordering::Relaxed) != 0 {
        // SAFETY: async-signal-safe (signal-safety(7)). Children die with this process, and the next
        // command removes the rest.
        unsafe { libc::_exit(128 + signal) }
    }
}

#[allow(unsafe_code, reason = "signal handlers can only be set by sigaction")]
impl Interrupt {
    /// Takes the signals over.
    pub(crate) fn install() -> io::Result<Self> {
        ASKED.store(0, Ordering::Relaxed);
        let action = SigAction::new(SigHandler::Handler(ask), SaFlags::empty(), SigSet::empty());
        let mut interrupt = Self { before: Vec::new() };
        for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
            // SAFETY: the handler only swaps an atomic, or ends the process.
            let before = unsafe { sigaction(signal, &action) }?;
            if signal == Signal::SIGHUP && matches!(before.handler(), SigHandler::SigIgn) {
                // nohup(1): the run outlives the terminal.
                // SAFETY: what was in place before is put back.
                unsafe { sigaction(signal, &before) }?;
                continue;
            }
            interrupt.before.push((signal, before));
        }
        Ok(interrupt)
    }

    /// An error where the user asked to end.
    #[allow(clippy::unused_self, reason = "meaningless before the handlers are installed")]
    pub(crate) fn check(&self) -> Result<(), LabError> {
        match ASKED.load(Ordering::Relaxed) {
            0 => Ok(()),
            signal => Err(LabError::Interrupted { signal }),
        }
    }
}

#[allow(unsafe_code, reason = "as above")]
impl Drop for Interrupt {
    fn drop(&mut self) {
        for (signal, before) in &self.before {
            // SAFETY: the handler that was in place before is put back.
            let _ = unsafe { sigaction(*signal, before) };
        }
    }
}
