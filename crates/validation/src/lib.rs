//! What can be believed: the simulator beside ns-3, models, the papers' tables and the lab.
//!
//! [`page::write`] runs everything and writes `docs/reference/validation.md`; [`bench::run`] measures
//! the speed beside ns-3's. Nothing here is needed to use Wakeai.

pub mod bench;
pub mod bianchi;
pub mod context;
pub mod detailed;
pub mod job;
pub mod lab;
pub mod law;
pub mod markdown;
pub mod page;
pub mod reference;
pub mod sections;
pub mod statistics;
pub mod svg;
pub mod transfers;
pub mod verdict;
