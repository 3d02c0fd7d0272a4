//! The daemon of one station: it joins presence, laws and bounds on one Wi-Fi interface.
//!
//! Order of calls: [`config::Config::load`] (or [`config::Examined::load`] and [`check`], which find all
//! problems at once), then [`run`] with a future that ends it. The agent has one thread: if its loop
//! hangs, its heartbeat stops and its bounds expire. [`api`] is the local API that shows its state.

mod actuator;
pub mod api;
mod brain;
mod check;
mod clock;
pub mod config;
mod error;
mod identity;
mod interface;
pub mod key;
mod link_rate;
mod metrics;
mod notify;
mod presence;
mod report;
mod run;
mod station;
mod wifi;

pub use check::{Findings, check};
pub use error::AgentError;
pub use interface::InterfaceError;
pub use run::{run, terminated};
pub use wakeai_host::PrivilegeError;
