//! The lab as a whole: what every run of a command shares, taken and given back.

use std::path::PathBuf;

use wakeai_host::{Change, Lease, Role};
use wakeai_scenario::Scenario;
use wakeai_scenario::result::Report;
use wakeai_world::{Asked, Recorder, World as _, session};

use crate::algorithms;
use crate::driver::realtime::Realtime;
use crate::error::LabError;
use crate::host::Steering;
use crate::interrupt::Interrupt;
use crate::options::LabOptions;
use crate::preflight;
use crate::progress::Progress;
use crate::run::Bench;
use crate::session::Lab;
use crate::unheard;

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
    let asked = Asked {
        scenario,
        conditions: wakeai_world::chosen(scenario, &options.conditions)?,
        seed: options.seed,
        repeat: options.repeat,
    };
    for condition in &asked.conditions {
        unheard::refuse_lies(&condition.scenario)?;
    }
    preflight::check(&asked.conditions)?;
    for text in unheard::keys(&asked.conditions) {
        progress.note(&text);
    }
    let interrupt = Interrupt::install().map_err(LabError::system("set signal handlers"))?;
    let lease = Lease::take(Role::Lab)?;
    // What the stations' agents and proxies register goes with the lab: they have given up the
    // privilege to unmount the bpffs by the time that they end.
    lease.record(Change::KernelParts)?;
    let realtime = Realtime::prepare();
    realtime.lacks.iter().for_each(|lack| progress.note(lack));
    let steering = Steering::plan();
    let _away = steering.and_then(|steering| steering.leave_driver_alone().ok());
    let prepared =
        algorithms::prepare(&asked.conditions).and_then(|targets| Ok((targets, scratch(&lease)?)));
    let result = match prepared {
        Ok((targets, scratch)) => {
            let bench = Bench {
                lease: &lease,
                interrupt: &interrupt,
                progress,
                wakeai: &options.wakeai,
                realtime: realtime.guarded(),
                steering,
                targets,
                scratch: &scratch,
            };
            report(options, &asked, bench)
        }
        Err(error) => Err(error),
    };
    let unload = || Ok(wakeai_kernel::Control::unload()?);
    for (change, reason) in lease.release(&unload) {
        progress.note(&format!("could not be put back: {change} ({reason})"));
    }
    result
}

fn report(options: &LabOptions, asked: &Asked<'_>, bench: Bench<'_>) -> Result<Report, LabError> {
    let create = |out| Recorder::create(out, asked.scenario, asked.manifest(Lab::NAME));
    let recorder = options.out.clone().map(create).transpose()?;
    let agents = recorder.as_ref().map(Recorder::agents).transpose()?;
    let lab = Lab::new(options, bench, agents);
    let report = session::report(&lab, asked, recorder)?;
    lab.judged(report)
}

/// A directory for the agents' files, readable by root alone.
fn scratch(lease: &Lease) -> Result<PathBuf, LabError> {
    let path = PathBuf::from(format!("/run/wakeai/lab-{}", std::process::id()));
    lease.create_directory(&path)?;
    Ok(path)
}
