//! Asking an agent.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::json_line;
use crate::messages::{Answer, Body, Request, VERSION};

/// An agent could not be asked, or it refused.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// No agent listens there, or this process may not ask it.
    #[error("cannot ask the agent at {path}: {source}")]
    Socket {
        /// Its socket.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The answer is not of this version.
    #[error("the agent at {path} answered something else than version {VERSION}: {source}")]
    Answer {
        /// Its socket.
        path: PathBuf,
        /// What is wrong.
        source: io::Error,
    },
    /// The agent refused.
    #[error("the agent at {path} refused: {reason}")]
    Refused {
        /// Its socket.
        path: PathBuf,
        /// Why.
        reason: String,
    },
}

impl AskError {
    /// The answer of the agent at `path` belongs to another request.
    pub fn other_answer(path: &Path) -> Self {
        Self::Refused { path: path.to_owned(), reason: "it answered another request".to_owned() }
    }
}

/// Sends one request to the agent that listens at `path`. Each step waits at most `patience`.
///
/// # Errors
/// [`AskError`].
pub fn ask(path: &Path, request: Request, patience: Duration) -> Result<Body, AskError> {
    let path = path.to_owned();
    match json_line::exchange(&path, &request.question(), patience) {
        Ok(Answer { body: Body::Error(reason), .. }) => Err(AskError::Refused { path, reason }),
        Ok(Answer { body, .. }) => Ok(body),
        Err(source) if source.kind() == io::ErrorKind::InvalidData => {
            Err(AskError::Answer { path, source })
        }
        Err(source) => Err(AskError::Socket { path, source }),
    }
}
