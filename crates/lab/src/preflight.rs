//! What the lab needs of a machine, looked at before anything is changed.

use std::path::Path;

use crate::error::LabError;
use crate::traffic::iperf;

/// An error that names the first thing that is missing.
pub(crate) fn check() -> Result<(), LabError> {
    if !nix::unistd::geteuid().is_root() {
        return Err(missing(
            "root",
            "run `sudo wakeai lab`: it makes network namespaces and loads BPF programs",
        ));
    }
    if !Path::new("/dev/net/tun").exists() {
        return Err(missing("/dev/net/tun", "modprobe tun, or give the container that device"));
    }
    let version = iperf::version()?;
    tracing::debug!(version, "iperf3");
    Ok(())
}

fn missing(what: &str, remedy: &str) -> LabError {
    LabError::Missing { what: what.to_owned(), remedy: remedy.to_owned() }
}
