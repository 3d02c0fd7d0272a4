//! Compares the simulator with ns-3, with models, with the papers' tables and with the lab.
//!
//! [`sections::Results::run`] makes all runs and returns their figures, [`page::write`] writes
//! `docs/reference/validation.md` from them; [`bench::run`] measures the speed beside ns-3's. Nothing here is
//! needed to use Wakeai.

pub mod bench;
pub mod bianchi;
pub mod context;
mod detailed;
pub mod job;
pub mod lab;
pub mod law;
pub mod page;
pub mod reference;
pub mod sections;
pub mod statistics;
pub mod svg;
pub mod transfers;
pub mod verdict;
