//! What was seen at one moment: the connections with their ends, figures, bounds and processes.

use std::collections::HashSet;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use wakeai_api::Answers;
use wakeai_connection::{Bounds, ErrorCode, Figures};
use wakeai_units::text::{is_visible, visible};
use wakeai_units::{Duration, Instant, Rate};

/// The connections and the agents at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    /// The time since the first reading, or since the start of a run.
    pub at: Instant,
    /// The time of day, in seconds since 1970 (UTC); `None` in a simulation.
    pub clock_s: Option<u64>,
    /// The connections, in the order of their [`SeenConnection::id`].
    pub connections: Vec<SeenConnection>,
    /// The agents of this machine.
    pub agents: Vec<Answers>,
    /// What cannot be shown, and the reason for each.
    pub missing: Vec<String>,
}

impl Reading {
    /// The connection with this identity.
    pub fn find(&self, id: ConnectionId) -> Option<&SeenConnection> {
        let found = self.connections.binary_search_by_key(&id, |connection| connection.id);
        found.ok().map(|index| &self.connections[index])
    }
}

/// The identity of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId {
    /// The inode of its network namespace; in a run the index of the flow.
    pub netns: u64,
    /// The kernel's number of the connection (`SO_COOKIE`); in a run its number in the flow.
    pub cookie: u64,
}

/// One connection at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct SeenConnection {
    /// Its identity.
    pub id: ConnectionId,
    /// The name of its network namespace; empty for the namespace of the screen itself.
    pub namespace: Arc<str>,
    /// The command of the process that holds its socket, or the station. Empty if it is unknown.
    pub owner: Arc<str>,
    /// The process that holds its socket.
    pub pid: Option<u32>,
    /// This end.
    pub local: End,
    /// The other end.
    pub remote: End,
    /// Its congestion control algorithm.
    pub algorithm: Arc<str>,
    /// Its figures.
    pub figures: Figures,
    /// The bounds that an agent has set for it.
    pub bounds: Bounds,
    /// The rate of acknowledged bytes since the previous reading.
    pub sent: Option<Rate>,
    /// The rate of received bytes since the previous reading.
    pub received: Option<Rate>,
    /// What limited its sending since the previous reading.
    pub limit: Option<Limit>,
    /// Its congestion events since this program began to count them; `None` if they cannot be
    /// counted.
    pub events: Option<Events>,
    /// Segments retransmitted since the connection began.
    pub retransmits: u64,
}

impl SeenConnection {
    /// The queueing delay: the smoothed RTT less the minimum.
    pub fn queueing(&self) -> Option<Duration> {
        let (smoothed, least) = (self.figures.smoothed_rtt?, self.figures.min_rtt?);
        Some(smoothed.saturating_sub(least))
    }

    /// The ends that are addresses.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        [&self.local, &self.remote].into_iter().filter_map(|end| match end {
            End::Address(address) => Some(*address),
            End::Named(_) => None,
        })
    }
}

/// One end of a connection.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    /// An address and a port.
    Address(SocketAddr),
    /// A name in a scenario.
    Named(Arc<str>),
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Named(name) => f.write_str(name),
        }
    }
}

impl From<Arc<str>> for End {
    fn from(text: Arc<str>) -> Self {
        text.parse().map_or(Self::Named(text), Self::Address)
    }
}

/// What limited a sender between two readings. The screen and the records have it as a word, which parses as the limit.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, strum::EnumString, strum::IntoStaticStr,
)]
#[strum(serialize_all = "lowercase")]
pub enum Limit {
    /// It had nothing to send.
    Idle,
    /// The application gave too little: most of the time nothing waited and nothing was in flight.
    Application,
    /// The window of the receiver (`tcpi_rwnd_limited`).
    Receiver,
    /// The send buffer (`tcpi_sndbuf_limited`).
    #[strum(serialize = "send buffer")]
    SendBuffer,
    /// The ceiling that an agent has set.
    Ceiling,
    /// The congestion window.
    Window,
}

/// The congestion events of a connection, counted by their codes (Matsuno et al., table 2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Events {
    /// Reorderings, overflows of the local queue, fast recoveries and timeouts: codes 1 to 4.
    pub counts: [u64; 4],
}

impl Events {
    /// Counts one event.
    pub fn count(&mut self, code: ErrorCode) {
        self.counts[usize::from(code.number()) - 1] += 1;
    }

    /// The number of all events.
    pub fn total(self) -> u64 {
        self.counts.iter().sum()
    }
}

/// One copy of each text that many connections share.
#[derive(Debug, Default)]
pub(crate) struct Texts(HashSet<Arc<str>>);

impl Texts {
    /// The text without what steers a terminal. A recording may come from anywhere.
    pub(crate) fn share(&mut self, text: &str) -> Arc<str> {
        if !text.chars().all(is_visible) {
            return self.share(&visible(text));
        }
        if let Some(known) = self.0.get(text) {
            return Arc::clone(known);
        }
        let new: Arc<str> = text.into();
        self.0.insert(Arc::clone(&new));
        new
    }
}
