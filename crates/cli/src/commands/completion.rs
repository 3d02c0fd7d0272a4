//! `wakeai completion`.

use clap::CommandFactory as _;

use crate::args::{Arguments, CompletionArguments};
use crate::failure::Failure;
use crate::output;

pub(crate) fn run(arguments: &CompletionArguments) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Arguments::command(), "wakeai", &mut script);
    output::write(&String::from_utf8_lossy(&script)).map(|_| ())
}
