//! Tests of the BPF programs on the running kernel, in namespaces that the tests make. They need
//! root.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test panics or prints")]

mod algorithms;
mod as_linux;
mod bounds;
mod egress;
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
mod windows;
