//! What came of an experiment: the figures of its runs, the result and the records.
//!
//! A world (the simulator, the lab or the field) fills a [`result::Outcome`] for each run, with the help of
//! [`figures`]. [`result::Report`] has all runs of a command; [`document`] is its JSON, [`table::render`] prints it,
//! [`records`] keeps it, and [`compare`] compares two reports.

pub mod aggregate;
pub mod air;
pub mod columns;
pub mod compare;
pub mod document;
mod field;
pub mod figures;
pub mod records;
pub mod result;
pub mod table;
mod unknown_errors;
