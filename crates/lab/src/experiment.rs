//! The lab as a whole: what every run of a command shares, taken and given back.

use std::fs;
use std::path::PathBuf;

use wakeai_host::{Change, Lease, Role};
use wakeai_scenario::result::Report;
use wakeai_scenario::{FlowKnobs, FlowSpec, HostQueue, Scenario, TcpProfile};
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
    preflight::check(&asked.conditions)?;
    warn(scenario, progress);
    for text in wakeai_world::reservations::unheard(&asked.conditions) {
        progress.note(&text);
    }
    let interrupt = Interrupt::install().map_err(LabError::system("set signal handlers"))?;
    let lease = Lease::take(Role::Lab)?;
    let realtime = Realtime::prepare();
    realtime.lacks.iter().for_each(|lack| progress.note(lack));
    let steering = Steering::plan();
    let _away = steering.and_then(|steering| steering.leave_driver_alone().ok());
    let prepared = algorithms::prepare(&asked.conditions, &lease)
        .and_then(|targets| Ok((targets, scratch(&lease)?)));
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
            };
            report(options, &asked, Lab::new(options, bench, scratch))
        }
        Err(error) => Err(error),
    };
    let unload = || Ok(wakeai_kernel::Control::unload()?);
    for (change, reason) in lease.release(&unload) {
        progress.note(&format!("could not be put back: {change} ({reason})"));
    }
    result
}

fn report(options: &LabOptions, asked: &Asked<'_>, lab: Lab<'_>) -> Result<Report, LabError> {
    let create = |out| Recorder::create(out, asked.scenario, asked.manifest(Lab::NAME));
    let recorder = options.out.as_deref().map(create).transpose()?;
    let report = session::report(&lab, asked, recorder)?;
    lab.judged(report)
}

/// Names the keys that this world cannot honour.
fn warn(scenario: &Scenario, progress: &dyn Progress) {
    for group in &scenario.stations {
        if group.host_queue == HostQueue::Tsq {
            progress.note(&format!(
                "stations.{}.host_queue = \"tsq\": the lab's hosts have a plain FIFO of {} \
                 packets, because TCP small queues do not reach past a TUN device",
                group.name, group.queue
            ));
        }
        if group.tcp == TcpProfile::Classic {
            progress.note(&format!(
                "stations.{}.tcp = \"classic\": the lab runs this kernel's TCP",
                group.name
            ));
        }
    }
    let turned = |flow: &&FlowSpec| flow.knobs != FlowKnobs::default();
    for (index, _) in scenario.flows.iter().enumerate().filter(|(_, flow)| turned(flow)) {
        progress.note(&format!(
            "flows.{}: beta, rtt_ref and tcp_friendliness are the simulator's; the lab runs the \
             algorithms as the kernel has them",
            index + 1
        ));
    }
}

/// A directory for the agents' files, readable by root alone.
fn scratch(lease: &Lease) -> Result<PathBuf, LabError> {
    let path = PathBuf::from(format!("/run/wakeai/lab-{}", std::process::id()));
    lease.record(Change::File { path: path.clone() })?;
    fs::create_dir_all(&path).map_err(LabError::system("make the lab's directory"))?;
    Ok(path)
}
