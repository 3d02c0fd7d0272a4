//! The client of an agent's API: one request, a repeated one, and a transfer's.

use std::collections::BTreeMap;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::json_line::{self, ExchangeError};
use crate::messages::{
    Answer, Body, BoundsReport, Peer, Request, Status, Targets, Transfer, VERSION,
};

/// A request to an agent failed, or the agent refused it.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// No agent listens at the path, this process may not connect to it, or it does not answer.
    #[error("cannot ask the agent at {}: {source}", path.display())]
    Socket {
        /// The agent's socket.
        path: PathBuf,
        /// The reason.
        source: ExchangeError,
    },
    /// The answer has another version of the API, or it belongs to another request.
    #[error(
        "the agent at {} did not answer as version {VERSION} of the API: {problem}; use the program of the agent's \
         version", path.display()
    )]
    Answer {
        /// The agent's socket.
        path: PathBuf,
        /// The problem.
        problem: String,
    },
    /// The agent refused.
    #[error("the agent at {} refused: {reason}", path.display())]
    Refused {
        /// The agent's socket.
        path: PathBuf,
        /// The agent's reason.
        reason: String,
    },
}

impl AskError {
    /// The error for an answer of the agent at `path` that belongs to another request.
    pub fn other_answer(path: &Path) -> Self {
        let problem = "the answer belongs to another request".to_owned();
        Self::Answer { path: path.to_owned(), problem }
    }

    fn of(path: &Path, error: ExchangeError) -> Self {
        let path = path.to_owned();
        match error {
            ExchangeError::Strange(problem) => Self::Answer { path, problem },
            source => Self::Socket { path, source },
        }
    }
}

/// The answers of one agent, one field per request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answers {
    /// The agent's socket.
    pub socket: PathBuf,
    /// The answer to [`Request::Status`].
    pub status: Status,
    /// The answer to [`Request::Peers`].
    pub peers: Vec<Peer>,
    /// The answer to [`Request::Bounds`].
    pub bounds: BoundsReport,
    /// The answer to [`Request::Targets`].
    pub targets: Targets,
    /// The answer to [`Request::Metrics`].
    pub metrics: BTreeMap<String, u64>,
}

impl Answers {
    /// Sends the request of each field to the agent that listens at `path`. Each single read or write waits at
    /// most `patience`.
    ///
    /// # Errors
    /// [`AskError`].
    pub fn of(path: &Path, patience: Duration) -> Result<Self, AskError> {
        let ask = |request| ask(path, request, patience);
        let strange = || AskError::other_answer(path);
        let Body::Status(status) = ask(Request::Status)? else { return Err(strange()) };
        let Body::Peers(peers) = ask(Request::Peers)? else { return Err(strange()) };
        let Body::Bounds(bounds) = ask(Request::Bounds)? else { return Err(strange()) };
        let Body::Targets(targets) = ask(Request::Targets)? else { return Err(strange()) };
        let Body::Metrics(metrics) = ask(Request::Metrics)? else { return Err(strange()) };
        let socket = path.to_owned();
        Ok(Self { socket, status: *status, peers, bounds, targets, metrics })
    }
}

/// A connection to an agent for one transfer. When the connection closes, the agent considers the
/// transfer ended.
#[derive(Debug)]
pub struct TransferClient {
    path: PathBuf,
    stream: UnixStream,
    patience: Duration,
}

impl TransferClient {
    /// Connects to the agent that listens at `path`. Each single read or write waits at most `patience`.
    ///
    /// # Errors
    /// [`AskError::Socket`].
    pub fn connect(path: &Path, patience: Duration) -> Result<Self, AskError> {
        let stream =
            json_line::connect(path, patience).map_err(|error| AskError::of(path, error))?;
        Ok(Self { path: path.to_owned(), stream, patience })
    }

    /// Says how many bytes the transfer has left, and returns whether it may send now. With `None` the transfer
    /// gives up its turn, for example because its server is not reachable. If the client then calls again
    /// with a number of bytes, the transfer joins the end of the order.
    ///
    /// # Errors
    /// [`AskError`].
    pub fn ask(&self, left: Option<u64>) -> Result<Transfer, AskError> {
        let question = Request::Transfer { left }.question();
        match body(&self.path, json_line::ask(&self.stream, &question, self.patience))? {
            Body::Transfer(transfer) => Ok(transfer),
            _ => Err(AskError::other_answer(&self.path)),
        }
    }
}

/// Sends one request to the agent that listens at `path`. Each single read or write waits at most `patience`.
///
/// # Errors
/// [`AskError`].
pub fn ask(path: &Path, request: Request, patience: Duration) -> Result<Body, AskError> {
    body(path, json_line::exchange(path, &request.question(), patience))
}

fn body(path: &Path, answer: Result<Answer, ExchangeError>) -> Result<Body, AskError> {
    match answer {
        Ok(Answer { body: Body::Error(reason), .. }) => {
            Err(AskError::Refused { path: path.to_owned(), reason })
        }
        Ok(Answer { body, .. }) => Ok(body),
        Err(error) => Err(AskError::of(path, error)),
    }
}
