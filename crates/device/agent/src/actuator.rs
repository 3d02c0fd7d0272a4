//! Writes the bounds that `control` gives into the kernel's maps.

use std::collections::BTreeSet;

use wakeai_control::Actuation;
use wakeai_kernel::{Control, Error, SupervisedBounds, WindowReport};
use wakeai_units::Segments;

/// The bounds of one interface in the kernel.
#[derive(Debug)]
pub(crate) struct Actuator {
    control: Control,
    netns_cookie: u64,
    /// The sockets to which the last tick gave bounds of their own.
    bound: BTreeSet<u64>,
    /// What was last done with receive windows.
    windows: WindowReport,
    /// Whether the last tick has bounded receive windows.
    bounds_windows: bool,
}

impl Actuator {
    pub(crate) fn new(control: Control, netns_cookie: u64) -> Self {
        let windows = WindowReport::default();
        Self { control, netns_cookie, bound: BTreeSet::new(), windows, bounds_windows: false }
    }

    /// Writes the bounds of each socket and the interface's default bounds. Removes the bounds of
    /// sockets that no longer have any. After an error the other writes are still tried. Returns
    /// the first error.
    pub(crate) fn apply(&mut self, index: u32, actuation: &Actuation) -> Result<(), Error> {
        let Actuation { sockets, default } = actuation;
        let all = sockets.iter().map(|(_, bounds)| bounds).chain([default]);
        self.bounds_windows = all.into_iter().any(|bounds| bounds.receive < Segments::MAX);
        let written = self.control.set_interface(self.netns_cookie, index, *default);
        let mut result = self.control.check().and(written);
        for (cookie, bounds) in sockets {
            result = result.and(self.control.set_socket(*cookie, *bounds));
        }
        let bound = sockets.iter().map(|(cookie, _)| *cookie).collect();
        for cookie in self.bound.difference(&bound) {
            result = result.and(self.control.clear_socket(*cookie));
        }
        self.bound = bound;
        result.and(self.bound_windows())
    }

    /// Whether receive windows are bounded, so that they have to be written again before the next tick.
    pub(crate) fn bounds_windows(&self) -> bool {
        self.bounds_windows
    }

    /// Bounds the receive windows of connections as the bounds in force say, and puts back those of other connections.
    /// The kernel changes a window by itself when it enlarges a buffer, or measures how much of the buffer packets take.
    pub(crate) fn bound_windows(&mut self) -> Result<(), Error> {
        let report = self.control.bound_windows()?;
        if report.multipath > 0 && self.windows.multipath == 0 {
            tracing::info!(
                connections = report.multipath,
                "the receive windows of MPTCP connections are not bounded"
            );
        }
        self.windows = report;
        Ok(())
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
    pub(crate) fn clear(&mut self, index: u32) -> Result<(), Error> {
        self.bounds_windows = false;
        let mut result = self.control.clear_interface(self.netns_cookie, index);
        for cookie in std::mem::take(&mut self.bound) {
            result = result.and(self.control.clear_socket(cookie));
        }
        result.and(self.bound_windows())
    }
}
