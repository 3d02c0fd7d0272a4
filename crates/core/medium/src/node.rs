//! The nodes of the network, and the packets that the medium carries.

use std::fmt;
use std::iter::successors;

use wakeai_units::Instant;
use wakeai_wifi::Mode;

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

    /// The modulation of its frame at this attempt, where 0 is the first. `None` is that of the station's
    /// configuration. A radio of [`WifiConfig::radios`](crate::WifiConfig::radios) chooses it for each frame.
    fn modulation(&self, _attempt: u8) -> Option<Mode> {
        None
    }

    /// The attempts after which its frame is given up. `None` is the access point's limit.
    fn attempts(&self) -> Option<u8> {
        None
    }

    /// The length of its MPDU in bytes, with header, encryption and check sequence. `None` is that of a frame
    /// that carries the packet without encryption.
    fn mpdu(&self) -> Option<u32> {
        None
    }

    /// Whether an access point sends it before the other packets of its queue, and takes it although the queue is full.
    fn is_urgent(&self) -> bool {
        false
    }

    /// Whether the packet carries nothing at all.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A packet of 1500 bytes.
#[cfg(test)]
impl Packet for u32 {
    fn len(&self) -> usize {
        1_500
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

/// The nodes at which a packet has arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Receivers {
    /// One node.
    Node(Node),
    /// The stations that have received a broadcast.
    Stations(Stations),
}

/// A packet that has arrived at one node or, at the same time, at several stations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival<P> {
    /// The virtual time at which its last bit arrived, as [`Delivery::at`].
    pub at: Instant,
    /// The nodes at which it arrived.
    pub to: Receivers,
    /// The node that sent it.
    pub from: Node,
    /// The packet itself.
    pub packet: P,
}

/// A set of stations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stations {
    /// A bit for each station; 64 stations a word.
    words: Vec<u64>,
}

impl Stations {
    /// An empty set that has room for this number of stations.
    pub(crate) fn with_capacity(stations: usize) -> Self {
        Self { words: Vec::with_capacity(stations.div_ceil(64)) }
    }

    /// Adds a station.
    pub fn insert(&mut self, station: StationId) {
        let word = station.index() / 64;
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (station.0 % 64);
    }

    /// Whether the station is in the set.
    #[inline]
    pub fn contains(&self, station: StationId) -> bool {
        let word = self.words.get(station.index() / 64);
        word.is_some_and(|word| word >> (station.0 % 64) & 1 == 1)
    }

    /// Whether the set has no station.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// Takes the first station out of the set.
    pub fn pop_first(&mut self) -> Option<StationId> {
        let first = self.iter().next()?;
        self.words[first.index() / 64] &= !(1 << (first.0 % 64));
        Some(first)
    }

    /// The set as bits, 64 stations a word. Missing words are zero.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// The stations, in the order of their positions.
    pub fn iter(&self) -> impl Iterator<Item = StationId> {
        (0..).zip(&self.words).flat_map(|(place, word)| {
            let some = |bits: u64| (bits != 0).then_some(bits);
            let bits = successors(some(*word), move |bits| some(bits & (bits - 1)));
            bits.map(move |bits| StationId(64 * place + bits.trailing_zeros()))
        })
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server => f.write_str("server"),
            Self::Station(id) => write!(f, "station {}", id.0),
        }
    }
}
