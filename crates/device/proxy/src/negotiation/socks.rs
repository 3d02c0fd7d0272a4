//! SOCKS5 (RFC 1928): the command CONNECT, without authentication.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::{Outcome, Phase, Protocol, Rejection, Step};
use crate::target::{Host, Target};

pub(super) const VERSION: u8 = 5;
const NO_AUTHENTICATION: u8 = 0x00;
const NO_ACCEPTABLE_METHOD: u8 = 0xff;
const CONNECT: u8 = 1;
const IPV4: u8 = 1;
const DOMAIN: u8 = 3;
const IPV6: u8 = 4;

// The codes of replies (RFC 1928 §6).
const SUCCEEDED: u8 = 0;
const GENERAL_FAILURE: u8 = 1;
const NOT_ALLOWED: u8 = 2;
const NETWORK_UNREACHABLE: u8 = 3;
const HOST_UNREACHABLE: u8 = 4;
const CONNECTION_REFUSED: u8 = 5;
/// Also the reply for a destination that did not answer, which RFC 1928 has no code for: dante and
/// Tor tell it like that, so that it differs from an unreachable host.
const TTL_EXPIRED: u8 = 6;
const COMMAND_NOT_SUPPORTED: u8 = 7;
const ADDRESS_TYPE_NOT_SUPPORTED: u8 = 8;

/// Reads the client's methods (RFC 1928 §3): version, number of methods, the methods.
pub(super) fn methods(input: &[u8], output: &mut Vec<u8>) -> Result<Step, Rejection> {
    let [_version, count, rest @ ..] = input else { return Ok(Step::Incomplete) };
    let Some(methods) = rest.get(..usize::from(*count)) else { return Ok(Step::Incomplete) };
    if methods.contains(&NO_AUTHENTICATION) {
        output.extend([VERSION, NO_AUTHENTICATION]);
        Ok(Step::Next(2 + methods.len(), Phase::SocksRequest))
    } else {
        output.extend([VERSION, NO_ACCEPTABLE_METHOD]);
        Err(Rejection::Authentication)
    }
}

/// Reads the request (RFC 1928 §4): version, command, reserved, address type, address, port. A
/// wrong byte is answered at once, before the following bytes have arrived.
pub(super) fn request(input: &[u8], output: &mut Vec<u8>) -> Result<Step, Rejection> {
    let mut reject = |reply, rejection| {
        put_reply(reply, None, output);
        Err(rejection)
    };
    if input.first().is_some_and(|version| *version != VERSION) {
        return reject(GENERAL_FAILURE, Rejection::Malformed);
    }
    if input.get(1).is_some_and(|command| *command != CONNECT) {
        return reject(COMMAND_NOT_SUPPORTED, Rejection::Command);
    }
    let Some(&address_type) = input.get(3) else { return Ok(Step::Incomplete) };
    let (start, length) = match address_type {
        IPV4 => (4, 4),
        IPV6 => (4, 16),
        DOMAIN => match input.get(4) {
            Some(length) => (5, usize::from(*length)),
            None => return Ok(Step::Incomplete),
        },
        _ => return reject(ADDRESS_TYPE_NOT_SUPPORTED, Rejection::AddressType),
    };
    let end = start + length;
    let Some(&[high, low]) = input.get(end..end + 2) else { return Ok(Step::Incomplete) };
    let port = u16::from_be_bytes([high, low]);
    match host(address_type, &input[start..end]) {
        Some(host) if port != 0 => {
            Ok(Step::Target(end + 2, Protocol::Socks, Target { host, port }))
        }
        _ => reject(GENERAL_FAILURE, Rejection::Malformed),
    }
}

fn host(address_type: u8, address: &[u8]) -> Option<Host> {
    match address_type {
        IPV4 => Some(Host::Address(Ipv4Addr::from(<[u8; 4]>::try_from(address).ok()?).into())),
        IPV6 => Some(Host::Address(Ipv6Addr::from(<[u8; 16]>::try_from(address).ok()?).into())),
        _ => Host::read(address),
    }
}

pub(super) fn answer(outcome: Outcome, output: &mut Vec<u8>) {
    let (reply, bound) = match outcome {
        Outcome::Connected(bound) => (SUCCEEDED, Some(bound)),
        Outcome::Denied => (NOT_ALLOWED, None),
        Outcome::Refused => (CONNECTION_REFUSED, None),
        Outcome::NetworkUnreachable => (NETWORK_UNREACHABLE, None),
        Outcome::HostUnreachable | Outcome::NoSuchName | Outcome::LookupFailed => {
            (HOST_UNREACHABLE, None)
        }
        Outcome::TimedOut => (TTL_EXPIRED, None),
        Outcome::Failed => (GENERAL_FAILURE, None),
    };
    put_reply(reply, bound, output);
}

/// Writes a reply (RFC 1928 §6): version, reply, reserved, address type, bound address and port.
fn put_reply(reply: u8, bound: Option<SocketAddr>, output: &mut Vec<u8>) {
    let bound = bound.unwrap_or(SocketAddr::from(([0; 4], 0)));
    output.extend([VERSION, reply, 0]);
    match bound.ip() {
        IpAddr::V4(address) => {
            output.push(IPV4);
            output.extend(address.octets());
        }
        IpAddr::V6(address) => {
            output.push(IPV6);
            output.extend(address.octets());
        }
    }
    output.extend(bound.port().to_be_bytes());
}
