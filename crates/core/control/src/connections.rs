//! Decides which connections send and which receive: by data in flight or waiting, and by what was
//! moved since the last tick.

use hashbrown::hash_table::Entry;
use wakeai_connection::{Figures, Receiving};
use wakeai_units::{Bytes, Duration, Segments};

use crate::ConnectionView;
use crate::driver::TICK;
use crate::places::ById;

/// A connection that moved more segments than this since the last tick (0.5 s ago) is active, even
/// where nothing is in flight now. The number is an initial window (RFC 6928). An exchange of short
/// messages does not exceed it.
const ACTIVE_SEGMENTS: u32 = 10;

/// What limits how much a connection sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Limit {
    /// Its congestion window or its receive window, to which bounds apply.
    Window,
    /// Only a rate: datagrams.
    Rate,
    /// Nothing that the agent could set.
    #[default]
    Nothing,
}

/// One of the station's connections over the Wi-Fi interface, as read at a tick.
///
/// A connection counts as sending in two cases: it has data in flight or in its send queue, or it
/// delivered more than an initial window (10 segments) since the last tick. It counts as receiving
/// once it has received more than an initial window since the last tick, and then as long as each
/// tick brings at least two segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Connection {
    /// The kernel's socket cookie.
    pub id: u64,
    /// The figures of the connection as a sender.
    pub figures: Figures,
    /// The figures of the connection as a receiver.
    pub receiving: Receiving,
    /// What limits how much the connection sends.
    pub limit: Limit,
}

impl Connection {
    /// Whether the connection has data in flight or in its send queue.
    pub fn has_data(&self) -> bool {
        self.figures.packets_out > Segments::ZERO || self.figures.send_queue > Bytes::ZERO
    }
}

/// A connection at the last tick.
#[derive(Clone, Copy, Debug)]
struct Known {
    /// The segments that it had delivered.
    delivered: u64,
    /// The bytes that it had received.
    received: u64,
    /// Whether it counted as sending, and as receiving.
    sends: bool,
    receives: bool,
    /// The tick, by number.
    seen: u64,
}

/// Compares the station's connections at a tick with its connections at the last tick.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConnectionWatch {
    /// The connections at the last tick, by id.
    known: ById<Known>,
    ticks: u64,
}

impl ConnectionWatch {
    /// Replaces the content of `up` and `down` by what a law sees of `connections` in each direction.
    /// A connection that has never received more than an initial window in a tick is not in `down`.
    pub(crate) fn on_tick(
        &mut self,
        connections: &[Connection],
        up: &mut Vec<ConnectionView>,
        down: &mut Vec<ConnectionView>,
    ) {
        up.clear();
        down.clear();
        self.ticks += 1;
        let seen = self.ticks;
        for connection in connections {
            let entry = self.known.entry(connection.id);
            let before = match &entry {
                Entry::Occupied(known) => Some(&known.get().1),
                Entry::Vacant(_) => None,
            };
            let view = sender(connection, before);
            let sends = view.active;
            up.push(view);
            let (view, receives) = receiver(connection, before);
            down.extend(receives.then_some(view));
            let (delivered, received) =
                (connection.figures.delivered, connection.receiving.received);
            entry.insert((connection.id, Known { delivered, received, sends, receives, seen }));
        }
        self.known.retain(|known| known.seen == seen);
    }
}

fn sender(connection: &Connection, before: Option<&Known>) -> ConnectionView {
    let Connection { id, figures, limit, receiving: _ } = *connection;
    // The kernel's counter has 32 bits, and wraps.
    let since = |before: &Known| (figures.delivered as u32).wrapping_sub(before.delivered as u32);
    let delivered = before.map_or(0, since);
    let active = connection.has_data() || delivered > ACTIVE_SEGMENTS;
    let begins = active && !before.is_some_and(|before| before.sends);
    ConnectionView { id, figures, limit, delivered, active, begins }
}

/// The receiving end of a connection in a sender's terms, and whether it counts as receiving. What the
/// peer has in flight follows from Little's law: the bytes that arrive in one RTT, at most the window
/// that was offered. The handshake, and what this end has sent itself, give a minimum of the RTT from
/// before the queue.
fn receiver(connection: &Connection, before: Option<&Known>) -> (ConnectionView, bool) {
    let Receiving { received, rtt, window, mss } = connection.receiving;
    let bytes = before.map_or(0, |before| received.saturating_sub(before.received));
    let segments =
        |bytes: u64| u32::try_from(bytes.checked_div(mss.get()).unwrap_or(0)).unwrap_or(u32::MAX);
    let delivered = segments(bytes);
    let least = if before.is_some_and(|before| before.receives) { 1 } else { ACTIVE_SEGMENTS };
    let receives = delivered > least;
    let in_rtt = u128::from(bytes) * u128::from(rtt.unwrap_or(Duration::ZERO).as_nanos())
        / u128::from(TICK.as_nanos());
    let flying = u64::try_from(in_rtt).unwrap_or(u64::MAX).min(window.get());
    let flying = Segments::new(segments(flying));
    let figures = Figures {
        cwnd: flying,
        packets_out: flying,
        mss,
        smoothed_rtt: rtt,
        latest_rtt: rtt,
        min_rtt: rtt.into_iter().chain(connection.figures.min_rtt).min(),
        ..Figures::default()
    };
    let (id, limit) = (connection.id, Limit::Window);
    let (active, begins) = (receives, false);
    let view = ConnectionView { id, figures, limit, delivered, active, begins };
    (view, receives)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_with_data_or_recent_deliveries_is_sending() {
        let mut watch = ConnectionWatch::default();
        let mut views = Vec::new();
        let mut tick = |delivered, packets_out, send_queue| {
            let packets_out = Segments::new(packets_out);
            let send_queue = Bytes::new(send_queue);
            let figures = Figures { delivered, packets_out, send_queue, ..Figures::default() };
            let connection = Connection { figures, ..Connection::default() };
            watch.on_tick(&[connection], &mut views, &mut Vec::new());
            (views[0].delivered, views[0].active)
        };
        let cases = [
            ("the first tick has nothing to compare with", (100, 0, 0), (0, false)),
            ("an initial window", (110, 0, 0), (10, false)),
            ("more than that", (121, 0, 0), (11, true)),
            ("nothing delivered, something in flight", (121, 1, 0), (0, true)),
            ("something waits", (121, 0, 1), (0, true)),
            ("much was delivered", (u64::from(u32::MAX), 0, 0), (u32::MAX - 121, true)),
            ("the kernel's counter has wrapped", (20, 0, 0), (21, true)),
        ];
        for (case, (delivered, out, queue), expected) in cases {
            assert_eq!(tick(delivered, out, queue), expected, "{case}");
        }
    }

    #[test]
    fn a_connection_begins_at_the_first_tick_at_which_it_is_active() {
        let mut watch = ConnectionWatch::default();
        let (mut up, mut down) = (Vec::new(), Vec::new());
        let mut tick = |packets_out, received: u64| {
            let figures = Figures { packets_out: Segments::new(packets_out), ..Figures::default() };
            let mss = Bytes::new(1448);
            let receiving = Receiving { received: received * 1448, mss, ..Receiving::default() };
            let connection = Connection { figures, receiving, ..Connection::default() };
            watch.on_tick(&[connection], &mut up, &mut down);
            (up[0].begins, down.first().map(|view| view.begins))
        };
        assert_eq!(tick(0, 0), (false, None));
        assert_eq!(tick(1, 0), (true, None));
        assert_eq!(tick(1, 20), (false, Some(false)));
        assert_eq!(tick(0, 40), (false, Some(false)));
        assert_eq!(tick(1, 40), (true, None), "it was idle");
    }

    #[test]
    fn a_connection_that_was_gone_for_a_tick_begins_anew() {
        let mut watch = ConnectionWatch::default();
        let mut views = Vec::new();
        let figures = |delivered| Figures { delivered, ..Figures::default() };
        let one = |delivered| [Connection { figures: figures(delivered), ..Connection::default() }];
        let mut tick = |connections: &[Connection]| {
            watch.on_tick(connections, &mut views, &mut Vec::new());
            views.iter().map(|view| (view.delivered, view.active)).collect::<Vec<_>>()
        };
        tick(&one(5));
        assert_eq!(tick(&[]), []);
        assert_eq!(tick(&one(500)), [(0, false)]);
    }

    #[test]
    fn a_connection_receives_from_an_initial_window_per_tick_until_nothing_comes() {
        let mut watch = ConnectionWatch::default();
        let mut tick = |segments: u64| {
            let (mss, window) = (Bytes::new(1448), Bytes::new(60_000));
            let rtt = Some(Duration::from_millis(100));
            let receiving = Receiving { received: segments * 1448, rtt, window, mss };
            let (mut up, mut down) = (Vec::new(), Vec::new());
            let connection = Connection { receiving, ..Connection::default() };
            watch.on_tick(&[connection], &mut up, &mut down);
            assert!(!up[0].active, "it sends nothing");
            down.first().map(|view| (view.delivered, view.figures.cwnd.get()))
        };
        assert_eq!(tick(100), None, "the first tick has nothing to compare with");
        assert_eq!(tick(110), None, "an initial window");
        // A fifth of a tick's segments arrives in an RTT of 100 ms.
        assert_eq!(tick(160), Some((50, 10)));
        assert_eq!(tick(760), Some((600, 41)), "at most the window of 60,000 bytes");
        assert_eq!(tick(762), Some((2, 0)));
        assert_eq!(tick(763), None, "less than two segments");
        assert_eq!(tick(765), None, "it has to begin anew");
    }
}
