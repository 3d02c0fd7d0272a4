//! The frontier of goodput and queueing delay: what *fixed* windows reach in a setting, and where a
//! law is beside them.
//!
//! [`sweep()`] gives the fixed windows of a setting. [`KeptRuns`] keeps the figures of all runs that do not
//! depend on the law. [`verdict`] compares the law with the windows, and [`table`] shows the result.
//! `validation/frontier.py` draws it.

pub mod command;
mod kept;
mod point;
pub mod report;
mod senders;
mod sweep;
pub mod table;
pub mod terms;
pub mod verdict;

pub use kept::KeptRuns;
pub use point::Point;
pub(crate) use point::index;
pub use report::{FrontierReport, FrontierRow};
pub use senders::{SenderGroup, Senders};
pub use sweep::{FixedWindows, GroupWindow, sweep};
