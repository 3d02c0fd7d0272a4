//! For tests alone: runs a program on kernels other than this machine's, under qemu's software
//! emulation.
//!
//! [`KERNELS`] lists the kernels. [`take`] returns the machine with one of them, and
//! [`Machine::boot`] runs a [`Task`] in it. The kernels are Debian's packages, unpacked below the
//! target directory; nothing is installed.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "it serves tests: a failure here fails the test, and a skipped test prints the reason"
)]

mod amd64;
mod apt;
mod arm64;
mod kernels;
mod machine;
mod modules;

pub use amd64::{at_once, take};
pub use arm64::{arm64, told};
pub use kernels::{KERNELS, Kernel, Verdict};
pub use machine::{Machine, Program, Task};

use std::path::PathBuf;
use std::process::Command;

/// The path of the program that root's shell finds under this name.
fn which(tool: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let of_root = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    let mut places = std::env::split_paths(&path).chain(of_root).map(|dir| dir.join(tool));
    places.find(|file| file.is_file())
}

/// Prints why a test is skipped. Under `WAKEAI_REQUIRE_KERNEL=1` the test fails instead.
pub fn skip(reason: &str) {
    let required = std::env::var_os("WAKEAI_REQUIRE_KERNEL").is_some_and(|is| is == "1");
    assert!(!required, "WAKEAI_REQUIRE_KERNEL=1, but {reason}");
    println!("SKIPPED: {reason}");
}

/// Runs the command; `true` where its exit status is 0.
fn succeeds(command: &mut Command) -> bool {
    command.status().is_ok_and(|status| status.success())
}
