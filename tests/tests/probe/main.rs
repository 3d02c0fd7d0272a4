//! `wakeai probe` between the hosts of a lab, and between namespaces with the kernel's queues.

#![allow(clippy::unwrap_used, reason = "a helper that fails, fails the test")]
#![allow(clippy::print_stdout, reason = "the harness shows it where a test fails or is skipped")]

mod ends;
mod guide;
mod lab;
mod solo;
mod wire;
mod write;
