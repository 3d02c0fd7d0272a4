//! The errors of the field, and the exit status of each.

use std::io;
use std::path::PathBuf;

use wakeai_settings::Refused;
use wakeai_world::{Made, RunError};

/// An experiment on real machines could not be made.
#[derive(Debug, thiserror::Error)]
pub enum FieldError {
    /// The machines file could not be read.
    #[error("cannot read the machines {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The machines file is not one.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The machines are not those of the scenario.
    #[error("the machines do not fit the scenario: {0}")]
    Machines(String),
    /// Machines lack something, or cannot be reached (exit status 77).
    #[error("not every machine is ready:\n  {}\nwakeai field SCENARIO --machines FILE --check says more", .0.join("\n  "))]
    NotReady(Vec<String>),
    /// The runs that were made before belong to another command.
    #[error(
        "{}: it has runs of another command: {what}; repeat that command to go on, or remove the directory",
        path.display()
    )]
    OtherSession {
        /// The directory of the runs.
        path: PathBuf,
        /// What differs.
        what: String,
    },
    /// The runs could not be kept.
    #[error("cannot keep the runs in {}: {source}", path.display())]
    Keep {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// An error that the other worlds have, too.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The result could not be made after runs had been measured.
    #[error("{error}")]
    After {
        /// The failure.
        #[source]
        error: Box<FieldError>,
        /// What was made before.
        made: Box<Made>,
    },
}

impl FieldError {
    /// The exit status of `wakeai field`: 2 for bad files, 77 for machines that are not ready, that of
    /// [`RunError::exit_status`], and 1 for everything else.
    pub fn exit_status(&self) -> u8 {
        match self {
            Self::Unreadable { .. }
            | Self::Refused(_)
            | Self::Machines(_)
            | Self::OtherSession { .. } => 2,
            Self::NotReady(_) => 77,
            Self::Keep { .. } => 1,
            Self::Run(error) => error.exit_status(),
            Self::After { error, .. } => error.exit_status(),
        }
    }
}
