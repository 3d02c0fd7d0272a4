//! The lab as a whole: what every run of a command shares, taken and given back.

use std::path::PathBuf;

use wakeai_host::{Change, Lease, Role};
use wakeai_scenario::Scenario;
use wakeai_scenario::result::Report;
use wakeai_units::Duration;
use wakeai_world::{Asked, Options, Progress, RunError, World as _, session};

use crate::driver::realtime::Realtime;
use crate::error::LabError;
use crate::host::Steering;
use crate::run::Bench;
use crate::session::Lab;
use crate::{keys, preflight};

/// How a scenario is run.
#[derive(Clone, Debug)]
pub struct LabOptions {
    /// Which runs, and where records (Parquet) and the agents' logs go.
    pub run: Options,
    /// A run whose releases are later than this at the 99th percentile is not faithful.
    pub lateness_p99: Duration,
    /// A run with a single release later than this is not faithful.
    pub lateness_max: Duration,
    /// A run with agents or proxies is not faithful where ordinary processes waited longer than this
    /// for a processor, at the 99th percentile.
    pub waits_p99: Duration,
    /// The `wakeai` program, for the agents and proxies.
    pub wakeai: PathBuf,
}

impl LabOptions {
    /// The defaults of [`Options`], lateness at most 1 ms at the 99th percentile and 20 ms at the most,
    /// waits at most 50 ms (a tenth of the time between two decisions of an agent); `wakeai` is usually
    /// the running program.
    pub fn new(wakeai: PathBuf) -> Self {
        Self {
            run: Options::default(),
            lateness_p99: Duration::from_millis(1),
            lateness_max: Duration::from_millis(20),
            waits_p99: Duration::from_millis(50),
            wakeai,
        }
    }
}

/// Runs `scenario` and reports it. Nothing of it is left on the host when this returns, whatever
/// the outcome; after `kill -9` the next `wakeai_host::sweep` removes it.
///
/// # Errors
///
/// [`LabError`]; [`LabError::exit_status`] is what the command exits with. A run that was not
/// faithful is an error that carries the report with it.
pub fn run(
    options: &LabOptions,
    scenario: &Scenario,
    progress: &dyn Progress,
) -> Result<Report, LabError> {
    let asked = Asked::new(scenario, &options.run)?;
    for condition in &asked.conditions {
        keys::refuse_false_announcements(&condition.scenario)?;
    }
    preflight::check(&asked.conditions)?;
    asked.note_keys_without_effect(keys::without_effect, progress);
    let lease = Lease::take(Role::Lab)?;
    // What the stations' agents and proxies register goes with the lab: they have given up the
    // privilege to unmount the bpffs by the time that they end.
    lease.record(Change::KernelParts)?;
    let realtime = Realtime::prepare();
    realtime.missing.iter().for_each(|missing| progress.note(missing));
    let steering = Steering::plan();
    let _away = steering.and_then(|steering| steering.leave_driver_alone().ok());
    let prepared = preflight::load_algorithms(&asked.conditions)
        .and_then(|targets| Ok((targets, scratch(&lease)?)));
    let result = prepared.and_then(|(targets, scratch)| {
        let bench = Bench {
            lease: &lease,
            progress,
            wakeai: &options.wakeai,
            realtime: realtime.guarded(),
            steering,
            targets,
            scratch: &scratch,
        };
        report(options, &asked, bench)
    });
    let unload = || Ok(wakeai_kernel::Control::unload()?);
    for (change, reason) in lease.release(&unload) {
        progress.note(&format!("could not be put back: {change} ({reason})"));
    }
    result
}

fn report(options: &LabOptions, asked: &Asked<'_>, bench: Bench<'_>) -> Result<Report, LabError> {
    let recorder = asked.recorder(&options.run, Lab::NAME).map_err(RunError::from)?;
    let agents = recorder.as_ref().map(wakeai_world::Recorder::agents).transpose();
    let lab = Lab::new(options, bench, agents.map_err(RunError::from)?);
    let report = session::report(1, &lab, asked, recorder)?;
    lab.judged(report)
}

/// A directory for the agents' files, readable by root alone.
fn scratch(lease: &Lease) -> Result<PathBuf, LabError> {
    let path = PathBuf::from(format!("/run/wakeai/lab-{}", std::process::id()));
    lease.create_directory(&path)?;
    Ok(path)
}
