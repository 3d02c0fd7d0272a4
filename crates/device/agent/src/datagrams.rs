//! The datagrams that the station sends: its flows of UDP as the controller sees connections, their rates in the
//! kernel, and what moves over the interface that no rule bounds.

use std::collections::BTreeMap;
use std::fs;

use wakeai_control::{Actuation, Bounds, Connection, Limit};
use wakeai_host::Netlink;
use wakeai_kernel::{Egress, EgressHook, Error, Figures, UdpFlow};
use wakeai_units::{Bytes, Duration, Instant, Rate};

/// A flow that was silent for longer is not a connection any more.
const IDLE_AFTER: Duration = Duration::from_secs(10);
/// The largest number of flows that are handed to the controller: those that sent most in the last tick.
const MOST: usize = 256;
/// What the interface has moved beyond what the sockets have sent counts from this part of the latter on:
/// the headers of segments, which an offloading driver makes, are not known exactly.
const TOLERANCE: u64 = 20;
/// After a longer pause the program may have been detached meanwhile.
const PAUSED: Duration = Duration::from_secs(1);
/// The number of ticks between two looks at the interface's queueing discipline.
const LOOK_EVERY: u64 = 10;
/// The id of what no rule bounds. The id of a flow has this bit, too, but never this bit alone.
const NOT_GOVERNED: u64 = 1 << 63;
/// In what units the bytes that no rule bounds are counted.
const SEGMENT: u64 = 1448;

/// The flows of one interface, and their rates.
#[derive(Debug)]
pub(crate) struct Datagrams {
    egress: Egress,
    /// The index of the interface that the program watches, and whether its queueing discipline obeys
    /// departure times.
    watched: Option<(u32, bool)>,
    /// The number of ticks.
    ticks: u64,
    known: BTreeMap<u64, KnownFlow>,
    others: Others,
}

/// A flow as of the last tick.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KnownFlow {
    pub(crate) flow: UdpFlow,
    /// The mean size of the datagrams of the last tick that had some.
    pub(crate) mean: Bytes,
    /// What was sent in the last tick.
    sent: Bytes,
    /// The rate in force.
    pub(crate) bound: Option<Rate>,
    /// The rate at which it was sent over the last tick.
    pub(crate) rate: Rate,
}

impl Datagrams {
    /// Loads the program. The hook, which the supervising process holds, attaches it.
    pub(crate) fn open(netns_cookie: u64) -> Result<(Self, EgressHook), Error> {
        let (egress, hook) = Egress::open(netns_cookie)?;
        let others = Others::default();
        Ok((Self { egress, watched: None, ticks: 0, known: BTreeMap::new(), others }, hook))
    }

    /// Reads what the flows have sent since the last tick, and returns them as connections.
    pub(crate) fn read(
        &mut self,
        now: Instant,
        index: u32,
        interface: &str,
    ) -> Result<Vec<Connection>, Error> {
        self.watch(index)?;
        let flows = self.egress.flows(IDLE_AFTER)?;
        let span = self.others.read(now, sent_by(interface), self.egress.sent()?);
        let before = std::mem::take(&mut self.known);
        let mut known: Vec<_> =
            flows.into_iter().map(|flow| known(flow, before.get(&flow.id), span)).collect();
        known.sort_by_key(|of| std::cmp::Reverse((of.bound.is_some(), of.sent)));
        known.truncate(MOST);
        let mut connections: Vec<_> = known.iter().map(connection).collect();
        connections.extend(self.others.connection());
        self.known = known.into_iter().map(|of| (of.flow.id, of)).collect();
        // If such a flow goes on, it must not find its former rate. Those of the others are written again in this tick.
        for (id, _) in before.iter().filter(|(_, of)| of.bound.is_some()) {
            if !self.known.contains_key(id) {
                self.egress.set_rate(*id, None, Duration::ZERO)?;
            }
        }
        Ok(connections)
    }

    /// Sets the interface that the program watches, and how the interface sends.
    fn watch(&mut self, index: u32) -> Result<(), Error> {
        let is_same = self.watched.is_some_and(|(watched, _)| watched == index);
        self.ticks += 1;
        if is_same && !self.ticks.is_multiple_of(LOOK_EVERY) {
            return Ok(());
        }
        // Without the answer datagrams are dropped, as before any other queueing discipline.
        let asked = Netlink::open().and_then(|netlink| netlink.obeys_departure_times(index));
        let departs = asked.unwrap_or(false);
        if self.watched != Some((index, departs)) {
            self.egress.watch(index, departs)?;
            self.watched = Some((index, departs));
        }
        if !is_same {
            self.others = Others::default();
        }
        Ok(())
    }

    /// Writes the rates of flows. After an error the other writes are still tried. Returns the first error.
    pub(crate) fn apply(&mut self, actuation: &Actuation) -> Result<(), Error> {
        let bounds: BTreeMap<_, _> =
            actuation.sockets.iter().filter(|(id, _)| is_flow(*id)).copied().collect();
        let mut result = Ok(());
        for (id, of) in &mut self.known {
            let bounds = bounds.get(id).copied().unwrap_or(Bounds::NONE);
            let rate = bounds.rate;
            if rate != of.bound || rate.is_some() {
                result = result.and(self.egress.set_rate(*id, rate, bounds.burst));
            }
            of.bound = rate;
        }
        result
    }

    /// Renews the heartbeat. Without it the rates expire, and the program is detached.
    pub(crate) fn heartbeat(&self) -> Result<(), Error> {
        self.egress.heartbeat()
    }

    /// Removes all rates.
    pub(crate) fn clear(&mut self) -> Result<(), Error> {
        self.apply(&Actuation::default())
    }

    /// The flows as of the last tick.
    pub(crate) fn flows(&self) -> impl Iterator<Item = &KnownFlow> {
        self.known.values()
    }

    /// Whether what exceeds a rate waits for its departure time; if not, it is dropped. `None` before the first look.
    pub(crate) fn departs(&self) -> Option<bool> {
        self.watched.map(|(_, departs)| departs)
    }

    /// The rate at which the interface sends what no rule bounds; `None` while that is not known.
    pub(crate) fn not_governed(&self) -> Option<Rate> {
        self.others.rate
    }
}

/// Whether this is the id of a flow, and not the cookie of a socket.
pub(crate) fn is_flow(id: u64) -> bool {
    id & NOT_GOVERNED != 0
}

fn known(flow: UdpFlow, before: Option<&KnownFlow>, span: Option<Duration>) -> KnownFlow {
    let since = |count: fn(&UdpFlow) -> u64| {
        count(&flow).saturating_sub(before.map_or(0, |before| count(&before.flow)))
    };
    let sent = since(|flow| flow.sent.get());
    let mean = sent.checked_div(since(|flow| flow.datagrams)).map(Bytes::new);
    KnownFlow {
        flow,
        mean: mean.or(before.map(|before| before.mean)).unwrap_or(Bytes::ZERO),
        sent: Bytes::new(sent),
        bound: before.and_then(|before| before.bound),
        rate: span.map_or(Rate::ZERO, |span| Rate::of(Bytes::new(sent), span)),
    }
}

/// A flow in the terms of a connection: datagrams are its segments. It has no window and no RTT.
fn connection(of: &KnownFlow) -> Connection {
    let figures = Figures { delivered: of.flow.datagrams, mss: of.mean, ..Figures::default() };
    Connection { id: of.flow.id, figures, limit: Limit::Rate, ..Connection::default() }
}

/// What the interface has sent beyond what the machine's own sockets have: packets of the kernel's tunnels,
/// and those that it forwards for containers and for other hosts.
#[derive(Debug, Default)]
struct Others {
    /// The time of the last reading, and what interface and sockets had sent, bytes.
    last: Option<(Instant, Option<u64>, u64)>,
    /// Whether the program is known to count.
    counts: bool,
    rate: Option<Rate>,
    bytes: u64,
}

impl Others {
    /// Compares with the last reading. Returns the time since.
    fn read(&mut self, now: Instant, interface: Option<u64>, own: Bytes) -> Option<Duration> {
        let last = self.last.replace((now, interface, own.get()));
        self.rate = None;
        let (then, interface_then, own_then) = last?;
        let span = now.saturating_since(then);
        let own = own.get().saturating_sub(own_then);
        let counted = self.counts;
        self.counts = span < PAUSED && (counted || own > 0);
        let moved = interface?.saturating_sub(interface_then?);
        if counted && self.counts {
            let excess = moved.saturating_sub(own);
            let excess = if excess > own / TOLERANCE { excess } else { 0 };
            self.bytes += excess;
            self.rate = Some(Rate::of(Bytes::new(excess), span));
        }
        Some(span)
    }

    /// What it is to the controller: a connection that obeys nothing.
    fn connection(&self) -> Option<Connection> {
        let (delivered, mss) = (self.bytes / SEGMENT, Bytes::new(SEGMENT));
        let figures = Figures { delivered, mss, ..Figures::default() };
        let connection = Connection {
            id: NOT_GOVERNED,
            figures,
            limit: Limit::Nothing,
            ..Connection::default()
        };
        (self.bytes > 0).then_some(connection)
    }
}

/// The bytes that the interface of this name has sent, by its own counter.
fn sent_by(interface: &str) -> Option<u64> {
    bytes_sent(&fs::read_to_string("/proc/thread-self/net/dev").ok()?, interface)
}

/// The ninth number of the line of an interface (`proc_pid_net(5)`).
fn bytes_sent(text: &str, interface: &str) -> Option<u64> {
    let of = |line: &str| {
        let (name, numbers) = line.split_once(':')?;
        (name.trim() == interface).then(|| numbers.split_whitespace().nth(8)?.parse().ok())?
    };
    text.lines().find_map(of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counter_of_the_interface_is_its_ninth_number() {
        let text = "Inter-|   Receive    |  Transmit\n face |bytes    packets |bytes\n    \
                    lo: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n wlan0:11 2 3 4 5 6 7 8 19 1 1 1 1 1 1 1\n";
        assert_eq!(bytes_sent(text, "wlan0"), Some(19));
        assert_eq!(bytes_sent(text, "lo"), Some(9));
        assert_eq!(bytes_sent(text, "wlan"), None);
        assert!(sent_by("lo").is_some());
    }

    #[test]
    fn what_the_sockets_have_not_sent_is_not_governed_once_the_program_counts() {
        let mut others = Others::default();
        let mut read = |tick: u64, interface, own| {
            let now = Instant::from_nanos(tick * 500_000_000);
            others.read(now, Some(interface), Bytes::new(own));
            (others.rate.map(Rate::bits_per_second), others.connection().is_some())
        };
        assert_eq!(read(1, 1_000_000, 0), (None, false));
        assert_eq!(read(2, 2_000_000, 0), (None, false), "the program may not be attached");
        assert_eq!(read(3, 3_000_000, 100), (None, false), "it was attached within this tick");
        assert_eq!(read(4, 3_000_100, 200), (Some(0), false));
        assert_eq!(read(5, 4_040_100, 1_000_200), (Some(0), false), "the headers are not exact");
        assert_eq!(read(6, 4_640_100, 1_500_200), (Some(1_600_000), true));
        assert_eq!(read(9, 9_000_000, 1_500_300), (None, true), "it hung meanwhile");
    }

    #[test]
    fn the_size_of_a_datagram_is_the_mean_of_the_last_tick() {
        let local = "10.0.0.1:1".parse().unwrap();
        let flow = |sent, datagrams| UdpFlow {
            id: NOT_GOVERNED | 5,
            flow: wakeai_kernel::Flow { local, remote: local },
            sent: Bytes::new(sent),
            datagrams,
            idle: Duration::ZERO,
            backlog: Duration::ZERO,
            delayed: 0,
            marked: 0,
            dropped: 0,
            is_tunnel: false,
        };
        let span = Some(Duration::from_millis(500));
        let first = known(flow(1000, 10), None, span);
        let second = known(flow(13_000, 20), Some(&first), span);
        let silent = known(flow(13_000, 20), Some(&second), span);
        assert_eq!([first, second, silent].map(|of| of.mean.get()), [100, 1200, 1200]);
        assert_eq!((second.rate, silent.rate), (Rate::from_bps(192_000), Rate::ZERO));
        let connection = connection(&second);
        assert_eq!((connection.figures.delivered, connection.figures.mss.get()), (20, 1200));
        assert!(is_flow(connection.id) && !connection.has_data());
    }
}
