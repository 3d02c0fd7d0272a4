//! Undoes the changes that a dead process made to connections.

use std::error::Error as StdError;

use wakeai_host::{Assigned, AssignedWay, Change, KernelUndo, Lease};

use crate::assign::{Assigner, Assignment, Covered, Destination};
use crate::control::Control;

/// Undoes the changes of a lease; see [`Lease::release`]. The last holder of the kernel's parts unloads them. A process that
/// has given up the privilege to unmount the bpffs leaves that to the next command.
pub fn release(lease: Lease) -> Vec<(Change, String)> {
    lease.release(&|| match Control::unload() {
        Err(error) if error.is_missing() => {
            tracing::info!(%error, "the BPF parts stay until the next wakeai command or `wakeai sweep`");
            Ok(true)
        }
        other => other.map_err(Into::into),
    })
}

/// The part of [`wakeai_host::sweep`] that needs this crate.
#[derive(Clone, Copy, Debug)]
pub struct Undo;

impl KernelUndo for Undo {
    fn unload(&self) -> Result<bool, Box<dyn StdError>> {
        Ok(Control::unload()?)
    }

    fn give_back(&self, assigned: &Assigned) -> Result<bool, Box<dyn StdError>> {
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
        let report = match assigned.netns.map(wakeai_host::NetnsId::open) {
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
