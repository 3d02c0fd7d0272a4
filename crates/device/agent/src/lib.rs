//! The daemon of one station. It connects presence messages, laws and bounds on one Wi-Fi
//! interface.
//!
//! Order of calls: [`check()`] finds all problems of a [`wakeai_api::config::Config`] at once. Then
//! [`run()`] takes the configuration, and a future whose completion ends the agent. The agent has one
//! thread in the process that serves. If its event loop hangs, its heartbeat stops and its bounds expire. [`wakeai_api`] is
//! the local API, which shows the agent's state.
//!
//! [`WifiReader`] is the agent's nl80211 client for other programs. It only reads.

mod access;
mod actuator;
mod check;
mod controller;
mod counters;
mod datagrams;
mod departures;
mod distributions;
mod error;
mod exchange;
mod fleet;
mod identity;
mod interface;
pub mod key;
mod link_rate;
mod metrics;
mod presence;
mod report;
mod run;
mod server;
mod station;
mod transfers;
mod versions;
mod wifi;

pub use check::{Findings, check, check_config_file};
pub use error::AgentError;
pub use interface::InterfaceError;
pub use run::run;
pub use wakeai_host::PrivilegeError;
pub use wifi::{Link, PhyRate, ReadError, Survey, Traffic, WifiReader};
