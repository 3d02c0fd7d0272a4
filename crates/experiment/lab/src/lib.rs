//! Runs a scenario on the real Linux TCP stack. Each station and the server is a network namespace
//! with a TUN device. Between them a thread emulates the radio and the wire on the wall clock.
//! Congestion control and agents are real.
//!
//! [`run`] makes all runs of a scenario: each condition, as often as asked. It needs root, iperf3
//! and, for agents and proxies, the `wakeai` program. [`hold`] keeps network and air of a scenario for other programs. `docs/concepts/lab.md` explains how the lab
//! works, and its limits.

mod agents;
mod clock;
mod daemons;
mod driver;
mod error;
mod experiment;
mod host;
mod keys;
mod packet;
mod preflight;
mod queues;
mod run;
mod shared;
mod traffic;
mod watch;

pub use error::{LabError, Lapse};
pub use experiment::{LabOptions, check, hold, run, run_one, usual_lateness_p99};
pub use run::{Held, HeldHost};
