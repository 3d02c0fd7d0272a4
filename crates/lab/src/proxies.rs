//! The proxies of stations that have one (004 figure 16): `wakeai proxy` in the station's namespace,
//! which takes what the sender behind it opens and carries it over the air with the flow's algorithm
//! and target.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use wakeai_host::Lease;
use wakeai_units::Duration;

use crate::clock;
use crate::error::LabError;
use crate::host::{CABLE_INTERFACE, Child, Host, dying_with_us};
use crate::run::Bench;
use crate::traffic::{FlowPlan, HOLDS_A_RATE};

/// How long a proxy may take to start (it loads BPF programs and makes rules) or to put everything
/// back.
const PATIENCE: Duration = Duration::from_secs(20);
/// Bytes of a proxy's log that an error shows.
const TAIL_BYTES: usize = 2_000;
/// What `wakeai` exits with where something is missing.
const MISSING: i32 = 77;

/// The running proxies of one run.
#[derive(Debug, Default)]
pub(crate) struct Proxies {
    running: Vec<Proxy>,
}

#[derive(Debug)]
struct Proxy {
    child: Child,
    /// What it prints: where it listens, then its counts.
    output: PathBuf,
    log: PathBuf,
}

impl Proxies {
    /// Starts a proxy on every station whose flows take one, and waits until all are ready. Files
    /// go into `directory`.
    pub(crate) fn start(
        bench: &Bench<'_>,
        plans: &[FlowPlan],
        hosts: &[Host],
        directory: &Path,
    ) -> Result<Self, LabError> {
        let mut proxies = Self::default();
        for (index, host) in hosts.iter().enumerate() {
            // The scenario makes sure that all flows of a station want the same.
            if let Some(plan) = plans.iter().find(|plan| plan.proxied && plan.sender == index) {
                proxies.running.push(Proxy::spawn(bench, plan, host, directory)?);
            }
        }
        for proxy in &mut proxies.running {
            proxy.wait_until_ready(bench)?;
        }
        Ok(proxies)
    }

    /// Whether no station has one.
    pub(crate) fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    /// An error where a proxy has ended by itself.
    pub(crate) fn check(&mut self) -> Result<(), LabError> {
        for proxy in &mut self.running {
            if let Ok(Some(status)) = proxy.child.try_wait() {
                return Err(proxy.failed(format!("it ended in mid-run ({status})")));
            }
        }
        Ok(())
    }

    /// Asks all proxies to put everything back and to end; an error where one did not do so.
    pub(crate) fn stop(mut self, lease: &Lease) -> Result<(), LabError> {
        self.running.iter().for_each(|proxy| proxy.child.terminate());
        let mut result = Ok(());
        for mut proxy in std::mem::take(&mut self.running) {
            let failure = match proxy.child.wait_for(PATIENCE) {
                Some(status) if status.success() => None,
                Some(status) => Some(format!("it ended with {status} on SIGTERM")),
                None => Some(format!("it did not end within {PATIENCE} of SIGTERM")),
            };
            if let Some(reason) = failure {
                result = result.and(Err(proxy.failed(reason)));
            }
            proxy.child.end(lease)?;
        }
        result
    }
}

impl Drop for Proxies {
    /// Where a run fails: proxies put their changes back themselves, if they are given the time.
    fn drop(&mut self) {
        self.running.iter().for_each(|proxy| proxy.child.terminate());
        for proxy in &mut self.running {
            let _ = proxy.child.wait_for(PATIENCE);
        }
    }
}

impl Proxy {
    fn spawn(
        bench: &Bench<'_>,
        plan: &FlowPlan,
        host: &Host,
        directory: &Path,
    ) -> Result<Self, LabError> {
        let failed = |what: &str| {
            LabError::system::<io::Error>(format!("{what} for the proxy of {}", host.name))
        };
        fs::create_dir_all(directory).map_err(failed("make a directory"))?;
        let path = |suffix: &str| directory.join(format!("{}.proxy.{suffix}", host.name));
        let (output, log) = (path("json"), path("log"));
        let mut command = dying_with_us(bench.wakeai);
        arguments(&mut command, plan);
        command
            .stdin(Stdio::null())
            .stdout(File::create(&output).map_err(failed("create a file"))?)
            .stderr(File::create(&log).map_err(failed("create the log"))?);
        Ok(Self { child: Child::spawn(&mut command, host, bench.lease)?, output, log })
    }

    fn wait_until_ready(&mut self, bench: &Bench<'_>) -> Result<(), LabError> {
        let deadline = clock::now() + PATIENCE;
        loop {
            bench.interrupt.check()?;
            let said = fs::read_to_string(&self.output).unwrap_or_default();
            if said.contains("\"listening\"") {
                return Ok(());
            }
            match self.child.try_wait() {
                Ok(Some(status)) if status.code() == Some(MISSING) => {
                    return Err(LabError::Missing {
                        what: format!("what the proxy of {} needs", self.child.station),
                        remedy: self.last_words(),
                    });
                }
                Ok(Some(status)) => {
                    return Err(self.failed(format!("it ended before it was ready ({status})")));
                }
                _ if clock::now() >= deadline => {
                    return Err(self.failed(format!("it was not ready within {PATIENCE}")));
                }
                _ => clock::sleep(Duration::from_millis(5)),
            }
        }
    }

    fn failed(&self, reason: String) -> LabError {
        LabError::Child {
            program: "the proxy",
            station: self.child.station.clone(),
            reason,
            log: self.last_words(),
        }
    }

    fn last_words(&self) -> String {
        let log = fs::read(&self.log).unwrap_or_default();
        let tail = &log[log.len().saturating_sub(TAIL_BYTES)..];
        String::from_utf8_lossy(tail).trim().to_owned()
    }
}

/// What the proxy is asked to do: the connection attempts of a flow last as long as its run.
fn arguments(command: &mut Command, plan: &FlowPlan) {
    command.args([
        "proxy",
        "--json",
        "--transparent",
        "forwarded",
        "--in-interface",
        CABLE_INTERFACE,
    ]);
    command.args(["--connect-timeout", "3600s"]);
    match plan.algorithm.as_deref() {
        // What TCP-AV is without a target, as where it is looked for what a station reaches alone; the
        // proxy takes it with one only.
        Some(HOLDS_A_RATE) if plan.target.is_none() => {
            command.args(["--algorithm", "wakeai_reno"]);
        }
        Some(algorithm) => {
            command.args(["--algorithm", algorithm]);
        }
        None => {}
    }
    if let Some(target) = plan.target {
        command.args(["--rate", &target.to_string()]);
    }
}
