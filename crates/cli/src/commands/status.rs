//! `wakeai status`.

mod table;

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use wakeai_agent::api::{self, AskError, Body, Request};

use crate::args::StatusArguments;
use crate::failure::{Failure, note};
use crate::output::{self, Reader};

/// A healthy agent answers in a millisecond.
const PATIENCE: Duration = Duration::from_secs(2);

/// All that one agent says.
#[derive(Debug, Serialize)]
struct Said {
    socket: PathBuf,
    #[serde(flatten)]
    answers: Answers,
}

/// The answers, each under its request's name.
#[derive(Debug, Serialize)]
struct Answers {
    status: api::Status,
    peers: Vec<api::Peer>,
    bounds: api::BoundsReport,
    targets: api::Targets,
    metrics: std::collections::BTreeMap<String, u64>,
}

pub(crate) fn run(arguments: &StatusArguments) -> Result<(), Failure> {
    loop {
        let sockets = match &arguments.socket {
            Some(socket) => vec![socket.clone()],
            None => sockets(),
        };
        if sockets.is_empty() && !arguments.watch {
            return Err(Failure::failed(anyhow::anyhow!(
                "no agent runs on this machine (no socket in /run/wakeai); start one with \
                 `wakeai agent --config FILE`, or name its socket with --socket"
            )));
        }
        let reader = show(&sockets, arguments)?;
        if !arguments.watch || reader == Reader::Gone {
            return Ok(());
        }
        std::thread::sleep(Duration::from_secs(1));
    }
}

fn show(sockets: &[PathBuf], arguments: &StatusArguments) -> Result<Reader, Failure> {
    let mut text = String::new();
    for socket in sockets {
        let said = match ask(socket) {
            Ok(said) => said,
            // One agent among others may end at any moment.
            Err(error) if sockets.len() > 1 || arguments.watch => {
                note(error);
                continue;
            }
            Err(error) => return Err(Failure::failed(error)),
        };
        if arguments.json {
            if output::json(&said)? == Reader::Gone {
                return Ok(Reader::Gone);
            }
        } else {
            text.push_str(&table::render(&said.answers));
        }
    }
    if arguments.json {
        return Ok(Reader::There);
    }
    if arguments.watch && std::io::IsTerminal::is_terminal(&std::io::stdout()) {
        text.insert_str(0, "\x1b[H\x1b[2J"); // home, clear (ECMA-48)
    }
    output::write(&text)
}

fn ask(socket: &Path) -> Result<Said, AskError> {
    let ask = |request| api::ask(socket, request, PATIENCE);
    let strange = || AskError::Refused {
        path: socket.to_owned(),
        reason: "it answered another question".to_owned(),
    };
    let Body::Status(status) = ask(Request::Status)? else { return Err(strange()) };
    let Body::Peers(peers) = ask(Request::Peers)? else { return Err(strange()) };
    let Body::Bounds(bounds) = ask(Request::Bounds)? else { return Err(strange()) };
    let Body::Targets(targets) = ask(Request::Targets)? else { return Err(strange()) };
    let Body::Metrics(metrics) = ask(Request::Metrics)? else { return Err(strange()) };
    let answers = Answers { status: *status, peers, bounds, targets, metrics };
    Ok(Said { socket: socket.to_owned(), answers })
}

/// The sockets of all agents: by their leases where those can be read, else by their names.
fn sockets() -> Vec<PathBuf> {
    let mut sockets: Vec<_> = std::fs::read_dir("/run/wakeai")
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
        for change in holder.changes {
            if let wakeai_host::Change::File { path } = change
                && !sockets.contains(&path)
            {
                sockets.push(path);
            }
        }
    }
    sockets.sort();
    sockets
}
