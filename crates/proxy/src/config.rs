//! The configuration of a proxy.

use std::net::SocketAddr;
use std::str::FromStr;

use wakeai_units::{Bytes, Duration};

use crate::access::Access;
use crate::rates::TargetRate;

/// The connection of the proxy that crosses the wireless hop, and therefore uses the algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leg {
    /// From the proxy to the destination: uploads.
    Destination,
    /// From the proxy to the client: downloads.
    Client,
    /// Both.
    Both,
}

/// The connections that the proxy intercepts, see [`crate::transparent`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transparent {
    /// Those that this machine forwards.
    pub forwarded: bool,
    /// Those that programs on this machine open.
    pub own: bool,
}

impl Transparent {
    /// Whether it intercepts any.
    pub fn is_any(self) -> bool {
        self.forwarded || self.own
    }
}

/// The name of a network interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface(pub(crate) String);

/// A text that is not the name of an interface.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("found {0:?}, expected the name of an interface, such as \"eth0\", for --in-interface")]
pub struct InterfaceError(String);

impl FromStr for Interface {
    type Err = InterfaceError;

    /// Accepts the names that the kernel accepts (at most 15 bytes), except those with a character that has a
    /// meaning in a rule of nft.
    fn from_str(text: &str) -> Result<Self, InterfaceError> {
        let sound = |byte: u8| byte.is_ascii_graphic() && !b"\"\\*/".contains(&byte);
        let whole = (1..16).contains(&text.len()) && text.bytes().all(sound);
        if whole { Ok(Self(text.to_owned())) } else { Err(InterfaceError(text.to_owned())) }
    }
}

/// The configuration of a proxy.
#[derive(Clone, Debug)]
pub struct Config {
    /// The addresses to listen on for SOCKS5 and HTTP CONNECT.
    pub listen: Vec<SocketAddr>,
    /// The connections to intercept in addition.
    pub transparent: Transparent,
    /// Forwarded connections are intercepted if they come in by one of these interfaces; empty: by any.
    pub in_interfaces: Vec<Interface>,
    /// The congestion control of the wireless hop; `None`: the host's default.
    pub algorithm: Option<String>,
    /// The target rates of connections over the wireless hop, for the algorithm `wakeai_av`.
    pub rates: Vec<TargetRate>,
    /// The connection of the proxy that goes over the wireless hop.
    pub leg: Leg,
    /// The sources that are served, and the destinations that they may reach.
    pub access: Access,
    /// The most connections at a time; further clients wait in the kernel's queue. If the proxy has
    /// both explicit and transparent clients, each kind has half of the connections.
    pub connections: usize,
    /// The most bytes in all pipes together. Without a free pipe, bytes are copied.
    pub memory: Bytes,
    /// The time limit for a client's request, and again for the connection to the destination.
    pub connect_timeout: Duration,
    /// The idle timeout: a connection that carries no byte for this long is reset. It is shorter
    /// while few slots are free.
    pub idle_timeout: Duration,
    /// Whether the proxy gives up the privileges that it no longer needs once it listens. The process must
    /// then have one thread only.
    pub confined: bool,
    /// The user that serves; `None`: the user that started the proxy. Another user needs root and a
    /// process with one thread, and confines the proxy.
    pub user: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_an_interface_ends_no_rule() {
        for name in ["eth0", "wlan0.7", "br-lan", "a23456789012345"] {
            assert!(name.parse::<Interface>().is_ok(), "{name}");
        }
        for name in ["", "eth 0", "eth0\" accept", "a\nb", "a/b", "eth*", "a234567890123456"] {
            assert!(name.parse::<Interface>().is_err(), "{name}");
        }
    }
}
