//! Code that the simulator and the lab share, so that a scenario means the same in both.
//!
//! A command passes [`Options`], follows its runs with [`Progress`], and gets a [`RunError`] if
//! they fail. [`session`] puts the runs in order (solo runs, conditions, repeats) and makes them in
//! any [`World`]. [`Recorder`] keeps their records.
//!
//! For one run, [`medium_config`], [`Changes`] and [`generator`] give the medium; [`agent`]
//! configures the stations' agents; [`flows`] gives the connections of a flow and the times at
//! which its application writes; [`reservations`] gives the reserved rates. [`ReceiverMeter`] and
//! [`SenderMeter`] measure the run.

pub mod agent;
mod asked;
pub mod flows;
mod keys;
mod medium;
mod meters;
mod recorder;
pub mod reservations;
pub mod session;
mod solos;
mod span;

pub use agent::StationFacts;
pub use asked::{Asked, Made, Options, Progress, RunError, Silent, chosen};
pub use keys::keys_without_effect;
pub use medium::{
    Changes, SERVER_ADDRESS, STATION_BROADCAST, StationQueue, TimedChange, frame_counts, generator,
    medium_config, station_address,
};
pub use meters::{MeterPlace, ReceiverMeter, SenderMeter};
pub use recorder::{Recorder, RunSink};
pub use session::{Task, World};
pub use solos::{KnownSolos, SoloKey};
pub use span::Span;
pub use wakeai_results::result::Outcome;

/// The version in a result.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
