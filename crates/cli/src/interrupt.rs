//! Ctrl-C and SIGTERM while something is worked out: the first ends it in good order, the second at
//! once.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// What a shell shows of a process that a signal ended.
const BY_SIGNAL: i32 = 128;

/// Whether the user wants the command to end.
#[derive(Clone, Debug)]
pub(crate) struct Interrupt(Arc<AtomicUsize>);

impl Interrupt {
    /// Takes the signals over, for as long as the process lives.
    pub(crate) fn install() -> io::Result<Self> {
        let (asked, signal) = (Arc::new(AtomicBool::new(false)), Arc::default());
        for number in [SIGINT, SIGTERM] {
            // In this order: the first signal finds nothing asked yet.
            flag::register_conditional_shutdown(number, BY_SIGNAL + number, Arc::clone(&asked))?;
            flag::register(number, Arc::clone(&asked))?;
            flag::register_usize(number, Arc::clone(&signal), number.unsigned_abs() as usize)?;
        }
        Ok(Self(signal))
    }

    /// Whether a signal came.
    pub(crate) fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }

    /// The exit status of what was interrupted.
    pub(crate) fn exit_status(&self) -> u8 {
        BY_SIGNAL.unsigned_abs() as u8 + self.0.load(Ordering::Relaxed) as u8
    }
}
