//! The configuration of a proxy.

use std::net::SocketAddr;
use std::str::FromStr;

use strum::{EnumMessage, IntoStaticStr, VariantArray};
use wakeai_net::Local;
use wakeai_units::{Bytes, Duration};

use crate::access::Access;
use crate::rates::TargetRate;

/// Which of the proxy's two connections crosses the wireless hop, and so uses the algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumMessage, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum Leg {
    /// The connection to the destination, for uploads.
    Destination,
    /// The connection to the client, for downloads.
    Client,
    /// Both connections.
    Both,
}

/// The connections that the proxy intercepts, see [`crate::transparent`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transparent {
    /// Whether it intercepts connections that this machine forwards.
    pub forwarded: bool,
    /// Whether it intercepts connections that programs on this machine open.
    pub own: bool,
}

impl Transparent {
    /// Whether the proxy intercepts any connections.
    pub fn is_any(self) -> bool {
        self.forwarded || self.own
    }
}

/// The name of a network interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface(pub(crate) String);

/// The error for a text that is not the name of an interface.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("found {0:?}, expected the name of an interface, such as \"eth0\", for --in-interface")]
pub struct InterfaceError(String);

impl FromStr for Interface {
    type Err = InterfaceError;

    /// Accepts names of at most 15 bytes, as the kernel does. It refuses characters that have a
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
    /// The interfaces over which a forwarded connection must come in to be intercepted. If the list
    /// is empty, it may come in over any interface.
    pub in_interfaces: Vec<Interface>,
    /// The congestion control of the wireless hop; `None` stands for the host's default.
    pub algorithm: Option<String>,
    /// The target rates of connections over the wireless hop, for the algorithm `wakeai_av`.
    pub rates: Vec<TargetRate>,
    /// The connection of the proxy that goes over the wireless hop.
    pub leg: Leg,
    /// The sources that are served, and the destinations that they may reach.
    pub access: Access,
    /// The largest number of connections at a time; further clients wait in the kernel's queue. If
    /// the proxy has clients that name their destination and clients that are intercepted, each
    /// kind gets half of the connections.
    pub connections: usize,
    /// The largest number of bytes in all pipes together. Bytes go through pipes without a copy;
    /// where no pipe is free, they are copied.
    pub memory: Bytes,
    /// The time limit for a client's request, and then for the connection to the destination.
    pub connect_timeout: Duration,
    /// The idle timeout: a connection that carries no byte for this long is reset. The proxy
    /// uses a shorter time while the number of connections is close to its limit.
    pub idle_timeout: Duration,
    /// The address at which Prometheus may ask for the proxy's figures.
    pub metrics: Option<Local>,
    /// Whether the proxy gives up privileges once it listens and no longer needs them. The process
    /// must then have only one thread.
    pub confined: bool,
    /// The user as which the proxy serves; `None` stands for the user that started it. To serve as
    /// another user, the process needs root and must have one thread. The proxy is then confined.
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
