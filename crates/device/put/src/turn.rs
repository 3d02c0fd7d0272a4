//! The turn of a transfer. The station's agent decides when the transfer may send.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

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
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    /// The number of bytes that are left to send. It is `None` while the transfer gives up its turn.
    left: Mutex<Option<u64>>,
    ended: AtomicBool,
    /// The agent's last answer. It is `None` without an agent.
    answer: Mutex<Option<Transfer>>,
}

impl AgentTurn {
    /// Asks the agent at `socket` for permission to send `left` bytes, and waits for its first answer.
    pub(super) fn new(socket: Option<PathBuf>, left: u64) -> Self {
        let shared = Arc::new(Shared { left: Mutex::new(Some(left)), ..Shared::default() });
        let Some(socket) = socket else { return Self { shared, thread: None } };
        let client = TransferClient::connect(&socket, PATIENCE);
        let first = client.and_then(|client| client.ask(Some(left)).map(|answer| (client, answer)));
        let (client, answer) = match first {
            Ok(found) => found,
            Err(error) => {
                warn(&error);
                return Self { shared, thread: None };
            }
        };
        shared.set(Some(answer));
        let in_thread = Arc::clone(&shared);
        let ask = move || in_thread.follow(&client);
        let thread = std::thread::Builder::new().name("turn".to_owned()).spawn(ask).ok();
        if thread.is_none() {
            shared.set(None);
        }
        Self { shared, thread }
    }

    /// Sets the number of bytes that are left to send. `None` gives up the turn until a later call sets a number.
    pub(super) fn tell(&self, left: Option<u64>) {
        *self.shared.left.lock().unwrap_or_else(PoisonError::into_inner) = left;
    }

    /// The agent's permission, or [`Permission::Send`] without an agent.
    pub(super) fn permission(&self) -> Permission {
        self.answer().map_or(Permission::Send, |answer| answer.permission)
    }

    /// The number of peers that send. It is `None` without an agent.
    pub(super) fn peers(&self) -> Option<u32> {
        self.answer().map(|answer| answer.sending_peers)
    }

    fn answer(&self) -> Option<Transfer> {
        *self.shared.answer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    fn set(&self, answer: Option<Transfer>) {
        *self.answer.lock().unwrap_or_else(PoisonError::into_inner) = answer;
    }

    fn follow(&self, client: &TransferClient) {
        while !self.ended.load(Ordering::Relaxed) {
            std::thread::park_timeout(INTERVAL);
            let left = *self.left.lock().unwrap_or_else(PoisonError::into_inner);
            match client.ask(left) {
                Ok(answer) => self.set(Some(answer)),
                Err(error) => {
                    warn(&error);
                    return self.set(None);
                }
            }
        }
    }
}

/// Says that the transfer goes on without turns, and why.
fn warn(error: &AskError) {
    tracing::warn!("{error}; the upload goes on without turns");
}

impl Drop for AgentTurn {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join(); // the thread has already reported its panic
        }
    }
}
