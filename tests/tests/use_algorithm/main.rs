//! `wakeai use` on the running kernel, in namespaces and cgroups of its own: the connections that it covers, those
//! that it leaves alone, and the state after its end.

#![allow(clippy::unwrap_used, reason = "a helper that fails, fails the test")]
#![allow(clippy::print_stdout, reason = "the harness shows it where a test fails or is skipped")]

mod cgroups;
mod connections;
mod death;
mod defaults;
mod in_force;
mod rates;
mod rig;
