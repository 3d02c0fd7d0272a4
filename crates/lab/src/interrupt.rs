//! Ctrl-C, SIGTERM and a closed terminal: the run ends in good order.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

use crate::error::LabError;

static ASKED: AtomicBool = AtomicBool::new(false);

/// While this lives, SIGINT, SIGTERM and SIGHUP ask the lab to end instead of killing the process.
#[derive(Debug)]
pub(crate) struct Interrupt {
    before: Vec<(Signal, SigAction)>,
}

extern "C" fn ask(_: libc::c_int) {
    ASKED.store(true, Ordering::Relaxed);
}

#[allow(unsafe_code, reason = "signal handlers can only be set by sigaction")]
impl Interrupt {
    /// Takes the signals over.
    pub(crate) fn install() -> io::Result<Self> {
        ASKED.store(false, Ordering::Relaxed);
        let action = SigAction::new(SigHandler::Handler(ask), SaFlags::empty(), SigSet::empty());
        let mut interrupt = Self { before: Vec::new() };
        for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
            // SAFETY: the handler only stores to an atomic.
            let before = unsafe { sigaction(signal, &action) }?;
            interrupt.before.push((signal, before));
        }
        Ok(interrupt)
    }

    /// An error where the user asked to end.
    #[allow(clippy::unused_self, reason = "meaningless before the handlers are installed")]
    pub(crate) fn check(&self) -> Result<(), LabError> {
        if ASKED.load(Ordering::Relaxed) { Err(LabError::Interrupted) } else { Ok(()) }
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
