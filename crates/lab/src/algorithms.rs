//! The congestion controls that a scenario asks for: ours are loaded, the kernel's are looked for.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

use nix::errno::Errno;
use socket2::{Domain, Protocol, Socket, Type};
use wakeai_host::read_sysctl;
use wakeai_kernel::{Bounded, Control};
use wakeai_scenario::ResolvedCondition;

use crate::error::LabError;

/// Makes sure that all of `conditions` can be run. Where one of ours is among the algorithms, they
/// are loaded, and the handle returned that gives their connections target rates.
///
/// # Errors
///
/// [`LabError::Missing`] with the name of the first that this kernel does not have.
pub(crate) fn prepare(conditions: &[ResolvedCondition]) -> Result<Option<Arc<Control>>, LabError> {
    let flows = conditions.iter().flat_map(|condition| &condition.scenario.flows);
    let asked: BTreeSet<&str> = flows.filter_map(|flow| flow.algorithm.as_deref()).collect();
    let is_ours = |name: &&str| Bounded::ALL.iter().any(|bounded| bounded.name == *name);
    let control = if asked.iter().any(is_ours) { Some(Arc::new(Control::open()?)) } else { None };
    asked.into_iter().try_for_each(try_out)?;
    Ok(control)
}

/// Asks for the algorithm, for which the kernel loads a module where it can.
fn try_out(name: &str) -> Result<(), LabError> {
    let ask = || {
        Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?
            .set_tcp_congestion(name.as_bytes())
    };
    match ask() {
        Err(error) if error.raw_os_error() == Some(Errno::ENOENT as i32) => {
            let there = read_sysctl("net.ipv4.tcp_available_congestion_control");
            Err(LabError::Missing {
                what: format!("the congestion control {name}"),
                remedy: format!(
                    "`modprobe tcp_{name}`, or a kernel that is built with it; this one has {}",
                    there.unwrap_or_default()
                ),
            })
        }
        result => result.map_err(LabError::system::<io::Error>(format!(
            "choose the congestion control {name}"
        ))),
    }
}
