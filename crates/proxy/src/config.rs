//! What a proxy is asked to do.

use std::net::SocketAddr;

use wakeai_units::{Bytes, Duration};

use crate::access::Access;
use crate::rates::TargetRate;
use crate::transparent::Interface;

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
