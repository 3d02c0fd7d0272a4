//! How the changes of this crate are undone: the registrations that processes share, connections that were moved, and
//! receive windows that were bounded.

use std::error::Error as StdError;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use wakeai_host::{Change, Lease, NetnsId, OtherChange, Stage, UndoKind, UndoKinds};

use crate::assign::{Assigner, Assignment, Covered, Destination};
use crate::control::Control;
use crate::windows;

/// How a command undoes the changes of this crate.
pub const UNDO: UndoKinds<'static> = &[&Parts { is_leaving: false }, &Connections, &ReceiveWindows];

/// The registrations of the algorithms in the kernel and the pinned BPF maps. All processes share them.
pub fn parts() -> Change {
    Change::Other(OtherChange {
        name: PARTS.to_owned(),
        what: "BPF registrations and pins".to_owned(),
        stage: Stage::Shared,
        details: String::new(),
    })
}

const PARTS: &str = "kernel_parts";
const CONNECTIONS: &str = "connections";
const RECEIVE_WINDOWS: &str = "receive_windows";

/// The receive windows of the connections of a network namespace, which an agent bounds.
pub fn receive_windows(netns: NetnsId) -> Change {
    Change::Other(OtherChange {
        name: RECEIVE_WINDOWS.to_owned(),
        what: "bounds of receive windows".to_owned(),
        stage: Stage::Part,
        details: serde_json::to_string(&netns).expect("it is an integer"),
    })
}

/// Undoes the changes of a lease; see [`Lease::release`].
pub fn release(lease: Lease) -> Vec<(Change, String)> {
    lease.release(&[&Parts { is_leaving: true }, &Connections, &ReceiveWindows])
}

/// Undoes [`parts`].
struct Parts {
    /// Whether the process is about to end, and may have given up the privilege to unmount the bpffs. It leaves that to
    /// the next command.
    is_leaving: bool,
}

impl UndoKind for Parts {
    fn name(&self) -> &'static str {
        PARTS
    }

    fn shared(&self) -> Option<Change> {
        Some(parts())
    }

    fn undo(&self, _: &OtherChange) -> Result<bool, Box<dyn StdError>> {
        match Control::unload() {
            Err(error) if self.is_leaving && error.is_missing() => {
                tracing::info!(%error, "the BPF parts stay until the next wakeai command or `wakeai sweep`");
                Ok(true)
            }
            other => Ok(other?),
        }
    }
}

/// Connections that one process moved to an algorithm. Undoing this change moves them back to the
/// algorithm that they had before; connections that are newer than the change get the algorithm
/// that they would have had.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assigned {
    /// The namespace of the connections; `None` stands for every namespace.
    pub netns: Option<NetnsId>,
    /// The algorithm's name.
    pub algorithm: String,
    /// The way in which the connections got the algorithm.
    pub way: AssignedWay,
}

/// The way in which connections got an algorithm that they had not set themselves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "way")]
pub enum AssignedWay {
    /// The algorithm was the default of their namespace, or of their route.
    Default {
        /// The network that the route leads to: address and length of the prefix. `None`: the
        /// default was that of the namespace.
        destination: Option<(IpAddr, u8)>,
        /// The algorithm that the connections would have had; `None`: the default of their
        /// namespace.
        before: Option<String>,
    },
    /// Each connection was moved. A BPF map records for each the previous algorithm and the process
    /// that moved it.
    Moved {
        /// The id of that process.
        owner: u32,
    },
}

impl Assigned {
    /// The change for a lease. Connections over a route come before those of a whole namespace, because the latter include
    /// them.
    pub fn change(&self) -> Change {
        let is_route = matches!(self.way, AssignedWay::Default { destination: Some(_), .. });
        Change::Other(OtherChange {
            name: CONNECTIONS.to_owned(),
            what: format!("connections that were moved to {}", self.algorithm),
            stage: if is_route { Stage::Part } else { Stage::Whole },
            details: serde_json::to_string(self).expect("it has string keys and integers alone"),
        })
    }
}

/// Undoes [`Assigned`].
struct Connections;

impl UndoKind for Connections {
    fn name(&self) -> &'static str {
        CONNECTIONS
    }

    fn undo(&self, change: &OtherChange) -> Result<bool, Box<dyn StdError>> {
        let assigned: Assigned = serde_json::from_str(&change.details)?;
        let (owner, destination, covered) = match &assigned.way {
            AssignedWay::Default { destination, before } => {
                let to = |(address, length)| Destination { address, length, port: None };
                (0, destination.map(to), Covered::Defaults { before: before.as_deref() })
            }
            AssignedWay::Moved { owner } => {
                (*owner, None, Covered::Moved { everywhere: assigned.netns.is_none() })
            }
        };
        let algorithm = assigned.algorithm.as_str();
        let assignment = Assignment { algorithm, covered, bytes_per_second: 0, destination, owner };
        let give_back = || Assigner::open(&assignment)?.give_back();
        let report = match assigned.netns.map(NetnsId::open) {
            None => give_back()?,
            Some(Some(namespace)) => namespace.run(give_back)??,
            Some(None) => return Ok(false), // the connections ended with their namespace
        };
        if report.failed > 0 {
            tracing::warn!(
                failed = report.failed,
                "the algorithms of some connections could not be restored"
            );
        }
        Ok(report.moved > 0)
    }
}

/// Undoes [`receive_windows`].
struct ReceiveWindows;

impl UndoKind for ReceiveWindows {
    fn name(&self) -> &'static str {
        RECEIVE_WINDOWS
    }

    fn undo(&self, change: &OtherChange) -> Result<bool, Box<dyn StdError>> {
        let netns: NetnsId = serde_json::from_str(&change.details)?;
        // An agent has given up the privilege to enter even the namespace in which it is.
        let freed = if NetnsId::current().is_ok_and(|here| here == netns) {
            windows::give_back()?
        } else if let Some(namespace) = netns.open() {
            namespace.run(windows::give_back)??
        } else {
            0 // the connections ended with their namespace
        };
        Ok(freed > 0)
    }
}
