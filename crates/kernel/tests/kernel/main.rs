//! The BPF programs on the running kernel, in namespaces of the test's own. The tests need root.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test panics or prints")]

mod algorithms;
mod as_linux;
mod bounds;
mod killed;
mod monitor;
mod path;
mod peer;
mod privileges;
mod registration;
mod rig;
mod small_queue;
mod snapshot;
mod watch;
