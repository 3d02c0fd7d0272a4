//! The reason why there is no scenario.

use std::path::PathBuf;

use wakeai_settings::{Problem, Refused};

/// A scenario that was refused.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// The scenario file could not be read.
    #[error("cannot read the scenario {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// The content is not a scenario.
    #[error(transparent)]
    Refused(#[from] Refused),
}

impl ScenarioError {
    /// The problems of the content; empty if the file could not be read.
    pub fn problems(&self) -> &[Problem] {
        match self {
            Self::Unreadable { .. } => &[],
            Self::Refused(refused) => &refused.problems,
        }
    }
}
