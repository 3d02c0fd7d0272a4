//! `wakeai lab`.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use wakeai_lab::{Held, LabError, LabOptions};
use wakeai_results::result::Report;
use wakeai_scenario::Scenario;
use wakeai_units::Duration;
use wakeai_virtual_lab::{VirtualLabError, VirtualLabOptions};
use wakeai_world::{RunError, SoloKey};

use super::experiment::{Bar, load, options, show, show_beside, show_made};
use crate::args::{HOST, LabArguments};
use crate::failure::Failure;
use crate::output;

pub(crate) fn run(arguments: &LabArguments) -> Result<(), Failure> {
    let in_guests = arguments.kernel != HOST;
    check(arguments, in_guests)?;
    let scenario = load(&arguments.experiment)?;
    let wakeai = std::env::current_exe()
        .context("cannot find the file of this program, from which the agents are started")
        .map_err(Failure::failed)?;
    let bar = Bar::new(arguments.known.is_none() && arguments.solo.is_none())?;
    if arguments.hold {
        let options = lab_options(arguments, &scenario, wakeai);
        return hold(&options, &scenario, &bar, arguments.experiment.json);
    }
    if let Some(key) = &arguments.solo {
        return alone(&guests(arguments, &scenario, wakeai)?, &scenario, key, &bar);
    }
    let result = if in_guests {
        in_guests_run(arguments, &scenario, wakeai, &bar)
    } else {
        here(arguments, &scenario, wakeai, &bar)
    };
    show(&result?, &arguments.experiment)
}

/// Refuses options that do not belong together.
fn check(arguments: &LabArguments, in_guests: bool) -> Result<(), Failure> {
    let refused = |text: &str| Err(Failure::usage(anyhow::anyhow!("{text}")));
    if in_guests && arguments.metrics.is_some() {
        return refused(
            "--metrics cannot be used with --kernel: nothing reaches an agent in a guest from outside",
        );
    }
    if in_guests && arguments.hold {
        return refused(
            "--hold cannot be used with --kernel: nothing reaches the namespaces of a guest from outside",
        );
    }
    if !in_guests && arguments.jobs > 1 {
        return refused(
            "--jobs: on this machine's kernel the lab makes one run at a time, because runs on the same machine delay \
             each other; allowed is 1, or more with --kernel",
        );
    }
    let LabArguments { modules, memory, known, solo, .. } = arguments;
    if !in_guests && (modules.is_some() || memory.is_some() || known.is_some() || solo.is_some()) {
        return refused("--modules and --memory belong to guests: give --kernel, too");
    }
    Ok(())
}

/// The runs on this machine's kernel.
fn here(
    arguments: &LabArguments,
    scenario: &Scenario,
    wakeai: PathBuf,
    bar: &Bar,
) -> Result<Report, Failure> {
    let experiment = &arguments.experiment;
    let result = wakeai_lab::run(&lab_options(arguments, scenario, wakeai), scenario, bar);
    bar.clear();
    result.map_err(|error| {
        let status = error.exit_status();
        let failed = |error| Failure::with_status(status, error);
        match error {
            LabError::Run(RunError::Interrupted) => bar.interrupted(error),
            // The figures of an unfaithful run are printed, too.
            LabError::Unfaithful { ref report, .. } => {
                let report = report.clone();
                show_beside(failed(error), &report, experiment)
            }
            LabError::After { error, made } => show_made(failed(*error), &made, experiment),
            error => failed(error),
        }
    })
}

/// The bound on the 99th percentile of lateness: the given one, or the scenario's usual one.
fn lateness_p99(arguments: &LabArguments, scenario: &Scenario) -> Duration {
    arguments.lateness_p99.unwrap_or_else(|| wakeai_lab::usual_lateness_p99(scenario))
}

fn lab_options(arguments: &LabArguments, scenario: &Scenario, wakeai: PathBuf) -> LabOptions {
    LabOptions {
        run: options(&arguments.experiment),
        lateness_p99: lateness_p99(arguments, scenario),
        lateness_max: arguments.lateness_max,
        waits_p99: arguments.waits_p99,
        wakeai,
        metrics: arguments.metrics,
        in_guest: false,
    }
}

/// How the runs are made in guests.
fn guests(
    arguments: &LabArguments,
    scenario: &Scenario,
    wakeai: PathBuf,
) -> Result<VirtualLabOptions, Failure> {
    let lateness_p99 = lateness_p99(arguments, scenario);
    let mut run = options(&arguments.experiment);
    if let Some(path) = &arguments.known {
        let known: Vec<(String, u64, f64)> = serde_json::from_str(&read(path)?)
            .context("--known has to be a list of key, seed and Mbit/s")
            .map_err(Failure::usage)?;
        let known = known.into_iter().map(|(run, seed, mbps)| (SoloKey { run, seed }, mbps));
        run.known = known.collect();
    }
    Ok(VirtualLabOptions {
        run,
        jobs: arguments.jobs as usize,
        kernel: arguments.kernel.clone(),
        modules: arguments.modules.clone(),
        memory_mb: arguments.memory,
        bounds: [lateness_p99, arguments.lateness_max, arguments.waits_p99],
        wakeai,
    })
}

/// The solo run whose key is in the file `key`; prints its goodput and the guest as JSON.
fn alone(
    options: &VirtualLabOptions,
    scenario: &Scenario,
    key: &Path,
    bar: &Bar,
) -> Result<(), Failure> {
    let made = wakeai_virtual_lab::alone(options, scenario, &read(key)?, bar);
    bar.clear();
    let (mbps, guest) = made.map_err(|error| match error {
        VirtualLabError::Run(RunError::Interrupted) => bar.interrupted(error),
        error => Failure::with_status(error.exit_status(), error),
    })?;
    let found = serde_json::json!({ "mbps": mbps, "guest": guest });
    output::write(&format!("{found}\n")).map(|_| ())
}

fn read(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path)
        .with_context(|| format!("cannot read {}", path.display()))
        .map_err(Failure::usage)
}

/// The runs on another kernel, each in a guest.
fn in_guests_run(
    arguments: &LabArguments,
    scenario: &Scenario,
    wakeai: PathBuf,
    bar: &Bar,
) -> Result<Report, Failure> {
    let experiment = &arguments.experiment;
    let options = guests(arguments, scenario, wakeai)?;
    let result = wakeai_virtual_lab::run(&options, scenario, bar);
    bar.clear();
    result.map_err(|error| {
        let status = error.exit_status();
        let failed = |error| Failure::with_status(status, error);
        match error {
            VirtualLabError::Run(RunError::Interrupted) => bar.interrupted(error),
            VirtualLabError::Unfaithful { ref report, .. } => {
                let report = report.clone();
                show_beside(failed(error), &report, experiment)
            }
            VirtualLabError::After { error, made } => show_made(failed(*error), &made, experiment),
            error => failed(error),
        }
    })
}

/// Keeps the network of the scenario until Ctrl-C, which is then the intended end.
fn hold(options: &LabOptions, scenario: &Scenario, bar: &Bar, json: bool) -> Result<(), Failure> {
    bar.clear();
    let ready = |held: &Held| {
        let shown = if json { output::json(held) } else { output::write(&text(held)) };
        shown.map(|_| ()).map_err(|failure| LabError::Shown(failure.to_string()))
    };
    wakeai_lab::hold(options, scenario, bar, &ready)
        .map_err(|error| Failure::with_status(error.exit_status(), error))
}

/// The hosts and how to enter them.
fn text(held: &Held) -> String {
    let Held { scenario, condition, broadcast, hosts } = held;
    let rows = hosts.iter().map(|host| {
        let words = [&host.name, &host.namespace, host.interface];
        let [name, namespace, interface] = words.map(str::to_owned);
        let bssid = host.bssid.map(|bssid| bssid.to_string()).unwrap_or_default();
        [name, namespace, interface, host.address.to_string(), bssid]
    });
    let table =
        output::table("  ", ["host", "namespace", "interface", "address", "BSSID"], 5, rows);
    let any = hosts.last().map_or("NAMESPACE", |host| &host.namespace);
    format!(
        "{scenario} with the condition {condition}, until Ctrl-C:\n\n{table}\n\
         A program enters a host by its namespace:\n  nsenter --net=/run/netns/{any} COMMAND\n\
         An agent in it needs its BSSID as bssid, and presence.broadcast = \"{broadcast}\".\n"
    )
}
