//! Asks the agents of this machine in the background, because an agent that does not answer must not delay the screen.

use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use wakeai_api::Answers;

/// Finds the agents' sockets.
pub type FindSockets = fn() -> Vec<PathBuf>;

/// The limit of each read and write on an agent's socket.
const PATIENCE: Duration = Duration::from_secs(2);

/// Asks all agents at an interval, until this value is dropped.
#[derive(Debug)]
pub(crate) struct AgentWatch {
    latest: Arc<Mutex<Vec<Answers>>>,
    /// The thread ends when this is dropped.
    _ending: Sender<()>,
}

impl AgentWatch {
    /// Waits for the agents' first answers, and then starts the thread.
    pub(crate) fn start(find: FindSockets, interval: Duration) -> Self {
        let latest = Arc::new(Mutex::new(ask_all(find)));
        let (ending, ended) = channel();
        let shared = Arc::clone(&latest);
        std::thread::spawn(move || {
            while ended.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
                let answers = ask_all(find);
                *shared.lock().unwrap_or_else(PoisonError::into_inner) = answers;
            }
        });
        Self { latest, _ending: ending }
    }

    /// The agents' latest answers.
    pub(crate) fn latest(&self) -> Vec<Answers> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn ask_all(find: FindSockets) -> Vec<Answers> {
    let ask = |socket: PathBuf| match Answers::of(&socket, PATIENCE) {
        Ok(mut answers) => {
            answers.status.connections.clear(); // the screen reads the connections itself
            Some(answers)
        }
        Err(error) => {
            tracing::debug!(%error, "an agent is not shown");
            None
        }
    };
    find().into_iter().filter_map(ask).collect()
}
