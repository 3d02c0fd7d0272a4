//! `wakeai reserve`.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use wakeai_api::{AskError, Body, Request, ReservationStatus, Status};
use wakeai_units::Rate;

use super::agents;
use crate::args::ReserveArguments;
use crate::failure::Failure;
use crate::output;

/// The longest wait for the agent to apply a request. The agent applies it at its next tick, within half a second.
const PATIENCE: Duration = Duration::from_secs(3);
/// The time between two requests for the status.
const BETWEEN: Duration = Duration::from_millis(100);

pub(crate) fn run(arguments: &ReserveArguments) -> Result<(), Failure> {
    let socket = socket(arguments)?;
    let status = reserve(&socket, arguments.rate)?;
    let own = status.reservation.as_ref();
    if arguments.json {
        output::json(&own)?;
    }
    let interface = &status.interface;
    match own {
        Some(own) if is_refusal(own.status) => Err(Failure::failed(anyhow::anyhow!(
            "{interface}: {}; the request stays in force until `wakeai reserve none`",
            own.why
        ))),
        _ if arguments.json => Ok(()),
        Some(own) => {
            let rate = Rate::from_mbps_f64(own.rate_mbps);
            written(&format!("{interface}: {rate:#}: {}\n", own.why))
        }
        None => written(&format!("{interface}: nothing is reserved\n")),
    }
}

fn written(text: &str) -> Result<(), Failure> {
    output::write(text).map(|_| ())
}

fn socket(arguments: &ReserveArguments) -> Result<PathBuf, Failure> {
    if let Some(socket) = &arguments.socket {
        return Ok(socket.clone());
    }
    let mut sockets = agents::sockets();
    match (sockets.pop(), sockets.len()) {
        (None, _) => Err(agents::none()),
        (Some(socket), 0) => Ok(socket),
        (Some(_), others) => Err(Failure::usage(anyhow::anyhow!(
            "{} agents run on this machine: name one with --socket (`wakeai status --json` lists \
             them)",
            others + 1
        ))),
    }
}

/// Sends the request, and waits until the agent has applied it.
fn reserve(socket: &Path, rate: Option<Rate>) -> Result<Status, Failure> {
    let ask = |request| wakeai_api::ask(socket, request, agents::PATIENCE);
    let strange = || AskError::other_answer(socket);
    let Body::Reserve(wanted) = ask(Request::Reserve { rate }).map_err(Failure::failed)? else {
        return Err(Failure::failed(strange()));
    };
    let unknown = |error: anyhow::Error| {
        Failure::failed(
            error.context("the agent accepted the request, but does not report the result"),
        )
    };
    let deadline = Instant::now() + PATIENCE;
    loop {
        let Body::Status(status) = ask(Request::Status).map_err(|error| unknown(error.into()))?
        else {
            return Err(unknown(strange().into()));
        };
        if status.reservation.as_ref().map(|own| own.rate_mbps) == wanted.rate_mbps {
            return Ok(*status);
        }
        if Instant::now() >= deadline {
            return Err(unknown(anyhow::anyhow!(
                "{}: the agent has not applied the request within {} s, or has received another one since",
                status.interface,
                PATIENCE.as_secs()
            )));
        }
        std::thread::sleep(BETWEEN);
    }
}

fn is_refusal(status: ReservationStatus) -> bool {
    matches!(status, ReservationStatus::Refused | ReservationStatus::Unmeasured)
}
