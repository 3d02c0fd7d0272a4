//! Runs a scenario on real machines, the third world beside the simulator and the lab.
//!
//! A [`Machines`] file says which machine is which station, and which is the server. [`run`] starts a helper on each
//! over ssh, adb or locally, has all of them begin each run at one agreed time, fetches what they measured, and computes the
//! result that the other worlds give. [`check()`] looks at the machines before. A helper is `wakeai field-station`
//! ([`station`]); it goes on when its connection is lost, and undoes everything by itself at a deadline.
//!
//! `docs/guides/experiment.md` shows the use, `docs/decisions/039-the-field.md` says why it is built in this way.

mod check;
mod control;
mod error;
mod machines;
mod order;
mod protocol;
pub mod station;

pub use check::{CheckReport, check};
pub use control::{FieldOptions, run};
pub use error::FieldError;
pub use machines::{Machine, Machines, Place};
