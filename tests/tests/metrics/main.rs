//! The figures that agent, proxy and server really serve, with Debian's Prometheus and its promtool.

#![allow(clippy::unwrap_used, reason = "a helper that fails, fails the test")]
#![allow(clippy::print_stdout, reason = "the harness shows why a test is skipped")]

mod alerts;
mod lab;
mod names;
mod page;
mod served;
