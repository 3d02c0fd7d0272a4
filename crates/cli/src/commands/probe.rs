//! `wakeai probe`.

mod air;
mod buffer;
mod listening;
mod solo;
mod write;

use crate::args::{Probe, ProbeArguments};
use crate::failure::Failure;

pub(crate) fn run(arguments: &ProbeArguments) -> Result<(), Failure> {
    match &arguments.probe {
        Probe::Buffer(arguments) => buffer::run(arguments),
        Probe::Solo(arguments) => solo::run(arguments),
        Probe::Air(arguments) => air::run(arguments),
    }
}
