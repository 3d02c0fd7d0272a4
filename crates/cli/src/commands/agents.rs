//! The agents of this machine, for the commands that ask them.

use std::path::PathBuf;
use std::time::Duration;

use crate::failure::Failure;

/// The limit of each read and write on an agent's socket. A healthy agent answers in a millisecond.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);

/// The failure of a command if no agent runs.
pub(super) fn none() -> Failure {
    Failure::failed(anyhow::anyhow!(
        "no agent runs on this machine (no socket in {}); start one with \
         `wakeai agent --config FILE`, or name its socket with --socket",
        wakeai_host::state().display()
    ))
}

/// The sockets of all agents. These are the sockets that the leases name, if the leases can be read, and the sockets in
/// the state directory.
pub(super) fn sockets() -> Vec<PathBuf> {
    let mut sockets: Vec<_> = std::fs::read_dir(wakeai_host::state())
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "sock"))
        .collect();
    for holder in wakeai_host::holders().unwrap_or_default() {
        if !matches!(holder.role, wakeai_host::Role::Agent { .. }) {
            continue;
        }
        for path in holder.changes.iter().filter_map(wakeai_host::Change::socket) {
            if !sockets.iter().any(|known| known == path) {
                sockets.push(path.to_owned());
            }
        }
    }
    sockets.sort();
    sockets
}
