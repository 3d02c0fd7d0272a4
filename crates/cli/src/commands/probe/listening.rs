//! The common parts of the listening ends.

use std::fmt::Write as _;
use std::net::SocketAddr;

use serde::Serialize;
use wakeai_probe::{Ending, Heard, Limits, Tally, Token};

use super::addresses;
use crate::args::ListenArguments;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output;

/// The first line of a listener.
#[derive(Serialize)]
struct Listening {
    event: &'static str,
    addresses: Vec<SocketAddr>,
    token: String,
}

/// The last line of a listener.
#[derive(Serialize)]
struct Ended {
    event: &'static str,
    ending: &'static str,
    peer: Option<SocketAddr>,
    #[serde(flatten)]
    tally: Tally,
}

pub(super) fn limits(arguments: &ListenArguments) -> Limits {
    Limits { wait: arguments.wait, ..Limits::default() }
}

/// Prints the token and the command of the other end.
pub(super) fn announce(
    bound: SocketAddr,
    token: &Token,
    (probe, other): (&str, &str),
    arguments: &ListenArguments,
) -> Result<(), Failure> {
    let addresses = addresses::reachable(bound);
    if arguments.json {
        let token = token.to_string();
        return output::json(&Listening { event: "listening", addresses, token }).map(|_| ());
    }
    let mut text = format!("listening for {}; {other} run\n", arguments.wait);
    for address in addresses {
        let to = match address {
            // A zone has a meaning on this machine alone (RFC 4007 section 6).
            SocketAddr::V6(v6) if v6.scope_id() != 0 => {
                format!("[{}%INTERFACE]:{}", v6.ip(), v6.port())
            }
            address => address.to_string(),
        };
        let _ = writeln!(text, "  wakeai probe {probe} --to {to} --token {token}");
    }
    output::write(&text).map(|_| ())
}

/// Reports how a listener has ended.
pub(super) fn finish(
    heard: &Heard,
    arguments: &ListenArguments,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let Heard { ending, peer, tally } = *heard;
    if arguments.json {
        let ending = ending.map_or("interrupted", Into::into);
        output::json(&Ended { event: "ended", ending, peer, tally })?;
    }
    let failed = |text: String| Err(Failure::failed(anyhow::anyhow!(text)));
    let limits = limits(arguments);
    match ending {
        Some(Ending::Done) if arguments.json => Ok(()),
        Some(Ending::Done) => {
            let text = format!(
                "done: {} datagrams came from the other end, which shows the result; {} others were refused\n",
                tally.accepted, tally.refused
            );
            output::write(&text).map(|_| ())
        }
        Some(Ending::NobodyCame) => failed(format!(
            "no sender with the token came within {}; {} other datagrams were refused",
            limits.wait, tally.refused
        )),
        Some(Ending::Silence) => failed(format!(
            "the other end has been silent for {}: it was ended, or the way to it is broken",
            limits.silence
        )),
        Some(Ending::TooLong) => {
            failed(format!("the measurement took longer than {}, and was ended", limits.session))
        }
        None => Err(interrupted(interrupt)),
    }
}

pub(super) fn interrupted(interrupt: &Interrupt) -> Failure {
    Failure::with_status(interrupt.exit_status(), anyhow::anyhow!("interrupted"))
}
