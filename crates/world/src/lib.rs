//! What the simulator and the lab share, so that the same scenario means the same in both.
//!
//! [`medium_config`], [`changes`] and [`generator`] give the medium; [`agent`] says which stations
//! run an agent and what it is told; [`flows`] which connections carry a flow,
//! and [`writing`] when its application writes; [`addresses`] what
//! the hosts are called on the wire; [`reservations`] what is to be left free for whom. [`session`]
//! puts the runs of a command in order (solo runs, conditions, repeats) over anything that is a
//! [`World`], and [`Recorder`] keeps their records.

pub mod addresses;
pub mod agent;
mod changes;
mod conditions;
pub mod flows;
mod radio;
mod recorder;
pub mod reservations;
pub mod session;
mod steps;
mod unheard;
pub mod writing;

pub use agent::StationFacts;
pub use changes::{Change, TimedChange, changes};
pub use conditions::{UnknownCondition, chosen};
pub use radio::{RadioError, StationQueue, medium_config, wifi_config};
pub use recorder::{Recorder, RunSink};
pub use session::{Asked, Outcome, Task, World};
pub use unheard::unheard;

use rand_core::SeedableRng;
use rand_pcg::Pcg64Mcg;

/// The version in a result.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The medium's random numbers are another stream than the flows' starts, which
/// [`wakeai_scenario::Experiment::expand`] draws from the seed itself.
const MEDIUM_STREAM: u64 = 0x6d65_6469_756d;

/// The generator of a run's medium.
pub fn generator(seed: u64) -> Pcg64Mcg {
    Pcg64Mcg::seed_from_u64(seed ^ MEDIUM_STREAM)
}
