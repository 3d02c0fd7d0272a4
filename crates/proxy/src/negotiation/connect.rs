//! HTTP CONNECT (RFC 9110 §9.3.6, in the form of RFC 9112 §3.2.3).

use super::{Outcome, Protocol, REQUEST_LIMIT, Rejection, Step};
use crate::target::{Host, Target};

const END: &[u8] = b"\r\n\r\n";

/// Reads the head of a request, which ends with an empty line. An earlier call has searched the
/// first `searched` bytes and has not found the end. Header fields have no effect; they are only
/// checked for characters that no field may contain.
pub(super) fn head(input: &[u8], searched: usize, output: &mut Vec<u8>) -> Result<Step, Rejection> {
    let from = searched.saturating_sub(END.len() - 1);
    let found = input[from..].windows(END.len()).position(|window| window == END);
    let end = found.map(|at| from + at + END.len());
    let (status, rejection) = match end {
        _ if end.unwrap_or(input.len()) > REQUEST_LIMIT => {
            ("431 Request Header Fields Too Large", Rejection::TooLong)
        }
        None => return Ok(Step::Incomplete),
        Some(end) => match target(&input[..end - END.len()]) {
            Ok(target) => return Ok(Step::Target(end, Protocol::Http, target)),
            Err(Rejection::Command) => {
                ("405 Method Not Allowed\r\nAllow: CONNECT", Rejection::Command)
            }
            Err(rejection) => ("400 Bad Request", rejection),
        },
    };
    put_failure(status, output);
    Err(rejection)
}

/// The target of a head without its last empty line.
fn target(head: &[u8]) -> Result<Target, Rejection> {
    // A bare CR, a bare LF or a NUL can make one request look like two (RFC 9112 §2.2).
    let text = std::str::from_utf8(head).map_err(|_| Rejection::Malformed)?;
    if text.replace("\r\n", "").contains(['\r', '\n', '\0']) {
        return Err(Rejection::Malformed);
    }
    let mut words = text.split("\r\n").next().unwrap_or_default().split(' ');
    let (method, authority, version) = (words.next(), words.next(), words.next());
    if words.next().is_some() || !matches!(version, Some("HTTP/1.1" | "HTTP/1.0")) {
        return Err(Rejection::Malformed);
    }
    if method != Some("CONNECT") {
        return Err(Rejection::Command);
    }
    let (host, port) =
        authority.and_then(|authority| authority.rsplit_once(':')).ok_or(Rejection::Malformed)?;
    let host = match host.strip_prefix('[').map(|rest| rest.strip_suffix(']')) {
        Some(inside) => inside.and_then(|inside| inside.parse().ok()).map(Host::Address),
        None if host.contains(':') => None, // an IPv6 address without brackets
        None => Host::read(host.as_bytes()),
    };
    let digits = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    match (host, port.parse()) {
        (Some(host), Ok(port)) if digits && port != 0 => Ok(Target { host, port }),
        _ => Err(Rejection::Malformed),
    }
}

pub(super) fn answer(outcome: Outcome, output: &mut Vec<u8>) {
    match outcome {
        Outcome::Connected(_) => {
            output.extend_from_slice(b"HTTP/1.1 200 Connection established\r\n\r\n");
        }
        Outcome::Denied => put_failure("403 Forbidden", output),
        Outcome::TimedOut => put_failure("504 Gateway Timeout", output),
        _ => put_failure("502 Bad Gateway", output),
    }
}

fn put_failure(status: &str, output: &mut Vec<u8>) {
    let rest = "Content-Length: 0\r\nConnection: close\r\n\r\n";
    output.extend_from_slice(format!("HTTP/1.1 {status}\r\n{rest}").as_bytes());
}
