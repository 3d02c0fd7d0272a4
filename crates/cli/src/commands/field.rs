//! `wakeai field`, and `wakeai field-station`, which it starts on each machine.

use std::path::PathBuf;

use anyhow::Context as _;
use wakeai_field::{FieldError, FieldOptions, Machines, station};
use wakeai_results::result::Report;
use wakeai_world::RunError;

use super::experiment::{Bar, load, options, show, show_made};
use crate::args::{FieldArguments, FieldStationArguments};
use crate::failure::Failure;
use crate::output;

pub(crate) fn run(arguments: &FieldArguments) -> Result<(), Failure> {
    let experiment = &arguments.experiment;
    let scenario = load(experiment)?;
    let machines = Machines::load(&arguments.machines).map_err(Failure::usage)?;
    let options = FieldOptions {
        run: options(experiment),
        machines,
        grace: arguments.grace,
        solo: arguments.solo,
        programs: arguments.programs.clone(),
        max_load_percent: arguments.max_load,
        program: program()?,
    };
    let bar = Bar::new(true)?;
    if arguments.check {
        let found = wakeai_field::check(&options, &scenario, &bar);
        bar.clear();
        let found = found.map_err(|error| failure(error, &bar, arguments))?;
        if experiment.json {
            output::json(&found)?
        } else {
            output::write(&found.render())?
        };
        return if found.is_ready() {
            Ok(())
        } else {
            Err(Failure::missing_if(true, anyhow::anyhow!("not every machine is ready")))
        };
    }
    let result = wakeai_field::run(&options, &scenario, &bar);
    bar.clear();
    let report = result.map_err(|error| failure(error, &bar, arguments))?;
    show(&report, experiment)?;
    judged(&report)
}

fn failure(error: FieldError, bar: &Bar, arguments: &FieldArguments) -> Failure {
    let status = error.exit_status();
    match error {
        FieldError::Run(RunError::Interrupted) => bar.interrupted(error),
        FieldError::After { error, made } => {
            show_made(Failure::with_status(status, *error), &made, &arguments.experiment)
        }
        error => Failure::with_status(status, error),
    }
}

/// Fails where a run does not count.
fn judged(report: &Report) -> Result<(), Failure> {
    let lost = report.runs.iter().filter(|run| !run.counts()).count();
    if lost == 0 {
        return Ok(());
    }
    let all = report.runs.len();
    Err(Failure::failed(anyhow::anyhow!(
        "{lost} of {all} runs do not count; the table and `field.stations` of the JSON say why"
    )))
}

/// The helper of this machine.
pub(crate) fn station(arguments: &FieldStationArguments) -> Result<(), Failure> {
    let program = program()?;
    let ssh = arguments.ssh_address.clone().or_else(ssh_address);
    let origin =
        station::Origin { program: &program, ssh: ssh.as_deref(), brought: arguments.brought };
    let served = match &arguments.serve {
        Some(session) => station::serve(&origin, session),
        None => station::run(&origin),
    };
    served.map_err(Failure::failed)
}

/// The address of this machine through which ssh came: the third word of `SSH_CONNECTION` (ssh(1)).
fn ssh_address() -> Option<String> {
    let connection = std::env::var("SSH_CONNECTION").ok()?;
    connection.split(' ').nth(2).map(str::to_owned)
}

fn program() -> Result<PathBuf, Failure> {
    std::env::current_exe()
        .context("cannot find the file of this program, from which helpers and agents are started")
        .map_err(Failure::failed)
}
