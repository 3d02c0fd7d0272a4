//! `wakeai sim`.

use std::num::NonZero;

use wakeai_world::{Options, RunError};

use super::experiment::{Bar, load, options, show, show_made};
use crate::args::SimArguments;
use crate::failure::Failure;

pub(crate) fn run(arguments: &SimArguments) -> Result<(), Failure> {
    let experiment = &arguments.experiment;
    if arguments.pcap && experiment.out.is_none() {
        return Err(Failure::usage(anyhow::anyhow!(
            "--pcap writes its files into the directory of --out, and there is none; add --out DIR"
        )));
    }
    let scenario = load(experiment)?;
    let options = Options { captures: arguments.pcap, ..options(experiment) };
    let jobs = arguments.jobs.map_or_else(processors, |jobs| jobs as usize);
    let bar = Bar::new(false)?;
    let result = wakeai_sim::run(&options, jobs, &scenario, &bar);
    bar.clear();
    let report = result.map_err(|error| {
        let failed = |error: RunError| Failure::with_status(error.exit_status(), error);
        match error {
            RunError::Interrupted => bar.interrupted(error),
            RunError::After { error, made } => show_made(failed(*error), &made, experiment),
            error => failed(error),
        }
    })?;
    show(&report, experiment)
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get)
}
