//! The proxies of stations (TCP-AV paper, figure 16). `wakeai proxy` in the station's namespace
//! intercepts the connections that the sender behind the station opens, and carries them over the
//! air with the flow's algorithm and target.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use wakeai_kernel::HOLDS_A_RATE;

use crate::bench::Bench;
use crate::daemons::{Daemon, Daemons, file_of};
use crate::error::LabError;
use crate::host::{CABLE_INTERFACE, Host, held_back};
use crate::traffic::FlowPlan;

/// The running proxies of one run, each with the file of its standard output. A proxy first writes
/// its addresses, and at its end its counts.
pub(crate) type Proxies = Daemons<PathBuf>;

/// Starts a proxy on every station whose flows need one, and waits until all are ready. Their files
/// go into `directory`.
pub(crate) fn start(
    bench: &Bench<'_>,
    plans: &[FlowPlan],
    hosts: &[Host],
    directory: &Path,
) -> Result<Proxies, LabError> {
    let mut proxies = Proxies::default();
    for (index, host) in hosts.iter().enumerate() {
        // The first flow suffices: a scenario in which the flows of a proxy have different
        // algorithms or targets is refused.
        if let Some(plan) = plans.iter().find(|plan| plan.proxied && plan.sender == index) {
            let failed = format!("create the files of the proxy of {}", host.name);
            let output = file_of(host, directory, "proxy.json");
            let create = || fs::create_dir_all(directory).and_then(|()| File::create(&output));
            let file = create().map_err(LabError::system::<io::Error>(failed))?;
            let mut command = held_back(bench.wakeai);
            arguments(&mut command, plan);
            command.stdout(file);
            let log = file_of(host, directory, "proxy.log");
            let proxy = Daemon::spawn("the proxy", &mut command, host, bench.lease, log)?;
            proxies.push(proxy, output);
        }
    }
    proxies.wait_until_ready(bench, |output| {
        fs::read_to_string(output).is_ok_and(|text| text.contains("\"listening\""))
    })?;
    Ok(proxies)
}

/// Adds the arguments of the proxy. On lossy air an attempt to connect may take as long as the run,
/// so its timeout is an hour.
fn arguments(command: &mut Command, plan: &FlowPlan) {
    command.args(["proxy", "--json", "--connect-timeout", "3600s"]);
    command.args(["--transparent", "forwarded", "--in-interface", CABLE_INTERFACE]);
    let algorithm = match plan.algorithm.as_deref() {
        // A solo run (a station alone on the air) has no target. TCP-AV without a target behaves
        // like Reno, but the proxy refuses it.
        Some(HOLDS_A_RATE) if plan.target.is_none() => Some("wakeai_reno"),
        algorithm => algorithm,
    };
    if let Some(algorithm) = algorithm {
        command.args(["--algorithm", algorithm]);
    }
    if let Some(target) = plan.target {
        command.args(["--rate", &target.to_string()]);
    }
}
