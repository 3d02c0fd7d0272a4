//! The real agent in namespaces that each test makes, on the running kernel.

#![allow(clippy::unwrap_used, reason = "a helper that fails, fails the test")]
#![allow(clippy::print_stdout, reason = "the harness shows it where a test fails")]

mod api;
mod bounds;
mod check;
mod churn;
mod clock;
mod datagrams;
mod death;
mod drift;
mod files;
mod fleet;
mod life;
mod netns_exec;
mod presence;
mod reserve;
mod users;
mod windows;
