//! Runs the program that bounds the receive windows of connections and the congestion windows of those whose algorithms
//! apply no bounds. It puts back those that no bounds apply to.

use libbpf_rs::Link;
use libbpf_rs::MapCore as _;
use zerocopy::FromBytes as _;

use crate::connections::run_iterator;
use crate::error::Error;
use crate::features::{BOUND, explain};
use crate::netns::netns_cookie;
use crate::place;
use crate::raw::InterfaceKey;
use crate::registration;
use crate::skeleton::algorithms::types::window_outcome;

/// The result of [`Control::bound_windows`](crate::Control::bound_windows): numbers of connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WindowReport {
    /// Their receive window is bounded.
    pub bound: u32,
    /// Of these, it was not bounded before, or the kernel or the application has changed its clamp since.
    pub moved: u32,
    /// Their window was bounded until now, and their former clamp is put back.
    pub freed: u32,
    /// They have offered a window of 0, and stay as they are until it opens.
    pub closed: u32,
    /// They are subflows of MPTCP, whose windows are left alone.
    pub multipath: u32,
    /// The kernel has refused the change.
    pub refused: u32,
    /// Their algorithm applies no bounds, and their congestion window is bounded.
    pub senders: u32,
    /// Their congestion window was bounded until now, and its former clamp is put back.
    pub freed_senders: u32,
}

const ASKED: &str = "bound receive windows";

/// The loaded program, which all processes share.
#[derive(Debug)]
pub(crate) struct Windows(Link);

impl Windows {
    /// Opens the pinned program. `None` where there is none, as on a kernel that lacks the feature.
    pub(crate) fn open() -> Result<Option<Self>, Error> {
        let pin = place::pin(registration::WINDOWS);
        if !pin.exists() {
            return Ok(None);
        }
        let link = Link::open(pin).map_err(|error| explain(ASKED, BOUND, error))?;
        Ok(Some(Self(link)))
    }

    /// Runs the program for the calling thread's network namespace.
    pub(crate) fn bound(&self) -> Result<WindowReport, Error> {
        let (mut report, mut outcomes) = (WindowReport::default(), Vec::new());
        run_iterator(&self.0, ASKED, &mut outcomes)?;
        for outcome in outcomes {
            if u32::from(outcome) == window_outcome::WINDOW_MOVED.0 {
                report.moved += 1;
            }
            let count = match window_outcome(outcome.into()) {
                window_outcome::WINDOW_BOUND | window_outcome::WINDOW_MOVED => &mut report.bound,
                window_outcome::WINDOW_FREED => &mut report.freed,
                window_outcome::WINDOW_CLOSED => &mut report.closed,
                window_outcome::WINDOW_MULTIPATH => &mut report.multipath,
                window_outcome::SENDER_BOUND => &mut report.senders,
                window_outcome::SENDER_FREED => &mut report.freed_senders,
                _ => &mut report.refused,
            };
            *count += 1;
        }
        Ok(report)
    }
}

/// Puts back all receive windows of the calling thread's network namespace, whose agent is dead. Returns the number
/// of connections.
pub(crate) fn give_back() -> Result<u32, Error> {
    place::in_machine_mounts(|| {
        // An agent that died while it registered the algorithms has pinned this program last, or not at all.
        let Some(windows) = Windows::open()? else { return Ok(0) };
        let Some([_, _, heartbeats, _]) = registration::open_to_read()? else { return Ok(0) };
        // Kernels that lack the cookie cannot have the program either.
        let netns_cookie =
            netns_cookie().map_err(|error| Error::from_io("read the namespace's cookie", error))?;
        // Bounds are in force for a while after the last heartbeat. Without it they are not.
        for key in heartbeats.keys() {
            if InterfaceKey::read_from_bytes(&key).is_ok_and(|key| key.netns_cookie == netns_cookie)
            {
                crate::control::take(&heartbeats, &key)?;
            }
        }
        let report = windows.bound()?;
        if report.refused > 0 {
            tracing::warn!(refused = report.refused, "receive windows could not be put back");
        }
        Ok(report.freed + report.freed_senders)
    })
}
