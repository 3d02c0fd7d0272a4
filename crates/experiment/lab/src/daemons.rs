//! Starts, supervises and ends the daemons (`wakeai agent` and `wakeai proxy`) in the namespaces of
//! stations.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use wakeai_host::Lease;
use wakeai_kernel::HOLDS_A_RATE;
use wakeai_units::Duration;

use crate::clock;
use crate::error::LabError;
use crate::host::{CABLE_INTERFACE, Child, Host, held_back};
use crate::shared::SharedResources;
use crate::traffic::FlowPlan;

/// The most time that a daemon may take to start (it loads BPF programs) or to undo its changes.
const PATIENCE: Duration = Duration::from_secs(20);
/// The number of bytes of a daemon's log that an error shows.
const TAIL_BYTES: usize = 2_000;
/// The exit status of `wakeai` where a privilege or a kernel feature is missing.
const MISSING: i32 = 77;

/// The running daemons of one kind. Each is stored with a `T`: what the lab knows about it.
#[derive(Debug)]
pub(crate) struct Daemons<T>(pub(crate) Vec<(Daemon, T)>);

/// A running daemon.
#[derive(Debug)]
pub(crate) struct Daemon {
    child: Child,
    /// The daemon's name in an error: "the agent" or "the proxy".
    program: &'static str,
    log: PathBuf,
}

impl<T> Default for Daemons<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Daemons<T> {
    /// Waits until `is_ready` holds for every daemon.
    pub(crate) fn wait_until_ready(
        &mut self,
        shared: &SharedResources<'_>,
        is_ready: impl Fn(&T) -> bool,
    ) -> Result<(), LabError> {
        for (daemon, state) in &mut self.0 {
            let deadline = clock::now() + PATIENCE;
            while !is_ready(state) {
                shared.check()?;
                match daemon.child.process.try_wait() {
                    Ok(Some(status)) if status.code() == Some(MISSING) => {
                        let Daemon { child: Child { station, .. }, program, .. } = daemon;
                        let what = format!("a requirement of {program} of {station}");
                        return Err(LabError::missing(what, daemon.log_tail()));
                    }
                    Ok(Some(status)) => {
                        let reason = format!("it ended before it was ready ({status})");
                        return Err(daemon.failed(reason));
                    }
                    _ if clock::now() >= deadline => {
                        return Err(daemon.failed(format!("it was not ready within {PATIENCE}")));
                    }
                    _ => clock::sleep(Duration::from_millis(5)),
                }
            }
        }
        Ok(())
    }

    /// Returns an error if a daemon has ended by itself.
    pub(crate) fn check(&mut self) -> Result<(), LabError> {
        for (daemon, _) in &mut self.0 {
            if let Ok(Some(status)) = daemon.child.process.try_wait() {
                return Err(daemon.failed(format!("it ended during the run ({status})")));
            }
        }
        Ok(())
    }

    /// Sends SIGTERM to all daemons, upon which they undo their changes and end. Returns an error
    /// if a daemon did not end in order.
    pub(crate) fn stop(mut self, lease: &Lease) -> Result<(), LabError> {
        self.terminate();
        let mut result = Ok(());
        for (mut daemon, _) in std::mem::take(&mut self.0) {
            let failure = match daemon.child.wait_for(PATIENCE) {
                Some(status) if status.success() => None,
                Some(status) => Some(format!("it ended with {status} on SIGTERM")),
                None => Some(format!("it did not end within {PATIENCE} of SIGTERM")),
            };
            if let Some(reason) = failure {
                result = result.and(Err(daemon.failed(reason)));
            }
            daemon.child.end(lease)?;
        }
        result
    }

    fn terminate(&self) {
        self.0.iter().for_each(|(daemon, _)| daemon.child.terminate());
    }
}

impl<T> Drop for Daemons<T> {
    /// Ends the daemons of a run that failed, and gives them time to undo their changes.
    fn drop(&mut self) {
        self.terminate();
        for (daemon, _) in &mut self.0 {
            let _ = daemon.child.wait_for(PATIENCE);
        }
    }
}

impl Daemon {
    /// Starts `command` in the namespace of `host`; its log goes into the file `log`.
    pub(crate) fn spawn(
        program: &'static str,
        command: &mut Command,
        host: &Host,
        lease: &Lease,
        log: PathBuf,
    ) -> Result<Self, LabError> {
        let failed = format!("create the log of {program} of {}", host.name);
        let file = File::create(&log).map_err(LabError::system::<io::Error>(failed))?;
        let child = Child::spawn(command.stderr(file), host, lease)?;
        Ok(Self { child, program, log })
    }

    pub(crate) fn failed(&self, reason: String) -> LabError {
        LabError::Child {
            program: self.program,
            station: self.child.station.clone(),
            reason,
            log: self.log_tail(),
        }
    }

    fn log_tail(&self) -> String {
        let log = fs::read(&self.log).unwrap_or_default();
        let tail = &log[log.len().saturating_sub(TAIL_BYTES)..];
        String::from_utf8_lossy(tail).trim().to_owned()
    }
}

/// The path of a file of the daemon on `host`.
pub(crate) fn file_of(host: &Host, directory: &Path, suffix: &str) -> PathBuf {
    directory.join(format!("{}.{suffix}", host.name))
}

/// The running proxies of one run, each with the file of its standard output. A proxy first writes
/// its addresses, and at its end its counts.
pub(crate) type Proxies = Daemons<PathBuf>;

/// Starts a proxy on every station whose flows need one, and waits until all are ready. Their files
/// go into `directory`.
pub(crate) fn start_proxies(
    shared: &SharedResources<'_>,
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
            let mut command = held_back(shared.wakeai);
            arguments(&mut command, plan);
            command.stdout(file);
            let log = file_of(host, directory, "proxy.log");
            let proxy = Daemon::spawn("the proxy", &mut command, host, shared.lease, log)?;
            proxies.0.push((proxy, output));
        }
    }
    proxies.wait_until_ready(shared, |output| {
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
