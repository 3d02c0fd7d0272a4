//! Tests of real faults: `kill -9` after each step, a full disk, a read-only `/run`.

#![allow(clippy::unwrap_used, reason = "a helper that fails, fails the test")]
#![allow(clippy::print_stdout, reason = "the harness shows it where a test fails or is skipped")]

mod disk;
mod killed;
mod steps;
