//! Why a scenario could not be simulated.

use wakeai_scenario::records::RecordsError;
use wakeai_world::{RadioError, UnknownCondition};

/// A simulation could not be made.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// The scenario asks for something that the simulator does not have.
    #[error("the simulator cannot run this scenario: {asked} ({remedy})")]
    Unsupported {
        /// The key and its value.
        asked: String,
        /// What to do about it.
        remedy: String,
    },
    /// The scenario's radio cannot be built.
    #[error("the simulator cannot run this scenario: {0}")]
    Radio(#[from] RadioError),
    /// A condition that there is not.
    #[error(transparent)]
    Condition(#[from] UnknownCondition),
    /// The user wanted it to end: [`crate::Progress::is_interrupted`].
    #[error("the run was interrupted; nothing of it was kept")]
    Interrupted,
    /// The records could not be written.
    #[error(transparent)]
    Records(#[from] RecordsError),
}

impl SimError {
    /// The exit status of `wakeai sim` (DESIGN §10): 2 for a scenario that this world cannot run, 130
    /// for a run that was interrupted (as Ctrl-C ends a program), 1 for everything else.
    pub fn exit_status(&self) -> u8 {
        match self {
            Self::Unsupported { .. } | Self::Radio(_) | Self::Condition(_) => 2,
            Self::Interrupted => 130,
            Self::Records(error) if error.is_usage() => 2,
            Self::Records(_) => 1,
        }
    }
}
