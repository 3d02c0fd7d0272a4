//! Reads the addresses of the command line and of configurations.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use crate::zone::{Zone, ZoneError, with_zone};

/// Why a text is not an address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// The text is not an IP address with a port.
    #[error(
        "found {found:?}, expected an IP address and a port, such as 192.168.1.5:{port}, \
         [2001:db8::5]:{port} or [fe80::5%eth0]:{port}",
        port = 8443
    )]
    NoSocketAddress {
        /// The text.
        found: String,
    },
    /// The text is not an IP address with or without a port.
    #[error(
        "found {found:?}, expected an IP address with or without a port, such as 192.168.1.5, \
         192.168.1.5:{port}, [2001:db8::5]:{port} or fe80::5%eth0"
    )]
    NoAddress {
        /// The text.
        found: String,
        /// The default port.
        port: u16,
    },
    /// The address and its zone do not go together.
    #[error(transparent)]
    Zone(#[from] ZoneError),
}

/// Reads `192.168.1.5:8443`, `[2001:db8::5]:8443` or, with the name or index of an interface,
/// `[fe80::5%eth0]:8443`.
///
/// # Errors
/// [`AddressError`].
pub fn socket_address(text: &str) -> Result<SocketAddr, AddressError> {
    with_port(text).unwrap_or_else(|| Err(AddressError::NoSocketAddress { found: text.to_owned() }))
}

/// Reads what [`socket_address`] reads, and an address alone, which gets the port `port`.
///
/// # Errors
/// [`AddressError`].
pub fn socket_address_or_port(text: &str, port: u16) -> Result<SocketAddr, AddressError> {
    let alone = || {
        let inside = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
        let v4 = || text.parse().ok().map(|v4: IpAddr| Ok(SocketAddr::new(v4, port)));
        v6(inside.unwrap_or(text), port).or_else(v4)
    };
    with_port(text)
        .or_else(alone)
        .unwrap_or_else(|| Err(AddressError::NoAddress { found: text.to_owned(), port }))
}

/// An address with a port; `None` if the text does not have this form.
fn with_port(text: &str) -> Option<Result<SocketAddr, AddressError>> {
    let Some(text) = text.strip_prefix('[') else {
        return text.parse().ok().map(|address| Ok(SocketAddr::V4(address)));
    };
    let (address, port) = text.split_once("]:")?;
    v6(address, decimal(port)?)
}

/// A port. Rust also reads a sign in front of a number.
fn decimal(port: &str) -> Option<u16> {
    let is_decimal = port.bytes().all(|byte| byte.is_ascii_digit());
    port.parse().ok().filter(|_| is_decimal)
}

fn v6(text: &str, port: u16) -> Option<Result<SocketAddr, AddressError>> {
    let (address, zone) = match text.split_once('%') {
        Some((address, zone)) => (address, Some(Zone::new(zone))),
        None => (text, None),
    };
    let address: Ipv6Addr = address.parse().ok()?;
    Some(with_zone(address, zone.as_ref(), port).map(SocketAddr::V6).map_err(AddressError::Zone))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_with_a_port_is_read_with_and_without_a_zone() {
        let index = Zone::new("lo").index().unwrap();
        for (text, shown) in [
            ("192.0.2.5:80", "192.0.2.5:80".to_owned()),
            ("[2001:db8::5]:80", "[2001:db8::5]:80".to_owned()),
            ("[::]:0", "[::]:0".to_owned()),
            ("[fe80::5%lo]:80", format!("[fe80::5%{index}]:80")),
        ] {
            assert_eq!(socket_address(text).unwrap().to_string(), shown, "{text}");
            assert_eq!(socket_address_or_port(text, 1).unwrap().to_string(), shown, "{text}");
            assert_eq!(socket_address(&shown).unwrap().to_string(), shown, "{text}");
        }
    }

    #[test]
    fn an_address_alone_gets_the_default_port_where_there_is_one() {
        let index = Zone::new("lo").index().unwrap();
        for (text, shown) in [
            ("192.0.2.5", "192.0.2.5:7".to_owned()),
            ("2001:db8::5", "[2001:db8::5]:7".to_owned()),
            ("[2001:db8::5]", "[2001:db8::5]:7".to_owned()),
            ("fe80::5%lo", format!("[fe80::5%{index}]:7")),
            ("[fe80::5%lo]", format!("[fe80::5%{index}]:7")),
        ] {
            assert_eq!(socket_address_or_port(text, 7).unwrap().to_string(), shown, "{text}");
            let said = socket_address(text).unwrap_err().to_string();
            assert!(said.contains("expected an IP address and a port"), "{said}");
        }
    }

    #[test]
    fn an_error_says_what_to_write() {
        for (text, expected) in [
            ("", "expected an IP address and a port, such as 192.168.1.5:8443"),
            ("localhost:80", "expected an IP address and a port"),
            ("2001:db8::5:80", "[2001:db8::5]:8443"),
            ("[192.0.2.5]:80", "expected an IP address and a port"),
            ("192.0.2.5%lo:80", "expected an IP address and a port"),
            ("[2001:db8::5]:65536", "expected an IP address and a port"),
            ("[2001:db8::5]:+1", "expected an IP address and a port"),
            ("[fe80::5]:80", "name the interface behind it, as in fe80::5%"),
            ("[fe80::5%]:80", "this machine has no interface \"\""),
            ("[fe80::5%nothing0]:80", "this machine has no interface \"nothing0\"; it has "),
            ("[2001:db8::5%lo]:80", "leave %lo out"),
        ] {
            let said = socket_address(text).unwrap_err().to_string();
            assert!(said.contains(expected), "{text}: {said}");
        }
        let said = socket_address_or_port("router", 4780).unwrap_err().to_string();
        assert!(said.contains("192.168.1.5:4780, "), "{said}");
    }
}
