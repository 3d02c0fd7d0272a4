//! Boots a stock Linux kernel under qemu's software emulation, with programs of this machine in it, as an ordinary
//! user. The lab and the tests use it.
//!
//! [`Store`] finds a kernel: a version of Debian's archive, which is kept in the user's cache, or an image.
//! [`Archive`] and [`add_programs`] make the guest's file system, [`Machine::boot`] boots it, and [`Guest::follow`]
//! takes what it answers. [`testing`] has what only tests need.

mod apt;
mod archive;
mod elf;
mod error;
mod machine;
mod modules;
mod place;
mod programs;
mod release;
mod store;
pub mod testing;

pub use archive::Archive;
pub use error::GuestError;
pub use machine::{Guest, Machine, Patience};
pub use modules::{ALGORITHMS, LAB, Modules, RADIOS};
pub use programs::{Program, add_programs, library_directories};
pub use release::Release;
pub use store::{Kernel, Store};

use std::path::PathBuf;

/// The path of the program that root's shell finds under this name.
pub fn which(tool: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let of_root = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    let mut places = std::env::split_paths(&path).chain(of_root).map(|dir| dir.join(tool));
    places.find(|file| file.is_file())
}
