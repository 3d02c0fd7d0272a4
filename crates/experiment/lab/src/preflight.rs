//! Checks what the lab requires of a machine, before anything is changed, and loads the congestion
//! control algorithms.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::Arc;

use nix::errno::Errno;
use socket2::{Domain, Protocol, Socket, Type};
use wakeai_host::read_sysctl;
use wakeai_kernel::{Bounded, Control, features};
use wakeai_scenario::{FlowKind, ResolvedCondition};

use crate::error::LabError;
use crate::host::dying_with_us;
use crate::traffic::iperf;

/// Returns an error that names the first missing requirement of a network with its air.
pub(crate) fn check_network() -> Result<(), LabError> {
    if !nix::unistd::geteuid().is_root() {
        return Err(LabError::missing(
            "root",
            "run `sudo wakeai lab`: it makes network namespaces and loads BPF programs",
        ));
    }
    if !Path::new("/dev/net/tun").exists() {
        return Err(LabError::missing(
            "/dev/net/tun",
            "modprobe tun, or give the container that device",
        ));
    }
    Ok(())
}

/// Returns an error that names the first missing requirement of runs.
pub(crate) fn check(conditions: &[ResolvedCondition]) -> Result<(), LabError> {
    check_network()?;
    let found = features::detect();
    found.to_monitor()?;
    if conditions.iter().flat_map(ResolvedCondition::laws).any(|law| law.is_some()) {
        found.to_bound()?;
    }
    if !dying_with_us("true").status().is_ok_and(|status| status.success()) {
        return Err(LabError::missing(
            "setpriv with --pdeathsig",
            "install the package util-linux",
        ));
    }
    let version = iperf::version()?;
    tracing::debug!(version, "iperf3");
    Ok(())
}

/// Makes the congestion controls of all `conditions` available. If one of them is Wakeai's, this
/// loads all of Wakeai's and returns a handle that sets the target rates of connections.
///
/// # Errors
///
/// [`LabError::Missing`] with the name of the first algorithm that this kernel does not have.
pub(crate) fn load_algorithms(
    conditions: &[ResolvedCondition],
) -> Result<Option<Arc<Control>>, LabError> {
    let flows = conditions.iter().flat_map(|condition| &condition.experiment.flows);
    let kernels = flows.filter(|flow| flow.kind == FlowKind::Tcp);
    let asked: BTreeSet<&str> = kernels.filter_map(|flow| flow.algorithm.as_deref()).collect();
    let is_ours = |name: &&str| Bounded::named(name).is_some();
    let control = if asked.iter().any(is_ours) { Some(Arc::new(Control::open()?)) } else { None };
    asked.into_iter().try_for_each(try_out)?;
    Ok(control)
}

/// Chooses the algorithm for a socket. The kernel then loads the algorithm's module, if it has one.
fn try_out(name: &str) -> Result<(), LabError> {
    let choose = || {
        Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?
            .set_tcp_congestion(name.as_bytes())
    };
    match choose() {
        Err(error) if error.raw_os_error() == Some(Errno::ENOENT as i32) => {
            let there = read_sysctl("net.ipv4.tcp_available_congestion_control");
            let remedy = format!(
                "`modprobe tcp_{name}`, or a kernel that is built with it; this one has {}",
                there.unwrap_or_default()
            );
            Err(LabError::missing(format!("the congestion control {name}"), remedy))
        }
        result => result.map_err(LabError::system::<io::Error>(format!(
            "choose the congestion control {name}"
        ))),
    }
}
