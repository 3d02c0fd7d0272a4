//! What a proxy is asked to do.

use std::net::SocketAddr;
use std::str::FromStr;

use wakeai_units::{Bytes, Duration};

use crate::access::Access;
use crate::rates::TargetRate;

/// The leg that is carried by the algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leg {
    /// From the proxy to the destination: uploads over the air.
    Destination,
    /// From the proxy back to the client: downloads over the air.
    Client,
    /// Both.
    Both,
}

/// Whose connections are taken without being asked, see [`crate::transparent`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transparent {
    /// Those that this machine forwards.
    pub forwarded: bool,
    /// Those that programs on this machine open.
    pub own: bool,
}

impl Transparent {
    /// Whether any are.
    pub fn is_any(self) -> bool {
        self.forwarded || self.own
    }
}

/// The name of a network interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface(pub(crate) String);

/// A text that is no name of an interface.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("found {0:?}, expected the name of an interface, such as \"eth0\", for --in-interface")]
pub struct InterfaceError(String);

impl FromStr for Interface {
    type Err = InterfaceError;

    /// As the kernel has them (at most 15 bytes), without what would mean something else in a rule.
    fn from_str(text: &str) -> Result<Self, InterfaceError> {
        let sound = |byte: u8| byte.is_ascii_graphic() && !b"\"\\*/".contains(&byte);
        let whole = (1..16).contains(&text.len()) && text.bytes().all(sound);
        if whole { Ok(Self(text.to_owned())) } else { Err(InterfaceError(text.to_owned())) }
    }
}

/// What a proxy is asked to do.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where to listen for SOCKS5 and HTTP CONNECT.
    pub listen: Vec<SocketAddr>,
    /// Whose connections to take besides.
    pub transparent: Transparent,
    /// The interfaces by which forwarded connections come in to be taken; any, where empty.
    pub in_interfaces: Vec<Interface>,
    /// The congestion control of the leg over the air; the host's default where `None`.
    pub algorithm: Option<String>,
    /// What each connection's leg over the air is to carry, where the algorithm is `wakeai_av`.
    pub rates: Vec<TargetRate>,
    /// Which leg that is.
    pub leg: Leg,
    /// Who may ask for what.
    pub access: Access,
    /// Connections at a time; more wait in the kernel's queue. Where there are explicit and transparent
    /// clients, each kind has half.
    pub connections: usize,
    /// What pipes may hold together; connections beyond it are copied.
    pub memory: Bytes,
    /// For a request to be made, and again for the destination to answer.
    pub connect_timeout: Duration,
    /// Without a byte in either direction for so long, a connection is reset; under pressure sooner.
    pub idle_timeout: Duration,
    /// Whether to give up every privilege that is not needed any more once it listens. The process
    /// must have one thread then.
    pub confined: bool,
    /// The user as whom to serve, where not as the caller. Needs root, and one thread; the process is
    /// confined then.
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
