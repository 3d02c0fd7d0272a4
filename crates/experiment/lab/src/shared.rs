//! The resources that all runs of one `wakeai lab` command share.

use std::path::Path;
use std::sync::Arc;

use wakeai_host::Lease;
use wakeai_kernel::Control;
use wakeai_net::Local;
use wakeai_world::{Progress, RunError};

use crate::host::Steering;

/// The resources that all runs of a command share.
pub(crate) struct SharedResources<'a> {
    pub(crate) lease: &'a Lease,
    pub(crate) progress: &'a dyn Progress,
    pub(crate) wakeai: &'a Path,
    /// Whether the driver may become a real-time thread.
    pub(crate) realtime: bool,
    /// Whether the driver makes a digest of all packets, and iperf3 carries no TCP flow.
    pub(crate) in_guest: bool,
    /// The processors of the driver (the thread that emulates the radio) and of the hosts; `None`
    /// on a machine with one processor.
    pub(crate) steering: Option<Steering>,
    /// The handle that sets target rates, if a `wakeai_*` algorithm is loaded.
    pub(crate) targets: Option<Arc<Control>>,
    /// Where agents serve their figures.
    pub(crate) metrics: Option<Local>,
    /// A directory for files that are needed only during a run.
    pub(crate) scratch: &'a Path,
}

impl SharedResources<'_> {
    /// Returns an error if the user wants the run to end.
    pub(crate) fn check(&self) -> Result<(), RunError> {
        if self.progress.is_interrupted() { Err(RunError::Interrupted) } else { Ok(()) }
    }
}
