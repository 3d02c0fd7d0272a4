//! For tests alone: boots other kernels than this machine's, under qemu's software emulation, with a
//! program of ours in each.
//!
//! [`KERNELS`] is the one list of them. [`take`] gives the machine with one of them, and
//! [`Machine::boot`] runs a [`Task`] in it. Kernels are Debian's packages, taken apart below the
//! target directory; nothing is installed.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "it serves tests: what fails here fails them, and they say why they are skipped"
)]

mod amd64;
mod apt;
mod initramfs;
mod kernels;
mod machine;
mod modules;

pub use amd64::{at_once, take};
pub use initramfs::{Program, Task};
pub use kernels::{KERNELS, Kernel, Verdict};
pub use machine::Machine;

use std::path::PathBuf;
use std::process::Command;

/// The program of this name that root's shell would run.
fn which(tool: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let of_root = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    let mut places = std::env::split_paths(&path).chain(of_root).map(|dir| dir.join(tool));
    places.find(|file| file.is_file())
}

/// Says why something is not tested here. Under `WAKEAI_REQUIRE_KERNEL=1` that is a failure.
pub fn skip(reason: &str) {
    let required = std::env::var_os("WAKEAI_REQUIRE_KERNEL").is_some_and(|is| is == "1");
    assert!(!required, "WAKEAI_REQUIRE_KERNEL=1, but {reason}");
    println!("SKIPPED: {reason}");
}

/// Runs it; whether it said that all was well.
fn succeeds(command: &mut Command) -> bool {
    command.status().is_ok_and(|status| status.success())
}
