//! Writes the bounds that `control` gives into the kernel's maps.

use wakeai_control::{Actuation, Bounds, LIMITS_EVERY, TICK};
use wakeai_kernel::{Control, Error, SupervisedBounds, WindowReport};
use wakeai_units::{Duration, Instant, Segments};

use crate::datagrams::is_flow;

/// After a change of a receive window by the kernel others are likely for this long: a buffer that grows does so again and
/// again.
const MOVES_FOR: Duration = Duration::from_secs(10);

/// When the receive windows are written again. The kernel changes one only while data arrives, because it then enlarges
/// buffers. `moved_at` is when such a change, or a new connection, was last found.
fn next_write(now: Instant, receives: bool, moved_at: Option<Instant>) -> Instant {
    let move_on = receives && moved_at.is_some_and(|at| now.saturating_since(at) < MOVES_FOR);
    now + if move_on { LIMITS_EVERY } else { TICK }
}

/// The bounds of one interface in the kernel.
#[derive(Debug)]
pub(crate) struct Actuator {
    control: Control,
    netns_cookie: u64,
    /// The sockets to which the last tick gave bounds of their own, sorted.
    bound: Vec<u64>,
    /// Whether a bound of a receive window is in force.
    receives: bool,
    /// Whether receive windows are bounded, or may have to be put back.
    windows_are_bounded: bool,
    /// When a receive window was last found that was not as it had been written.
    moved_at: Option<Instant>,
    /// The error of the last write of receive windows, which the next tick reports.
    windows_failed: Option<Error>,
    /// Whether the log says that windows of MPTCP are left alone.
    multipath_is_told: bool,
}

impl Actuator {
    pub(crate) fn new(control: Control, netns_cookie: u64) -> Self {
        Self {
            control,
            netns_cookie,
            bound: Vec::new(),
            receives: false,
            windows_are_bounded: false,
            moved_at: None,
            windows_failed: None,
            multipath_is_told: false,
        }
    }

    /// Writes the bounds of each socket of TCP and the interface's default bounds. Removes the bounds of
    /// sockets that no longer have any. After an error the other writes are still tried. Returns
    /// the first error.
    ///
    /// Bounds are written although they have not changed: the agent of another interface removes those of a connection
    /// that has left it for this one.
    ///
    /// `others` is whether a connection has an algorithm that applies no bounds.
    pub(crate) fn apply(
        &mut self,
        index: u32,
        actuation: &Actuation,
        others: bool,
    ) -> Result<(), Error> {
        let Actuation { sockets, default } = actuation;
        let written = self.control.set_interface(self.netns_cookie, index, *default);
        let mut result = self.control.check().and(written);
        let sockets: Vec<(u64, Bounds)> =
            sockets.iter().filter(|(id, _)| !is_flow(*id)).copied().collect();
        result = result.and(self.control.set_sockets(&sockets));
        let mut bound: Vec<u64> = sockets.iter().map(|(cookie, _)| *cookie).collect();
        bound.sort_unstable();
        for cookie in self.bound.iter().filter(|cookie| bound.binary_search(cookie).is_err()) {
            result = result.and(self.control.clear_socket(*cookie));
        }
        self.bound = bound;
        let mut all = sockets.iter().map(|(_, bounds)| bounds).chain([default]);
        self.receives = all.any(|bounds| bounds.receive < Segments::MAX);
        self.windows_are_bounded |= self.receives || others;
        result.and(self.windows_failed.take().map_or(Ok(()), Err))
    }

    /// Whether connections can be bounded whose algorithms apply no bounds.
    pub(crate) fn reaches_others(&self) -> bool {
        self.control.has_windows()
    }

    /// Whether [`Self::bound_windows`] has anything to do.
    pub(crate) fn bounds_windows(&self) -> bool {
        self.windows_are_bounded
    }

    /// When the receive windows are written again after a write at `now`. `receives` is whether data arrives.
    pub(crate) fn next_write(&self, now: Instant, receives: bool) -> Instant {
        next_write(now, receives, self.moved_at)
    }

    /// Bounds the receive windows of connections, and the congestion windows of those whose algorithms apply no bounds, as
    /// the bounds in force say, and puts back those of other connections.
    pub(crate) fn bound_windows(&mut self, now: Instant) {
        let report = match self.control.bound_windows() {
            Ok(report) => report,
            Err(error) => return self.windows_failed = Some(error),
        };
        if report.multipath > 0 && !self.multipath_is_told {
            self.multipath_is_told = true;
            let connections = report.multipath;
            tracing::info!(connections, "the receive windows of MPTCP subflows are not bounded");
        }
        if report.moved > 0 {
            self.moved_at = Some(now);
        }
        self.windows_are_bounded = self.receives || report != WindowReport::default();
    }

    /// The bounds of the namespace, for the process that supervises the agent.
    pub(crate) fn supervised(&self) -> Result<SupervisedBounds, Error> {
        self.control.supervised(self.netns_cookie)
    }

    /// Renews the heartbeat. Without it the bounds of this interface expire.
    pub(crate) fn heartbeat(&self, index: u32) -> Result<(), Error> {
        self.control.heartbeat(self.netns_cookie, index)
    }

    /// Removes all bounds of this interface, and puts back the receive windows.
    pub(crate) fn clear(&mut self, now: Instant, index: u32) -> Result<(), Error> {
        let mut result = self.control.clear_interface(self.netns_cookie, index);
        for cookie in std::mem::take(&mut self.bound) {
            result = result.and(self.control.clear_socket(cookie));
        }
        self.receives = false;
        if self.windows_are_bounded {
            self.bound_windows(now);
        }
        result.and(self.windows_failed.take().map_or(Ok(()), Err))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receive_windows_are_written_often_while_they_move_and_data_arrives() {
        let after = |receives, moved_at: Option<u64>| {
            let now = Instant::from_nanos(60_000_000_000);
            let moved_at = moved_at.map(|s| Instant::ZERO + Duration::from_secs(s));
            next_write(now, receives, moved_at).saturating_since(now)
        };
        assert_eq!(after(true, Some(60)), LIMITS_EVERY);
        assert_eq!(after(true, Some(51)), LIMITS_EVERY, "nine seconds ago");
        assert_eq!(after(true, Some(50)), TICK, "ten seconds ago");
        assert_eq!(after(true, None), TICK);
        assert_eq!(after(false, Some(60)), TICK);
    }
}
