//! The congestion events of all connections, from the kernel's tracepoints.

use std::collections::HashMap;

use wakeai_kernel::{Error, EventKind, Filter, Monitor, MonitorConfig};
use wakeai_units::Duration;

use crate::reading::{ConnectionId, Events};

/// What the monitor has seen of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SeenEvents {
    /// Its events since the counter was opened.
    pub(crate) events: Events,
    /// The interface over which it is routed, once it has sent something.
    pub(crate) interface: Option<u32>,
    /// The latest RTT.
    pub(crate) latest_rtt: Option<Duration>,
    /// K of its stage of congestion avoidance.
    pub(crate) k: Option<Duration>,
}

/// Counts the events of each connection.
#[derive(Debug)]
pub(crate) struct EventCounter {
    monitor: Monitor,
    seen: HashMap<ConnectionId, SeenEvents>,
}

impl EventCounter {
    /// Begins to count. One sample per connection and second is enough for what a screen shows.
    pub(crate) fn open(filter: Filter) -> Result<Self, Error> {
        let sample_interval = std::time::Duration::from_secs(1);
        let config = MonitorConfig { sample_interval, filter, ..MonitorConfig::default() };
        Ok(Self { monitor: Monitor::open(&config)?, seen: HashMap::new() })
    }

    /// Reads the records that have arrived.
    pub(crate) fn poll(&mut self) -> Result<(), Error> {
        let Self { monitor, seen } = self;
        monitor.poll(std::time::Duration::ZERO, &mut |record| {
            let netns = u64::from(record.socket.netns_inode);
            let id = ConnectionId { netns, cookie: record.socket.cookie };
            let seen = seen.entry(id).or_default();
            if let Some(EventKind::Error(code)) = record.event {
                seen.events.count(code);
            }
            let figures = record.figures;
            seen.interface = Some(figures.interface).filter(|index| *index != 0).or(seen.interface);
            (seen.latest_rtt, seen.k) = (figures.latest_rtt, figures.k);
        })
    }

    /// What was seen of this connection.
    pub(crate) fn seen(&self, id: ConnectionId) -> SeenEvents {
        self.seen.get(&id).copied().unwrap_or_default()
    }

    /// Forgets the connections that are gone.
    pub(crate) fn retain(&mut self, is_alive: impl Fn(ConnectionId) -> bool) {
        self.seen.retain(|id, _| is_alive(*id));
    }

    /// The number of records that were lost because they were too many.
    pub(crate) fn lost(&self) -> u64 {
        self.monitor.lost()
    }
}
