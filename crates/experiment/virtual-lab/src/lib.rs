//! The lab in guests: the same runs of the same scenario on any kernel, as an ordinary user, in virtual time.
//!
//! [`run`] makes all runs of a scenario, each in a guest of its own ([`wakeai_guest`]). The guest's first program is
//! `wakeai` itself, which calls [`inside`]: it makes the one run with [`wakeai_lab`], and sends what it measured
//! over a port. Nothing enters a guest after its start, and its clock counts its instructions, so two guests with the
//! same image and the same task do the same. `docs/concepts/lab.md` explains what that means.

mod error;
mod image;
mod inside;
mod outside;
mod rows;
mod task;
mod wire;

pub use error::VirtualLabError;
pub use inside::{COMMAND, inside};
pub use outside::{VirtualLabOptions, alone, run};
