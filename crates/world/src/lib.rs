//! Code that the simulator and the lab share, so that a scenario means the same in both.
//!
//! [`Options`], [`Progress`] and [`RunError`] are the interface of a command: its request, the progress of
//! its runs, and the reasons for a failure. [`session`] puts the runs of a command in order (solo runs,
//! conditions, repeats) over anything that is a [`World`], and [`Recorder`] keeps their records.
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
mod steps;

pub use agent::StationFacts;
pub use asked::{Asked, Options, Progress, RunError, Silent, chosen};
pub use keys::keys_without_effect;
pub use medium::{
    Change, Changes, SERVER_ADDRESS, STATION_BROADCAST, StationQueue, TimedChange, generator,
    medium_config, station_address,
};
pub use meters::{Place, ReceiverMeter, SenderMeter, Span};
pub use recorder::{Recorder, RunSink};
pub use session::{Outcome, Task, World};

/// The version in a result.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
