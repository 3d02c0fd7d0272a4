//! Compares the simulator with ns-3, with models, with the papers' tables and with the lab.
//!
//! [`sections::Results::run`] makes all runs and returns their figures, and [`page::write`] writes
//! `docs/reference/validation.md` from them. [`bench::run`] compares the speed with that of ns-3.
//! Wakeai itself does not need this crate.

pub mod bench;
pub mod bianchi;
pub mod context;
mod detailed;
pub mod frontier;
pub mod job;
pub mod lab;
pub mod law;
pub mod page;
mod queueing;
pub mod reference;
pub mod sections;
pub mod statistics;
pub mod svg;
pub mod transfers;
pub mod verdict;
