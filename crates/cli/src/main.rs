//! The `wakeai` command.

mod args;
mod commands;
mod failure;
mod interrupt;
mod logging;
mod names;
mod output;

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::Parser as _;
use nix::unistd::geteuid;

use crate::args::{Arguments, WakeaiCommand};
use crate::failure::{Failure, note};

fn main() -> ExitCode {
    names::keep_to_built_in_sources();
    wakeai_virtual_lab::inside(); // of a guest, where it does not return
    let done = match Arguments::try_parse() {
        Ok(arguments) => run(arguments.command).map(|()| ExitCode::SUCCESS),
        Err(answer) => answered(&answer),
    };
    done.unwrap_or_else(|failure| {
        note(&failure);
        failure.code()
    })
}

/// Prints what the arguments ask for instead of a command, help or the version (exit status 0), or what is wrong
/// with them (2).
fn answered(answer: &clap::Error) -> Result<ExitCode, Failure> {
    let printed = answer.print();
    if answer.use_stderr() {
        return Ok(ExitCode::from(2)); // of bad usage, also where nobody can read what is wrong
    }
    output::reader(printed.and_then(|()| io::stdout().flush())).map(|_| ExitCode::SUCCESS)
}

fn run(command: WakeaiCommand) -> Result<(), Failure> {
    check_state()?;
    match &command {
        WakeaiCommand::Agent(_) => {} // its configuration sets the log
        _ => logging::for_commands(),
    }
    if !matches!(
        command,
        WakeaiCommand::Sim(_)
            | WakeaiCommand::Grid(_)
            | WakeaiCommand::Compare(_)
            | WakeaiCommand::Report(_)
            | WakeaiCommand::Man(_)
    ) {
        sweep(); // the commands above do not touch the host
    }
    match command {
        WakeaiCommand::Sim(arguments) => commands::sim::run(&arguments),
        WakeaiCommand::Grid(arguments) => commands::grid::run(&arguments),
        WakeaiCommand::Lab(arguments) => commands::lab::run(&arguments),
        WakeaiCommand::Field(arguments) => commands::field::run(&arguments),
        WakeaiCommand::FieldStation(arguments) => commands::field::station(&arguments),
        WakeaiCommand::Medium(arguments) => commands::medium::run(&arguments),
        WakeaiCommand::Compare(arguments) => commands::compare::run(&arguments),
        WakeaiCommand::Report(arguments) => commands::report::run(&arguments),
        WakeaiCommand::Agent(arguments) => commands::agent::run(&arguments),
        WakeaiCommand::Status(arguments) => commands::status::run(&arguments),
        WakeaiCommand::Reserve(arguments) => commands::reserve::run(&arguments),
        WakeaiCommand::Monitor(arguments) => commands::monitor::run(&arguments),
        WakeaiCommand::Top(arguments) => commands::top::run(&arguments),
        WakeaiCommand::Probe(arguments) => commands::probe::run(&arguments),
        WakeaiCommand::Proxy(arguments) => commands::proxy::run(&arguments),
        WakeaiCommand::Put(arguments) => commands::put::run(&arguments),
        WakeaiCommand::Serve(arguments) => commands::serve::run(&arguments),
        WakeaiCommand::Use(arguments) => commands::use_algorithm::run(&arguments),
        WakeaiCommand::Doctor(arguments) => commands::doctor::run(&arguments),
        WakeaiCommand::Completion(arguments) => commands::completion::run(&arguments),
        WakeaiCommand::Man(arguments) => commands::man::run(&arguments),
        WakeaiCommand::Sweep => Ok(()), // done already
    }
}

/// Refuses a relative path of the state directory, because it would name another directory in each working directory.
fn check_state() -> Result<(), Failure> {
    let variable = wakeai_host::STATE_VARIABLE;
    match std::env::var_os(variable) {
        Some(path) if !std::path::Path::new(&path).is_absolute() => {
            Err(Failure::usage(anyhow::anyhow!(
                "{variable} is \"{}\"; it has to be an absolute path, such as /dev/wakeai, or unset for /run/wakeai",
                path.display()
            )))
        }
        _ => Ok(()),
    }
}

/// Undoes the changes of wakeai processes that died, and reports them. Without root nothing can be undone.
fn sweep() {
    if !geteuid().is_root() {
        return;
    }
    let (removed, errors) = wakeai_host::sweep(wakeai_kernel::UNDO);
    for removed in removed {
        note(format_args!("removed {removed}"));
    }
    for error in errors {
        note(format_args!("warning: {error}"));
    }
}
