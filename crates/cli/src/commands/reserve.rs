//! `wakeai reserve`.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use wakeai_agent::api::{self, AskError, Body, Request, Reservation, Standing, State, Status};
use wakeai_units::Rate;

use super::agents;
use crate::args::{ReserveArguments, Wanted};
use crate::failure::Failure;
use crate::output;

/// An agent takes a wish over at its next tick, half a second away at most.
const PATIENCE: Duration = Duration::from_secs(3);
const BETWEEN: Duration = Duration::from_millis(100);

pub(crate) fn run(arguments: &ReserveArguments) -> Result<(), Failure> {
    let socket = socket(arguments)?;
    let Wanted(rate) = arguments.rate;
    let status = reserve(&socket, rate).map_err(Failure::failed)?;
    let own = status.reservation.as_ref();
    if arguments.json {
        output::json(&own)?;
    }
    if let Some(own) = own.filter(|own| is_refusal(own.standing)) {
        return Err(Failure::failed(anyhow::anyhow!(
            "{}: {}; it stays asked for until `wakeai reserve none`",
            status.interface,
            own.why
        )));
    }
    if !arguments.json {
        output::write(&words(&status, rate))?;
    }
    Ok(())
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
            "{} agents run on this machine: say which with --socket (`wakeai status --json` lists \
             them)",
            others + 1
        ))),
    }
}

/// Says what is wanted, and waits until the agent has taken it over.
fn reserve(socket: &Path, rate: Option<Rate>) -> Result<Status, AskError> {
    let ask = |request| api::ask(socket, request, agents::PATIENCE);
    let strange = || AskError::Refused {
        path: socket.to_owned(),
        reason: "it answered another question".to_owned(),
    };
    let Body::Reserve(wanted) = ask(Request::Reserve(rate))? else { return Err(strange()) };
    let deadline = Instant::now() + PATIENCE;
    loop {
        let Body::Status(status) = ask(Request::Status)? else { return Err(strange()) };
        let has = status.reservation.as_ref().map(|own| own.rate_mbps);
        if has == wanted.rate_mbps || Instant::now() >= deadline {
            return Ok(*status);
        }
        std::thread::sleep(BETWEEN);
    }
}

fn is_refusal(standing: Standing) -> bool {
    matches!(standing, Standing::Refused | Standing::Unmeasured)
}

fn words(status: &Status, wanted: Option<Rate>) -> String {
    let interface = &status.interface;
    match (&status.reservation, wanted) {
        (None, None) => format!("{interface}: nothing is reserved\n"),
        (Some(Reservation { why, .. }), Some(rate)) => format!("{interface}: {rate}: {why}\n"),
        // No access point yet, or an agent that is held up: it is not forgotten.
        (_, wanted) => {
            let wanted = wanted.map_or("nothing".to_owned(), |rate| rate.to_string());
            let state =
                if status.state == State::Controlling { "busy" } else { status.state.words() };
            format!("{interface}: {wanted}, as soon as the agent comes to it ({state})\n")
        }
    }
}
