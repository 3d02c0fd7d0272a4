//! HTTP CONNECT (RFC 9110 section 9.3.6, in the form of RFC 9112 section 3.2.3).

use httparse::{EMPTY_HEADER, Header, Request};
use wakeai_daemon::METHODS;

use super::{Outcome, Protocol, REQUEST_LIMIT, Rejection, Step};
use crate::target::{Host, Target};

const END: &[u8] = b"\r\n\r\n";
/// The largest number of header fields.
const FIELDS: usize = 64;

/// An answer that refuses: its status, its further header fields, and words for a person.
struct Refusal<'a> {
    status: &'a str,
    fields: &'a str,
    words: &'a str,
}

const fn refusal<'a>(status: &'a str, fields: &'a str, words: &'a str) -> Refusal<'a> {
    Refusal { status, fields, words }
}

const NOT_SERVED: Refusal<'static> = refusal(
    "405 Method Not Allowed",
    "Allow: CONNECT\r\n",
    "this proxy serves CONNECT alone: tell the client to tunnel, as curl's --proxytunnel does",
);
const UNKNOWN_METHOD: Refusal<'static> =
    refusal("501 Not Implemented", "", "this proxy serves the method CONNECT alone");
const NO_VERSION: Refusal<'static> =
    refusal("505 HTTP Version Not Supported", "", "this proxy speaks HTTP/1.1");
const MALFORMED: Refusal<'static> =
    refusal("400 Bad Request", "", "this is no request of HTTP/1.1");
const NO_TARGET: Refusal<'static> = refusal(
    "400 Bad Request",
    "",
    "CONNECT takes a host and a port from 1 to 65535, such as example.org:443 or [2001:db8::5]:443",
);
const HOST: Refusal<'static> =
    refusal("400 Bad Request", "", "HTTP/1.1 takes one field Host, with a host and a port");
const CONTENT: Refusal<'static> = refusal("400 Bad Request", "", "a CONNECT has no content");
const LONG_TARGET: Refusal<'static> = refusal("414 URI Too Long", "", "the first line is too long");
const LONG_HEAD: Refusal<'static> =
    refusal("431 Request Header Fields Too Large", "", "the header fields are too long");

/// Reads the head of a request, which ends with an empty line. An earlier call has searched the
/// first `searched` bytes and has not found the end.
pub(super) fn head(input: &[u8], searched: usize, output: &mut Vec<u8>) -> Result<Step, Rejection> {
    let from = searched.saturating_sub(END.len() - 1);
    let found = input[from..].windows(END.len()).position(|window| window == END);
    let end = found.map(|at| from + at + END.len());
    let refused = match end {
        _ if end.unwrap_or(input.len()) > REQUEST_LIMIT => {
            Err((too_long(input), Rejection::TooLong))
        }
        None => return Ok(Step::Incomplete),
        Some(end) => target(&input[..end]).map(|target| Step::Target(end, Protocol::Http, target)),
    };
    refused.map_err(|(refusal, rejection)| {
        // The answer to HEAD has no content (RFC 9110 section 9.3.2).
        put_failure(&refusal, !input.starts_with(b"HEAD "), output);
        rejection
    })
}

fn too_long(input: &[u8]) -> Refusal<'static> {
    let is_line = !input[..REQUEST_LIMIT].windows(2).any(|window| window == b"\r\n");
    if is_line { LONG_TARGET } else { LONG_HEAD } // RFC 9112 section 3
}

/// The target of a head.
fn target(head: &[u8]) -> Result<Target, (Refusal<'static>, Rejection)> {
    let malformed = |refusal| (refusal, Rejection::Malformed);
    // A bare CR, a bare LF or a NUL can make one request look like two (RFC 9112 section 2.2).
    if has_bare_line_end(head) {
        return Err(malformed(MALFORMED));
    }
    let mut fields = [EMPTY_HEADER; FIELDS];
    let mut request = Request::new(&mut fields);
    let parsed = request.parse(head);
    match (parsed, request.method) {
        (Err(httparse::Error::TooManyHeaders), _) => return Err((LONG_HEAD, Rejection::TooLong)),
        (Err(httparse::Error::Version), _) => return Err(malformed(version(head))),
        (Err(_), _) | (_, None) => return Err(malformed(MALFORMED)),
        (_, Some("CONNECT")) => {}
        (_, Some(method)) => {
            let refusal = if METHODS.contains(&method) { NOT_SERVED } else { UNKNOWN_METHOD };
            return Err((refusal, Rejection::Command));
        }
    }
    check_host(request.version, request.headers).map_err(malformed)?;
    if request.headers.iter().any(announces_content) {
        return Err(malformed(CONTENT));
    }
    authority(request.path.unwrap_or_default()).ok_or(malformed(NO_TARGET))
}

fn has_bare_line_end(head: &[u8]) -> bool {
    let after_cr = |at: usize| at > 0 && head[at - 1] == b'\r';
    let before_lf = |at: usize| head.get(at + 1) == Some(&b'\n');
    head.iter().enumerate().any(|(at, byte)| match byte {
        b'\r' => !before_lf(at),
        b'\n' => !after_cr(at),
        byte => *byte == 0,
    })
}

/// The answer to a version that is not read: a later major version is one of HTTP (RFC 9110 section
/// 15.6.6), anything else is not.
fn version(head: &[u8]) -> Refusal<'static> {
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    match line.rsplit(|byte| *byte == b' ').next() {
        Some([b'H', b'T', b'T', b'P', b'/', major, b'.', minor])
            if major.is_ascii_digit() && minor.is_ascii_digit() =>
        {
            NO_VERSION
        }
        _ => MALFORMED,
    }
}

/// A request of HTTP/1.1 has one Host (RFC 9112 section 3.2). Its value has no effect: the target
/// names the destination.
fn check_host(version: Option<u8>, fields: &[Header<'_>]) -> Result<(), Refusal<'static>> {
    let hosts: Vec<_> =
        fields.iter().filter(|field| field.name.eq_ignore_ascii_case("host")).collect();
    let is_host = |value: &[u8]| {
        let sound = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.:[]%~".contains(byte);
        value.iter().all(sound)
    };
    match hosts[..] {
        [] if version == Some(0) => Ok(()),
        [host] if is_host(host.value) => Ok(()),
        _ => Err(HOST),
    }
}

/// Whether a field announces content, which a CONNECT does not have (RFC 9110 section 9.3.6). The
/// bytes after the request are for the destination, and two readings of them must not exist.
fn announces_content(field: &Header<'_>) -> bool {
    let is = |name: &str| field.name.eq_ignore_ascii_case(name);
    is("transfer-encoding") || (is("content-length") && field.value != b"0")
}

/// Reads a host and a port (RFC 9112 section 3.2.3).
fn authority(text: &str) -> Option<Target> {
    let (host, port) = text.rsplit_once(':')?;
    let host = match host.strip_prefix('[').map(|rest| rest.strip_suffix(']')) {
        Some(inside) => Host::Address(inside?.parse::<std::net::Ipv6Addr>().ok()?.into()),
        None if host.contains(':') => return None, // an IPv6 address without brackets
        None => Host::read(host.as_bytes())?,
    };
    let is_decimal = port.bytes().all(|byte| byte.is_ascii_digit());
    let port = port.parse().ok().filter(|port| is_decimal && *port != 0)?;
    Some(Target { host, port })
}

/// Writes the answer. The field Proxy-Status (RFC 9209) names the reason for programs.
pub(super) fn answer(outcome: Outcome, output: &mut Vec<u8>) {
    let (status, error) = match outcome {
        Outcome::Connected(_) => {
            output.extend_from_slice(b"HTTP/1.1 200 Connection established\r\n\r\n");
            return;
        }
        Outcome::Denied => ("403 Forbidden", "destination_ip_prohibited"),
        Outcome::NoSuchName => ("502 Bad Gateway", "dns_error"),
        Outcome::LookupFailed => ("504 Gateway Timeout", "dns_timeout"),
        Outcome::Refused => ("502 Bad Gateway", "connection_refused"),
        Outcome::NetworkUnreachable | Outcome::HostUnreachable => {
            ("502 Bad Gateway", "destination_ip_unroutable")
        }
        Outcome::TimedOut => ("504 Gateway Timeout", "connection_timeout"),
        Outcome::Failed => ("500 Internal Server Error", "proxy_internal_error"),
    };
    let fields = format!("Proxy-Status: wakeai; error={error}\r\n");
    put_failure(&refusal(status, &fields, &outcome.to_string()), true, output);
}

fn put_failure(refusal: &Refusal<'_>, has_content: bool, output: &mut Vec<u8>) {
    let Refusal { status, fields, words } = refusal;
    let length = words.len() + 1;
    let rest = format!("Content-Length: {length}\r\nConnection: close\r\n\r\n");
    let head = format!("HTTP/1.1 {status}\r\n{fields}Content-Type: text/plain\r\n{rest}");
    output.extend_from_slice(head.as_bytes());
    if has_content {
        output.extend_from_slice(words.as_bytes());
        output.push(b'\n');
    }
}
