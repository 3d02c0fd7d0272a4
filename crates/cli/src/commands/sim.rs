//! `wakeai sim`.

use std::num::NonZero;

use anyhow::Context as _;
use wakeai_sim::{SimError, SimOptions};
use wakeai_world::Recorder;

use super::experiment::{load, output, show};
use crate::args::SimArguments;
use crate::failure::Failure;
use crate::interrupt::Interrupt;

mod progress;

pub(crate) fn run(arguments: &SimArguments) -> Result<(), Failure> {
    let experiment = &arguments.experiment;
    if arguments.pcap && arguments.out.is_none() {
        return Err(Failure::usage(anyhow::anyhow!(
            "--pcap writes its files into the directory of --out, and there is none; add --out DIR"
        )));
    }
    let scenario = load(experiment)?;
    let options = SimOptions {
        seed: experiment.seed,
        repeat: experiment.repeat,
        conditions: experiment.conditions.clone(),
        jobs: arguments.jobs.map_or_else(processors, |jobs| jobs as usize),
    };
    let interrupt =
        Interrupt::install().context("cannot set signal handlers").map_err(Failure::failed)?;
    let progress = progress::Bar::new(interrupt.clone());
    let out = output(experiment, arguments.out.as_deref(), arguments.force);
    let result = wakeai_sim::run(
        &options,
        &scenario,
        |asked, world| {
            let create =
                if arguments.pcap { Recorder::create_with_captures } else { Recorder::create };
            let create = |out| create(out, &scenario, asked.manifest(world));
            Ok(out.map(create).transpose()?)
        },
        &progress,
    );
    progress.clear();
    let report = result.map_err(|error| match error {
        SimError::Interrupted => Failure::with_status(interrupt.exit_status(), error),
        error => Failure::with_status(error.exit_status(), error),
    })?;
    show(&report, experiment.json)
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get)
}
