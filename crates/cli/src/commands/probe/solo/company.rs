//! Finds out whether other stations sent while this station was measured.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use serde::Serialize;
use wakeai_api::{Body, Request};

use crate::commands::agents;

/// The time between two questions to the agent. The agent's state changes at its ticks, twice a second.
const BETWEEN: Duration = Duration::from_millis(500);

/// The findings about other stations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Company {
    /// The law of the agent. It is null if no agent runs; then only the goodput can show that other stations sent.
    pub(super) law: Option<String>,
    /// The peers that were sending at some time, by their numbers.
    pub(super) sending_peers: BTreeSet<String>,
    /// Whether there was a second with far less goodput than the others.
    pub(super) unsteady: bool,
}

impl Company {
    /// Whether there is no sign of another station that sent.
    pub(super) fn is_alone(&self) -> bool {
        self.sending_peers.is_empty() && !self.unsteady
    }
}

/// Asks the agent until the other end of `end` is dropped.
pub(super) fn watch(socket: Option<&Path>, end: &Receiver<()>) -> Company {
    let mut company = Company::default();
    let socket = socket.map_or_else(own_agent, |socket| Some(socket.to_owned()));
    let Some(socket) = socket else { return company };
    loop {
        ask(&socket, &mut company);
        if end.recv_timeout(BETWEEN) != Err(RecvTimeoutError::Timeout) {
            return company;
        }
    }
}

/// The socket of the agent of this network namespace, if an agent runs here.
fn own_agent() -> Option<PathBuf> {
    let namespace = std::fs::metadata("/proc/self/ns/net").ok()?.ino();
    agents::sockets().into_iter().find(|socket| {
        let status = wakeai_api::ask(socket, Request::Status, agents::PATIENCE);
        matches!(status, Ok(Body::Status(status)) if status.netns == namespace)
    })
}

fn ask(socket: &Path, company: &mut Company) {
    if let Ok(Body::Status(status)) = wakeai_api::ask(socket, Request::Status, agents::PATIENCE) {
        company.law = Some(status.law);
    }
    if let Ok(Body::Peers(peers)) = wakeai_api::ask(socket, Request::Peers, agents::PATIENCE) {
        let sending = peers.into_iter().filter(|peer| peer.sending).map(|peer| peer.station);
        company.sending_peers.extend(sending);
    }
}
