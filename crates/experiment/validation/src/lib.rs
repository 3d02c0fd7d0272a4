//! Compares the simulator with ns-3, with models and with the lab, and judges the law `airtime`.
//! `validation/papers` compares it with the papers.
//!
//! [`sections::Results::run`] makes all runs and returns their figures, and [`page::write`] writes
//! `docs/reference/validation.md` from them. [`bench::run`] compares the speed with that of ns-3.
//! Wakeai itself does not need this crate.

use std::io::Write as _;

use anyhow::Context as _;

pub mod bench;
pub mod bianchi;
pub mod context;
mod detailed;
pub mod files;
pub mod frontier;
pub mod guests;
pub mod job;
pub mod kernels;
pub mod lab;
pub mod law;
pub mod page;
mod pool;
pub mod reference;
pub mod sections;
pub mod stack;
pub mod statistics;
pub mod transfers;
pub mod verdict;

/// The number of processors.
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Prints `text`.
///
/// # Errors
///
/// Standard output cannot be written.
pub fn say(text: &str) -> anyhow::Result<()> {
    std::io::stdout().write_all(text.as_bytes()).context("standard output")
}
