//! `wakeai sim`.

use std::num::NonZero;

use wakeai_sim::SimOptions;
use wakeai_world::Recorder;

use super::experiment::{load, show};
use crate::args::SimArguments;
use crate::failure::Failure;

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
    let progress = progress::Bar::new();
    let out = arguments.out.as_deref();
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
    let report = result.map_err(|error| Failure::with_status(error.exit_status(), error))?;
    show(&report, experiment.json)
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get)
}
