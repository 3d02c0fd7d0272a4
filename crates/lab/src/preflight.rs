//! What the lab needs of a machine, looked at before anything is changed.

use std::path::Path;

use wakeai_kernel::features;
use wakeai_scenario::ResolvedCondition;
use wakeai_world::agent::AgentLaw;

use crate::error::LabError;
use crate::host::dying_with_us;
use crate::traffic::iperf;

/// An error that names the first thing that is missing.
pub(crate) fn check(conditions: &[ResolvedCondition]) -> Result<(), LabError> {
    if !nix::unistd::geteuid().is_root() {
        return Err(missing(
            "root",
            "run `sudo wakeai lab`: it makes network namespaces and loads BPF programs",
        ));
    }
    let found = features::detect();
    found.to_monitor()?;
    if conditions.iter().flat_map(AgentLaw::of_stations).flatten().any(AgentLaw::binds) {
        found.to_bound()?;
    }
    if !Path::new("/dev/net/tun").exists() {
        return Err(missing("/dev/net/tun", "modprobe tun, or give the container that device"));
    }
    if !dying_with_us("true").status().is_ok_and(|status| status.success()) {
        return Err(missing("setpriv with --pdeathsig", "install the package util-linux"));
    }
    let version = iperf::version()?;
    tracing::debug!(version, "iperf3");
    Ok(())
}

fn missing(what: &str, remedy: &str) -> LabError {
    LabError::Missing { what: what.to_owned(), remedy: remedy.to_owned() }
}
