//! The scenario on the real Linux TCP stack: a network namespace per station and one for the
//! server, a TUN device in each, the emulated radio between them on the wall clock, real
//! congestion control, real agents.
//!
//! [`run`] is all that a caller needs. It wants root, iperf3 and, where a condition has a law, the
//! `wakeai` program for the agents, as it wants it for proxies. `docs/concepts/lab.md` says how it works and what it can and
//! cannot tell.

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
mod proxies;
mod queues;
mod run;
mod session;
mod traffic;
mod watch;

pub use error::{LabError, Lapse};
pub use experiment::{LabOptions, run};
