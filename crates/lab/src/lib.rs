//! The scenario on the real Linux TCP stack: a network namespace with a TUN device for each station and for the
//! server, the emulated network between them on the wall clock, real congestion control, real agents.
//!
//! [`run`] is the command: all conditions and repeats of a scenario. It needs root, iperf3 and, for agents and
//! proxies, the `wakeai` program. `docs/concepts/lab.md` explains how it works, and its limits.

mod agents;
mod bench;
mod clock;
mod daemons;
mod driver;
mod error;
mod experiment;
mod host;
mod keys;
mod packet;
mod preflight;
mod proxies;
mod queues;
mod run;
mod traffic;
mod watch;

pub use error::{LabError, Lapse};
pub use experiment::{LabOptions, run};
