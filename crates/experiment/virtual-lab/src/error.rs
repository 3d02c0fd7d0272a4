//! The errors of the lab in guests, and the exit status of each.

use wakeai_guest::GuestError;
use wakeai_lab::Lapse;
use wakeai_results::result::Report;
use wakeai_world::{Made, RunError};

/// A run in a guest failed, was interrupted, or was not faithful.
#[derive(Debug, thiserror::Error)]
pub enum VirtualLabError {
    /// The guest's clock counted more instructions than the run's times allow.
    #[error("the run {run} was not faithful: {lapse}")]
    Unfaithful {
        /// The run's condition and repeat.
        run: String,
        /// The bound that the run exceeded.
        lapse: Lapse,
        /// The report of all runs, including this run.
        report: Box<Report>,
    },
    /// A run failed after other runs had been made.
    #[error("{error}")]
    After {
        /// The failure.
        #[source]
        error: Box<VirtualLabError>,
        /// What was made before.
        made: Box<Made>,
    },
    /// An error that can happen in the simulator, too: in the scenario or the records, or an
    /// interruption.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The guest could not be made, or ended without a result.
    #[error(transparent)]
    Guest(#[from] GuestError),
    /// The lab in the guest failed.
    #[error("in the guest, {message}")]
    Inside {
        /// The lab's error.
        message: String,
        /// Its exit status.
        status: u8,
    },
    /// What the guest has sent cannot be read.
    #[error("the guest's answer cannot be read: {0}")]
    Answer(String),
}

impl VirtualLabError {
    /// The exit status of `wakeai lab`: as of the lab on this machine.
    pub fn exit_status(&self) -> u8 {
        match self {
            Self::Run(error) => error.exit_status(),
            Self::Guest(error) => error.exit_status(),
            Self::After { error, .. } => error.exit_status(),
            Self::Inside { status, .. } => *status,
            Self::Unfaithful { .. } | Self::Answer(_) => 1,
        }
    }
}
