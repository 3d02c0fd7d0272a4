//! The turn of a flow: its agent says when the flow may send.

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use wakeai_api::TransferClient;
use wakeai_control::Permission;
use wakeai_units::{Bytes, Duration, Instant};

use crate::clock;

/// The time between two requests while the flow waits.
const WAITS: Duration = Duration::from_millis(50);
/// The time between two requests while the flow sends.
const SENDS: Duration = Duration::from_millis(250);
/// The longest wait for an answer.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(5);

/// Asks the agent of a flow's station whether the flow may send, as `wakeai put` does.
#[derive(Debug)]
pub(super) struct FlowTurn {
    agent: Option<PathBuf>,
    client: RefCell<Option<TransferClient>>,
    size: Bytes,
    /// The bytes that the receiver has.
    arrived: Arc<AtomicU64>,
    next: Cell<Instant>,
}

impl FlowTurn {
    /// The turn of a flow of `size` bytes; a flow without `agent` or size always sends.
    pub(super) fn new(
        agent: Option<PathBuf>,
        size: Option<Bytes>,
        arrived: Arc<AtomicU64>,
    ) -> Self {
        Self {
            agent: agent.filter(|_| size.is_some()),
            client: RefCell::new(None),
            size: size.unwrap_or(Bytes::ZERO),
            arrived,
            next: Cell::new(Instant::ZERO),
        }
    }

    /// Waits until the flow may send; `None` where the run is over.
    pub(super) fn wait(&self, stop: &AtomicBool) -> Option<Permission> {
        while !stop.load(Ordering::Relaxed) {
            match self.ask() {
                Permission::Wait => clock::sleep_until(clock::now() + WAITS),
                may_send => return Some(may_send),
            }
        }
        None
    }

    /// Tells the agent at intervals what is left, while the flow sends.
    pub(super) fn tell(&self) {
        if self.agent.is_some() && clock::now() >= self.next.get() {
            self.ask();
        }
    }

    /// Asks the agent whether the flow may send, and says how many bytes are left. Where there is
    /// no agent, or the agent does not answer, the flow sends.
    fn ask(&self) -> Permission {
        let Some(agent) = &self.agent else { return Permission::Send };
        self.next.set(clock::now() + SENDS);
        let mut client = self.client.borrow_mut();
        let left = self.size.get().saturating_sub(self.arrived.load(Ordering::Relaxed));
        let asked = match client.take() {
            Some(client) => Ok(client),
            None => TransferClient::connect(agent, PATIENCE),
        };
        match asked.and_then(|asked| asked.ask(Some(left)).map(|answer| (asked, answer))) {
            Ok((asked, answer)) => {
                *client = Some(asked);
                answer.permission
            }
            Err(error) => {
                tracing::warn!(%error, "a flow sends without waiting for its turn");
                Permission::Send
            }
        }
    }
}
