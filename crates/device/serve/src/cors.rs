//! Uploads from web pages of other origins (the CORS protocol of <https://fetch.spec.whatwg.org>).
//!
//! A browser lets a page of another origin send a request only if an answer to OPTIONS (a preflight) allows it. A page has
//! no token of its own, so a server with tokens may be asked by any page; one without tokens by pages of this machine only.

use std::fmt;
use std::str::FromStr;

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, HeaderName, ORIGIN, VARY,
};
use http::{HeaderMap, HeaderValue, Method};
use url::Url;
use wakeai_net::is_this_machine;

const METHODS: HeaderValue = HeaderValue::from_static("OPTIONS, POST, HEAD, PATCH, DELETE");
/// What a page may read of an answer.
const EXPOSED: HeaderValue = HeaderValue::from_static(
    "Location, Tus-Resumable, Tus-Version, Tus-Extension, Tus-Max-Size, Tus-Checksum-Algorithm, Upload-Offset, \
     Upload-Length, Upload-Defer-Length, Upload-Metadata, Upload-Expires, Repr-Digest, Retry-After, Wakeai-Name",
);
/// The time for which a browser keeps the answer to a preflight, in seconds.
const MAX_AGE: HeaderValue = HeaderValue::from_static("7200");
/// A request from a public page to a private address
/// (<https://wicg.github.io/private-network-access/>).
const REQUEST_PRIVATE: HeaderName =
    HeaderName::from_static("access-control-request-private-network");
const ALLOW_PRIVATE: HeaderName = HeaderName::from_static("access-control-allow-private-network");

/// The origin of web pages: a scheme, a host and maybe a port. `*` stands for all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin(String);

/// Why a text is no origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected SCHEME://HOST or SCHEME://HOST:PORT, as a browser's Origin has it, or *")]
pub struct NotAnOrigin;

impl FromStr for Origin {
    type Err = NotAnOrigin;

    fn from_str(text: &str) -> Result<Self, NotAnOrigin> {
        if text == "*" {
            return Ok(Self(text.to_owned()));
        }
        let url = Url::parse(text).map_err(|_| NotAnOrigin)?;
        let origin = url.origin().ascii_serialization();
        let is_alone =
            text.trim_end_matches('/').matches('/').count() == 2 && !text.contains(['?', '#', '@']);
        if is_alone && origin != "null" { Ok(Self(origin)) } else { Err(NotAnOrigin) }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether the page that sends the request may use the server. `allowed` replaces the rule for servers with and without
/// tokens.
fn is_allowed(origin: &str, allowed: &[Origin], has_tokens: bool) -> bool {
    if !allowed.is_empty() {
        return allowed.iter().any(|Origin(known)| known == "*" || known == origin);
    }
    let host = || origin.split_once("://").is_some_and(|(_, host)| is_loopback(host));
    has_tokens || host()
}

/// An address of the loopback interface, or `localhost`: a page of this machine.
fn is_loopback(host: &str) -> bool {
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    let address = name.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
    is_this_machine(host) && address.map_or(true, |address| address.to_canonical().is_loopback())
}

/// Whether this is a preflight. A browser sends it without the page's token.
pub(crate) fn is_preflight(method: &Method, headers: &HeaderMap) -> bool {
    method == Method::OPTIONS
        && headers.contains_key(ORIGIN)
        && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

/// Adds to an answer what lets the page that has asked read it.
pub(crate) fn allow(
    asked: &HeaderMap,
    is_preflight: bool,
    allowed: &[Origin],
    has_tokens: bool,
    answer: &mut HeaderMap,
) {
    let Some(origin) = asked.get(ORIGIN) else { return };
    answer.insert(VARY, HeaderValue::from_static("Origin"));
    if !origin.to_str().is_ok_and(|origin| is_allowed(origin, allowed, has_tokens)) {
        return;
    }
    answer.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
    if !is_preflight {
        answer.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
        return;
    }
    answer.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    answer.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE);
    if let Some(wanted) = asked.get(ACCESS_CONTROL_REQUEST_HEADERS) {
        answer.insert(ACCESS_CONTROL_ALLOW_HEADERS, wanted.clone()); // what is not known is ignored
    }
    if asked.contains_key(REQUEST_PRIVATE) {
        answer.insert(ALLOW_PRIVATE, HeaderValue::from_static("true"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_a_scheme_a_host_and_maybe_a_port() {
        for (text, known) in [
            ("https://App.example", "https://app.example"),
            ("https://app.example:443", "https://app.example"),
            ("http://localhost:3000/", "http://localhost:3000"),
            ("*", "*"),
        ] {
            assert_eq!(text.parse::<Origin>().unwrap().to_string(), known);
        }
        for bad in [
            "",
            "app.example",
            "https://a/path",
            "https://a/?q",
            "null",
            "file:///x",
            "https://u@h",
        ] {
            assert_eq!(bad.parse::<Origin>(), Err(NotAnOrigin), "{bad}");
        }
    }

    #[test]
    fn without_tokens_only_pages_of_this_machine_may_ask() {
        for (origin, without, with) in [
            ("http://localhost:3000", true, true),
            ("http://127.0.0.1", true, true),
            ("http://[::1]:80", true, true),
            ("http://192.0.2.1", false, true),
            ("https://app.example", false, true),
            ("https://localhost.example", false, true),
            ("null", false, true),
        ] {
            assert_eq!(is_allowed(origin, &[], false), without, "{origin}");
            assert_eq!(is_allowed(origin, &[], true), with, "{origin}");
            let only = ["https://app.example".parse().unwrap()];
            assert_eq!(
                is_allowed(origin, &only, true),
                origin == "https://app.example",
                "{origin}"
            );
            assert!(is_allowed(origin, &["*".parse().unwrap()], false));
        }
    }
}
