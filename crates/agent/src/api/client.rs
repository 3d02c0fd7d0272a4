//! Asking an agent.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Answer, Body, Request, VERSION};

/// An answer has some 200 bytes per connection and peer, and both are bounded.
const LONGEST_ANSWER: u64 = 16 << 20;

/// An agent could not be asked, or refused.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// No agent listens there, or it is not for us.
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
        source: serde_json::Error,
    },
    /// The agent says no.
    #[error("the agent at {path} refused: {reason}")]
    Refused {
        /// Its socket.
        path: PathBuf,
        /// Why.
        reason: String,
    },
}

/// Asks the agent that listens at `path` one question and waits at most `patience` for each step.
///
/// # Errors
/// [`AskError`].
pub fn ask(path: &Path, request: Request, patience: Duration) -> Result<Body, AskError> {
    let failed = |source| AskError::Socket { path: path.to_owned(), source };
    let wrong = |source| AskError::Answer { path: path.to_owned(), source };
    let mut stream = UnixStream::connect(path).map_err(failed)?;
    stream.set_read_timeout(Some(patience)).map_err(failed)?;
    stream.set_write_timeout(Some(patience)).map_err(failed)?;
    let mut line = serde_json::to_vec(&request.question()).map_err(wrong)?;
    line.push(b'\n');
    // An agent that turns us away says so and closes at once: its words are there to be read even
    // where ours could not be written.
    let written = stream.write_all(&line);
    let mut text = String::new();
    let read = BufReader::new(stream.take(LONGEST_ANSWER)).read_line(&mut text);
    if text.is_empty() {
        written.and(read.map(|_| ())).map_err(failed)?;
    }
    if text.is_empty() {
        return Err(failed(io::Error::new(
            io::ErrorKind::UnexpectedEof,
            "it closed without answer",
        )));
    }
    match serde_json::from_str::<Answer>(&text).map_err(wrong)?.body {
        Body::Error(reason) => Err(AskError::Refused { path: path.to_owned(), reason }),
        body => Ok(body),
    }
}
