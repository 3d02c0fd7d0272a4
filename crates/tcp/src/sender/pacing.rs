//! Spreading segments over time.

use wakeai_units::{Duration, Instant};

/// Segments of a connection that leave unpaced, as in Linux: its first window.
const UNPACED: u64 = 10;

/// When the next segment may leave.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pacing {
    next_at: Instant,
    /// What `next_at` was before the last segment, should it not leave.
    before: Instant,
    /// Something would have left if it might.
    waits: bool,
}

impl Pacing {
    /// Whether a segment may leave now; if not, [`Self::next_timeout`] says when.
    pub(super) fn may_send(&mut self, now: Instant) -> bool {
        self.waits = now < self.next_at;
        !self.waits
    }

    /// A segment of `len` bytes leaves, the `count`-th of the connection. Lateness of up to half of
    /// a segment's time is made up for.
    pub(super) fn send(&mut self, now: Instant, len: u32, bytes_per_s: u64, count: u64) {
        self.before = self.next_at;
        let late = now.saturating_since(self.next_at);
        self.next_at = self.next_at.max(now);
        if bytes_per_s == 0 || bytes_per_s == u64::MAX || count < UNPACED {
            return;
        }
        let takes = Duration::from_nanos((u64::from(len) * 1_000_000_000).div_ceil(bytes_per_s));
        self.next_at += takes - late.min(takes / 2);
    }

    /// It did not leave.
    pub(super) fn unsend(&mut self) {
        self.next_at = self.before;
    }

    pub(super) fn stop_waiting(&mut self) {
        self.waits = false;
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.waits.then_some(self.next_at)
    }
}
