//! `wakeai status`.

mod alone;
mod table;

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use wakeai_api::{AskError, Body, Request};

use super::agents;
use crate::args::StatusArguments;
use crate::failure::{Failure, note};
use crate::output::{self, Reader};

/// The answers of one agent, each under the name of its request.
#[derive(Debug, Serialize)]
pub(super) struct Answers {
    socket: PathBuf,
    status: wakeai_api::Status,
    peers: Vec<wakeai_api::Peer>,
    bounds: wakeai_api::BoundsReport,
    targets: wakeai_api::Targets,
    metrics: std::collections::BTreeMap<String, u64>,
}

pub(crate) fn run(arguments: &StatusArguments) -> Result<(), Failure> {
    loop {
        let sockets = match &arguments.socket {
            Some(socket) => vec![socket.clone()],
            None => agents::sockets(),
        };
        if sockets.is_empty() && !arguments.watch {
            return Err(agents::none());
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
            // Each of several agents may end at any moment.
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
            text.push_str(&table::render(&said));
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

fn ask(socket: &Path) -> Result<Answers, AskError> {
    let ask = |request| wakeai_api::ask(socket, request, agents::PATIENCE);
    let strange = || AskError::other_answer(socket);
    let Body::Status(status) = ask(Request::Status)? else { return Err(strange()) };
    let Body::Peers(peers) = ask(Request::Peers)? else { return Err(strange()) };
    let Body::Bounds(bounds) = ask(Request::Bounds)? else { return Err(strange()) };
    let Body::Targets(targets) = ask(Request::Targets)? else { return Err(strange()) };
    let Body::Metrics(metrics) = ask(Request::Metrics)? else { return Err(strange()) };
    let socket = socket.to_owned();
    Ok(Answers { socket, status: *status, peers, bounds, targets, metrics })
}
