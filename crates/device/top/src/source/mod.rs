//! What is seen on this machine: one [`Live::read`] per interval.
//!
//! The connections come from `sock_diag(7)`, which every user may ask. With privileges the monitor adds the congestion
//! events, and the maps of the bounds what the agents have set. The flows of UDP are those that the agents count.

mod agents;
mod datagrams;
mod diag;
mod events;
mod namespaces;
mod processes;

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::{Instant as Clock, SystemTime, UNIX_EPOCH};

use agents::AgentWatch;
pub use agents::FindSockets;
use diag::{DiagSocket, Totals};
use events::{EventCounter, SeenEvents};
use namespaces::{Namespaces, SocketAnswer, Watched};
use processes::Processes;
use wakeai_connection::{Bounds, Figures};
use wakeai_host::NetnsId;
use wakeai_kernel::{AppliedBounds, Bounded, Filter};
use wakeai_units::{Bytes, Duration, Instant, Rate};

use crate::reading::{ConnectionId, End, Limit, Reading, SeenConnection, Texts};

/// Why connections cannot be read at all.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot read TCP connections by sock_diag: {0}; the kernel needs the module tcp_diag (CONFIG_INET_TCP_DIAG): \
     load it as root with `modprobe tcp_diag`"
)]
pub struct LiveError(io::Error);

/// The connections of this machine.
#[derive(Debug)]
pub struct Live {
    started: Clock,
    namespaces: Namespaces,
    processes: Processes,
    agents: AgentWatch,
    /// The counter of events, or why there is none.
    events: Result<EventCounter, String>,
    /// The state of each connection at the previous reading.
    before: HashMap<ConnectionId, (Clock, Totals)>,
    /// Texts that many connections share.
    texts: Texts,
}

impl Live {
    /// Opens everything that this process may use. `only` has the namespaces that are read; if it is empty, all are that
    /// can be entered. `agents` finds the agents, which are asked once per `interval`.
    ///
    /// # Errors
    ///
    /// Not even the connections of this process's namespace can be read.
    pub fn open(
        only: Vec<NetnsId>,
        agents: FindSockets,
        interval: std::time::Duration,
    ) -> Result<Self, LiveError> {
        let inodes = only.iter().filter_map(|id| u32::try_from(id.0).ok()).collect();
        let filter = Filter { netns_inodes: inodes, ..Filter::default() };
        let namespaces = Namespaces::open(only).map_err(LiveError)?;
        for watched in namespaces.watched.values() {
            diag::connections(&watched.socket).map_err(LiveError)?;
        }
        Ok(Self {
            started: Clock::now(),
            namespaces,
            processes: Processes::default(),
            agents: AgentWatch::start(agents, interval),
            events: EventCounter::open(filter).map_err(|error| error.to_string()),
            before: HashMap::new(),
            texts: Texts::default(),
        })
    }

    /// Reads everything once. What cannot be read is named in [`Reading::missing`].
    pub fn read(&mut self) -> Reading {
        let mut missing = Vec::new();
        self.namespaces.refresh();
        if let Ok(events) = &mut self.events
            && let Err(error) = events.poll()
        {
            self.events = Err(error.to_string());
        }
        match &self.events {
            Err(reason) => missing.push(format!("congestion events: {reason}")),
            Ok(events) if events.lost() > 0 => {
                missing.push(format!("{} congestion events: too many at once", events.lost()));
            }
            Ok(_) => {}
        }
        let applied = AppliedBounds::read().unwrap_or_else(|error| {
            missing.push(format!("bounds of agents: {error}"));
            None
        });
        if self.namespaces.closed > 0 {
            let closed = self.namespaces.closed;
            missing.push(format!("connections of {closed} other network namespaces: run as root"));
        }
        let at = Instant::ZERO + Duration::from_nanos(self.started.elapsed().as_nanos() as u64);
        let mut connections = self.connections(applied.as_ref(), &mut missing);
        let agents = self.agents.latest();
        let algorithm = self.texts.share(datagrams::ALGORITHM);
        connections.extend(datagrams::connections(&agents, &self.namespaces, &algorithm));
        connections.sort_unstable_by_key(|connection| connection.id);
        connections.dedup_by_key(|connection| connection.id);
        let clock = SystemTime::now().duration_since(UNIX_EPOCH).ok();
        Reading { at, clock_s: clock.map(|since| since.as_secs()), connections, agents, missing }
    }

    fn connections(
        &mut self,
        applied: Option<&AppliedBounds>,
        missing: &mut Vec<String>,
    ) -> Vec<SeenConnection> {
        let answers = self.namespaces.sockets(missing);
        let all = answers.iter().flat_map(|answer| &answer.sockets);
        let inodes = all.map(|socket| socket.inode).filter(|inode| *inode != 0).collect();
        self.processes.refresh(&inodes);
        let mut unowned = 0;
        let (mut connections, mut now) = (Vec::new(), HashMap::new());
        for SocketAnswer { netns, watched, read, sockets } in &answers {
            for socket in sockets {
                let id = ConnectionId { netns: netns.0, cookie: socket.cookie };
                let before = self.before.get(&id).map(|(then, totals)| {
                    let span = read.saturating_duration_since(*then);
                    (Duration::from_nanos(span.as_nanos() as u64), *totals)
                });
                now.insert(id, (*read, socket.totals));
                let seen = self.events.as_ref().ok().map(|events| events.seen(id));
                let monitored = seen.unwrap_or_default();
                let bounds = bounds_of(applied, socket, watched, monitored.interface);
                let process = self.processes.holder(socket.inode);
                unowned += usize::from(process.is_none() && socket.inode != 0);
                let owner =
                    process.map_or_else(|| "".into(), |process| Arc::clone(&process.command));
                connections.push(SeenConnection {
                    id,
                    namespace: Arc::clone(&watched.name),
                    owner,
                    pid: process.map(|process| process.pid),
                    local: End::Address(socket.local),
                    remote: End::Address(socket.remote),
                    algorithm: self.texts.share(&socket.algorithm),
                    figures: figures(socket, monitored),
                    bounds,
                    sent: rate(before, |totals| totals.acknowledged, socket),
                    received: rate(before, |totals| totals.received, socket),
                    limit: before.map(|(span, before)| limit(span, before, socket, bounds)),
                    events: seen.map(|seen| seen.events),
                    retransmits: socket.totals.retransmits,
                });
            }
        }
        if unowned > 0 {
            missing.push(format!(
                "processes of {unowned} connections: they belong to other users or to the kernel"
            ));
        }
        if let Ok(events) = &mut self.events {
            events.retain(|id| now.contains_key(&id));
        }
        self.before = now;
        connections
    }
}

/// The figures of `sock_diag`, with those that only the monitor knows.
fn figures(socket: &DiagSocket, monitored: SeenEvents) -> Figures {
    let SeenEvents { latest_rtt, k, interface, .. } = monitored;
    Figures { latest_rtt, k, interface: interface.unwrap_or(0), ..socket.figures }
}

/// The bounds that the connection's algorithm applies.
fn bounds_of(
    applied: Option<&AppliedBounds>,
    socket: &DiagSocket,
    watched: &Watched,
    interface: Option<u32>,
) -> Bounds {
    let find = || {
        let applied = applied.filter(|_| Bounded::named(&socket.algorithm).is_some())?;
        applied.of(socket.cookie, watched.cookie?, interface).ok()?
    };
    find().unwrap_or_default()
}

/// The rate of one of the totals since the previous reading.
fn rate(
    before: Option<(Duration, Totals)>,
    of: impl Fn(Totals) -> u64,
    socket: &DiagSocket,
) -> Option<Rate> {
    let (span, before) = before?;
    Some(Rate::of(Bytes::new(of(socket.totals).saturating_sub(of(before))), span))
}

/// What limited a sender during `span`. The kernel counts how long the sender was busy, and how long of this time the
/// receiver or the send buffer limited it (`tcp_chrono_start` and the functions after it).
fn limit(span: Duration, before: Totals, socket: &DiagSocket, bounds: Bounds) -> Limit {
    let now = socket.totals;
    let during = |of: fn(Totals) -> u64| of(now).saturating_sub(of(before));
    let busy = during(|totals| totals.busy_us);
    // The kernel counts in ticks of some milliseconds, so that short bursts may count as 0.
    let acknowledged = during(|totals| totals.acknowledged);
    if busy == 0 && acknowledged == 0 && socket.figures.packets_out.get() == 0 {
        return Limit::Idle;
    }
    if busy * 2 < span.as_micros() {
        return Limit::Application;
    }
    if during(|totals| totals.receiver_us) * 2 > busy {
        return Limit::Receiver;
    }
    if during(|totals| totals.send_buffer_us) * 2 > busy {
        return Limit::SendBuffer;
    }
    if socket.figures.cwnd >= bounds.ceiling { Limit::Ceiling } else { Limit::Window }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use wakeai_units::Segments;

    use super::*;

    fn found(busy_ms: u64, receiver_ms: u64, send_buffer_ms: u64) -> DiagSocket {
        let any: SocketAddr = "10.0.0.1:1".parse().unwrap();
        DiagSocket {
            cookie: 1,
            inode: 0,
            local: any,
            remote: any,
            algorithm: "wakeai_cubic".to_owned(),
            figures: Figures { cwnd: Segments::new(10), ..Figures::default() },
            totals: Totals {
                busy_us: 5_000_000 + busy_ms * 1000,
                receiver_us: receiver_ms * 1000,
                send_buffer_us: send_buffer_ms * 1000,
                ..Totals::default()
            },
        }
    }

    #[test]
    fn the_kernel_s_times_tell_what_limited_a_second() {
        let before = Totals { busy_us: 5_000_000, ..Totals::default() };
        let mut short_burst = found(0, 0, 0);
        short_burst.totals.acknowledged = 1;
        let ceiling = |ceiling| Bounds::from_numbers(0, ceiling, 0, 0);
        let cases = [
            (found(0, 0, 0), 0, Limit::Idle),
            (found(400, 0, 0), 0, Limit::Application),
            (short_burst, 0, Limit::Application),
            (found(1000, 600, 0), 0, Limit::Receiver),
            (found(1000, 100, 600), 0, Limit::SendBuffer),
            (found(1000, 100, 100), 0, Limit::Window),
            (found(1000, 100, 100), 11, Limit::Window),
            (found(1000, 100, 100), 10, Limit::Ceiling),
        ];
        for (found, bound, expected) in cases {
            let limit = limit(Duration::from_secs(1), before, &found, ceiling(bound));
            assert_eq!(limit, expected, "{found:?}");
            assert_eq!(<&str>::from(limit).parse(), Ok(limit));
        }
    }

    #[test]
    fn a_rate_is_of_the_bytes_since_the_reading_before() {
        let mut found = found(0, 0, 0);
        found.totals.acknowledged = 3_000_000;
        let before = Totals { acknowledged: 1_000_000, ..Totals::default() };
        let of = |before| rate(before, |totals| totals.acknowledged, &found);
        assert_eq!(of(Some((Duration::from_secs(2), before))), Some(Rate::from_mbps(8)));
        assert_eq!(of(None), None, "there was no reading before");
    }
}
