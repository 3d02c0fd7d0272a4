//! The addresses at which metrics may be served.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use crate::{AddressError, ZoneError, socket_address};

/// An address of this machine's loopback interface, with a port. No other address is allowed, because
/// metrics are served without encryption and without access control (docs/decisions/016).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Local(SocketAddr);

/// The reason why a text is not an address at which metrics may be served.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LocalError {
    /// The text is not an IP address with a port.
    #[error("found {0:?}, expected an IP address and a port such as \"127.0.0.1:9719\"")]
    Form(String),
    /// Other machines could connect to this address.
    #[error(
        "found {0}, expected an address of the loopback interface such as \"127.0.0.1:9719\", because figures are \
         served without encryption and to anyone who asks; docs/guides/metrics.md shows how another machine reads them"
    )]
    NotLoopback(SocketAddr),
    /// The address has a zone that does not belong to it, or needs one.
    #[error(transparent)]
    Zone(#[from] ZoneError),
    /// The port is zero, so clients would not know the port.
    #[error("found port 0, expected a port from 1 to 65535")]
    NoPort,
}

impl Local {
    /// The address.
    pub fn get(self) -> SocketAddr {
        self.0
    }
}

impl TryFrom<SocketAddr> for Local {
    type Error = LocalError;

    fn try_from(found: SocketAddr) -> Result<Self, LocalError> {
        if !found.ip().to_canonical().is_loopback() {
            return Err(LocalError::NotLoopback(found));
        }
        if found.port() == 0 { Err(LocalError::NoPort) } else { Ok(Self(found)) }
    }
}

impl FromStr for Local {
    type Err = LocalError;

    fn from_str(text: &str) -> Result<Self, LocalError> {
        match socket_address(text) {
            Ok(address) => address.try_into(),
            Err(AddressError::Zone(error)) => Err(LocalError::Zone(error)),
            Err(_) => Err(LocalError::Form(text.to_owned())),
        }
    }
}

impl fmt::Display for Local {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Whether the `Host` of a request is an IP address or `localhost`. This check refuses requests of a web page whose
/// name resolves to this machine's address. A browser on this machine can send such requests, but it sends the
/// page's name as the `Host`.
pub fn is_this_machine(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let name = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_this_machine_where_it_is_an_address_or_localhost() {
        for host in ["127.0.0.1", "127.0.0.1:9719", "[::1]", "[::1]:9719", "LocalHost:80"] {
            assert!(is_this_machine(host), "{host}");
        }
        for host in ["", "example.net", "example.net:9719", "127.0.0.1.example.net", ":9719"] {
            assert!(!is_this_machine(host), "{host}");
        }
    }

    #[test]
    fn only_loopback_addresses_with_a_port_are_allowed() {
        for good in ["127.0.0.1:9719", "127.8.0.3:1", "[::1]:65535"] {
            assert_eq!(good.parse::<Local>().unwrap().to_string(), good);
        }
        for (bad, expected) in [
            ("127.0.0.1", "expected an IP address and a port"),
            ("localhost:9719", "expected an IP address and a port"),
            ("9719", "expected an IP address and a port"),
            ("127.0.0.1:65536", "expected an IP address and a port"),
            ("0.0.0.0:9719", "expected an address of the loopback interface"),
            ("[::]:9719", "expected an address of the loopback interface"),
            ("192.0.2.7:9719", "expected an address of the loopback interface"),
            ("127.0.0.1:0", "found port 0"),
            ("[fe80::1%lo]:9719", "expected an address of the loopback interface"),
            ("[fe80::1%nothing0]:9719", "this machine has no interface \"nothing0\""),
            ("[::1%lo]:9719", "leave %lo out"),
        ] {
            let said = bad.parse::<Local>().unwrap_err().to_string();
            assert!(said.contains(expected), "{bad}: {said}");
        }
    }
}
