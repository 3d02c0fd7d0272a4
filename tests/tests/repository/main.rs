//! Tests of what is in the repository: documents, packaging, the arrows between the crates, rules for the sources.

#![allow(clippy::unwrap_used, reason = "a helper that fails, fails the test")]
#![allow(clippy::print_stdout, reason = "the harness shows it where a test is skipped")]

mod architecture;
mod clocks;
mod docs;
mod files;
mod messages;
mod units;
