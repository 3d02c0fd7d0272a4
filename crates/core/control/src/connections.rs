//! Decides which connections are sending: by data in flight or waiting, and by what was delivered since the last
//! tick.

use std::collections::BTreeMap;

use wakeai_connection::Figures;
use wakeai_units::{Bytes, Segments};

use crate::ConnectionView;

/// A connection that delivered more segments than this since the last tick (0.5 s ago) is sending,
/// even where nothing is in flight now. The number is an initial window (RFC 6928). An exchange of
/// short messages does not exceed it.
const SENDING_SEGMENTS: u32 = 10;

/// One of the station's connections over the Wi-Fi interface, as read at a tick.
///
/// A connection counts as sending in two cases: it has data in flight or in its send queue, or it
/// delivered more than an initial window (10 segments) since the last tick.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Connection {
    /// The kernel's socket cookie.
    pub id: u64,
    /// The figures of the connection.
    pub figures: Figures,
    /// Whether the connection's congestion control algorithm applies bounds.
    pub boundable: bool,
}

impl Connection {
    /// Whether the connection has data in flight or in its send queue.
    pub fn has_data(&self) -> bool {
        self.figures.packets_out > Segments::ZERO || self.figures.send_queue > Bytes::ZERO
    }
}

/// Compares the station's connections at a tick with its connections at the last tick.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConnectionWatch {
    /// The number of segments that each connection had delivered at the last tick, by connection
    /// id.
    delivered: BTreeMap<u64, u64>,
}

impl ConnectionWatch {
    /// Replaces the content of `views` by what a law sees of `connections`.
    pub(crate) fn on_tick(&mut self, connections: &[Connection], views: &mut Vec<ConnectionView>) {
        views.clear();
        views.extend(connections.iter().map(|connection| {
            let Connection { id, figures, boundable } = *connection;
            // The kernel's counter has 32 bits, and wraps.
            let since = |before: &u64| (figures.delivered as u32).wrapping_sub(*before as u32);
            let delivered = self.delivered.get(&id).map_or(0, since);
            let sending = connection.has_data() || delivered > SENDING_SEGMENTS;
            ConnectionView { id, figures, boundable, delivered, sending }
        }));
        self.delivered = views.iter().map(|view| (view.id, view.figures.delivered)).collect();
    }
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
            watch.on_tick(&[Connection { figures, ..Connection::default() }], &mut views);
            (views[0].delivered, views[0].sending)
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
    fn a_connection_that_was_gone_for_a_tick_begins_anew() {
        let mut watch = ConnectionWatch::default();
        let mut views = Vec::new();
        let figures = |delivered| Figures { delivered, ..Figures::default() };
        let one = |delivered| [Connection { figures: figures(delivered), ..Connection::default() }];
        watch.on_tick(&one(5), &mut views);
        watch.on_tick(&[], &mut views);
        assert!(views.is_empty());
        watch.on_tick(&one(500), &mut views);
        assert_eq!((views[0].delivered, views[0].sending), (0, false));
    }
}
