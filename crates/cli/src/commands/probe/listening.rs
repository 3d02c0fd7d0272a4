//! The common parts of the listening ends.

use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};

use anyhow::Context as _;
use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;
use serde::Serialize;
use wakeai_probe::{Ending, Heard, Limits, ProbeError, ProbeSockets, SendError, Tally, Token};

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

/// Listens for the other end of a probe, which is run as `other` says.
pub(super) fn listen(
    arguments: &ListenArguments,
    interrupt: &Interrupt,
    (probe, other): (&str, &str),
    takes_streams: bool,
) -> Result<(), Failure> {
    let address = arguments.listen.expect("an end without --to listens");
    let token = Token::random().map_err(Failure::failed)?;
    let sockets = ProbeSockets::bind(address, takes_streams)
        .with_context(|| format!("cannot listen at {address}"))
        .map_err(Failure::failed)?;
    let bound = sockets.address().map_err(Failure::failed)?;
    announce(bound, &token, (probe, other), arguments)?;
    let heard = sockets
        .listen(&token, limits(arguments), &|| interrupt.is_asked())
        .context("cannot listen")
        .map_err(Failure::failed)?;
    finish(&heard, arguments, interrupt)
}

/// The result of a measurement.
pub(super) fn measured<T>(
    result: Result<T, ProbeError>,
    interrupt: &Interrupt,
) -> Result<T, Failure> {
    result.map_err(|error| match error {
        ProbeError::Send(SendError::Stopped) => interrupted(interrupt),
        error => Failure::failed(error),
    })
}

fn limits(arguments: &ListenArguments) -> Limits {
    Limits { wait: arguments.wait, ..Limits::default() }
}

/// Prints the token and the command of the other end.
fn announce(
    bound: SocketAddr,
    token: &Token,
    (probe, other): (&str, &str),
    arguments: &ListenArguments,
) -> Result<(), Failure> {
    let addresses = reachable(bound);
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
fn finish(
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

/// Returns the address itself, if it is specified. For an unspecified address, returns the addresses of the same family
/// of all interfaces that are up. Loopback addresses are returned only if there are no others.
fn reachable(bound: SocketAddr) -> Vec<SocketAddr> {
    if !bound.ip().is_unspecified() {
        return vec![bound];
    }
    let mut found: Vec<IpAddr> = Vec::new();
    for entry in getifaddrs().into_iter().flatten() {
        if !entry.flags.contains(InterfaceFlags::IFF_UP) {
            continue;
        }
        let Some(address) = entry.address else { continue };
        let v4 = address.as_sockaddr_in().map(|v4| IpAddr::V4(v4.ip()));
        let v6 = address.as_sockaddr_in6().map(nix::sys::socket::SockaddrIn6::ip);
        let v6 = v6.filter(|v6| !v6.is_unicast_link_local()).map(IpAddr::V6);
        found.extend(v4.or(v6).filter(|one| one.is_ipv4() == bound.is_ipv4()));
    }
    let (own, others): (Vec<IpAddr>, Vec<IpAddr>) =
        found.into_iter().partition(IpAddr::is_loopback);
    let shown = if others.is_empty() { own } else { others };
    shown.into_iter().map(|ip| SocketAddr::new(ip, bound.port())).collect()
}
