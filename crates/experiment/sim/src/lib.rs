//! Simulates a scenario in virtual time: the lab's network, agents and congestion control in one
//! event loop.
//!
//! [`run`] is the command, for all conditions and repeats of a scenario. [`simulate`] makes one
//! run, with more detail and an [`Observer`] of every packet. The crate reads no clock, and orders
//! events by integer times, so the same scenario and seed give the same run. `docs/concepts/sim.md`
//! explains how it works, and its limits.

mod announcing;
mod broadcasts;
mod capture;
mod carrier;
mod connection;
mod flow;
mod outcome;
mod packet;
mod policer;
mod quic;
mod sampler;
mod setup;
mod simulation;
mod timers;
mod world;

pub use carrier::{Observer, Seen};
pub use outcome::{FlowDetail, SimOutcome};
pub use setup::Job;
pub use world::{alone, run};

use std::ops::ControlFlow;

use simulation::Reached;
use wakeai_world::RunError;

/// Simulates one run. `observer` sees every packet at the hosts, and is returned.
///
/// # Errors
///
/// Fails where the scenario asks for something that the simulator does not have.
pub fn simulate<O: Observer>(job: &Job<'_>, observer: O) -> Result<(SimOutcome, O), RunError> {
    simulate_until(job, observer, &mut |_| ControlFlow::Continue(()))
}

/// Simulates one run as [`simulate`] does. `reached` is called about once per simulated second with the time that the
/// run has reached. Where it breaks, the run ends with [`RunError::Interrupted`].
fn simulate_until<O: Observer>(
    job: &Job<'_>,
    observer: O,
    reached: &mut Reached<'_>,
) -> Result<(SimOutcome, O), RunError> {
    let (mut simulation, expanded) = setup::set_up(job, observer)?;
    let end = simulation.run(reached).ok_or(RunError::Interrupted)?;
    Ok(simulation.finish(expanded, end))
}
