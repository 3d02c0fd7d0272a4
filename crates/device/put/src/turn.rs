//! The turn of a transfer. The station's agent decides when the transfer may send.

use std::path::Path;
use std::time::Duration;

use tokio::sync::watch;
use wakeai_api::{AskError, Transfer, TransferClient};
use wakeai_control::Permission;

/// The time between two requests.
const INTERVAL: Duration = Duration::from_millis(200);
/// The longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(3);

/// Knows whether the transfer may send. A thread asks the agent several times per second. Without an agent the transfer
/// may always send.
#[derive(Debug)]
pub(super) struct AgentTurn {
    /// The number of bytes that are left to send. It is `None` while the transfer gives up its turn. The thread ends after
    /// this is dropped.
    left: watch::Sender<Option<u64>>,
    /// The agent's last answer. The thread has the other end, and ends where the agent does not answer any more.
    answer: watch::Receiver<Option<Transfer>>,
}

impl AgentTurn {
    /// Asks the agent at `socket` for permission to send `left` bytes, and waits for its first answer.
    pub(super) fn new(socket: Option<&Path>, left: u64) -> Self {
        let (left, in_thread) = watch::channel(Some(left));
        let (answers, answer) = watch::channel(None);
        if let Some(socket) = socket
            && let Err(error) = begin(socket, in_thread, answers)
        {
            warn(&error);
        }
        Self { left, answer }
    }

    /// Sets the number of bytes that are left to send. `None` gives up the turn until a later call sets a number.
    pub(super) fn tell(&self, left: Option<u64>) {
        self.left.send_replace(left);
    }

    /// The agent's permission, or [`Permission::Send`] without an agent.
    pub(super) fn permission(&self) -> Permission {
        self.answer().map_or(Permission::Send, |answer| answer.permission)
    }

    /// The agent's last answer. It is `None` without an agent.
    pub(super) fn answer(&self) -> Option<Transfer> {
        self.answer.has_changed().ok().and_then(|_| *self.answer.borrow())
    }
}

/// Gets the agent's first answer, and starts the thread.
fn begin(
    socket: &Path,
    left: watch::Receiver<Option<u64>>,
    answers: watch::Sender<Option<Transfer>>,
) -> Result<(), AskError> {
    let client = TransferClient::connect(socket, PATIENCE)?;
    answers.send_replace(Some(client.ask(*left.borrow())?));
    let follow = move || {
        loop {
            std::thread::sleep(INTERVAL);
            if left.has_changed().is_err() {
                return;
            }
            let asked = *left.borrow();
            match client.ask(asked) {
                Ok(answer) => answers.send_replace(Some(answer)),
                Err(error) => return warn(&error),
            };
        }
    };
    // Without the thread the upload goes on without turns.
    let _ = std::thread::Builder::new().name("turn".to_owned()).spawn(follow);
    Ok(())
}

/// Says that the transfer goes on without turns, and why.
fn warn(error: &AskError) {
    tracing::warn!("{error}; the upload goes on without turns");
}
