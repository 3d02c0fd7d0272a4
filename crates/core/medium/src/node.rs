//! The nodes of the network, and the packets that the medium carries.

use std::fmt;

use wakeai_units::Instant;

/// The purpose of a packet. The medium treats all purposes equally, and counts their airtime
/// separately.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// Data of an application.
    #[default]
    Data,
    /// An acknowledgement of the transport protocol without data.
    TransportAck,
    /// A message of an agent.
    Presence,
}

/// Anything that the medium can carry. A simulator carries records, and the lab carries real bytes.
///
/// A packet is `Clone` because a broadcast is handed to every other station.
pub trait Packet: Clone {
    /// The length of the IP packet in bytes, with the IP header and without link-layer headers.
    fn len(&self) -> usize;

    /// The purpose of the packet.
    fn kind(&self) -> Kind {
        Kind::Data
    }

    /// The flow of the packet, as a number among the flows of its sender. Queues that separate
    /// flows use it.
    fn flow(&self) -> u64 {
        0
    }

    /// Whether the packet carries nothing at all.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Packet for Vec<u8> {
    fn len(&self) -> usize {
        Self::len(self)
    }
}

/// A station by its position in [`WifiConfig::stations`](crate::WifiConfig::stations).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StationId(pub u32);

impl StationId {
    /// The station's position, for indexing.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// An end of the network. The access point only forwards, so it is no node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Node {
    /// The server on the far side of the wired leg.
    Server,
    /// A station of the BSS.
    Station(StationId),
}

/// The destination of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Destination {
    /// One node. A packet from station to station goes through the access point.
    Unicast(Node),
    /// Every other station of the BSS, but not the server.
    Broadcast,
}

/// A packet that has arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery<P> {
    /// The virtual time at which its last bit arrived. It is at or before the `now` of the
    /// [`handle_timeout`](crate::Medium::handle_timeout) that produced this delivery.
    pub at: Instant,
    /// The node at which it arrived.
    pub to: Node,
    /// The node that sent it.
    pub from: Node,
    /// The packet itself.
    pub packet: P,
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server => f.write_str("server"),
            Self::Station(id) => write!(f, "station {}", id.0),
        }
    }
}
