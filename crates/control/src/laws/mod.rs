//! The laws. `docs/concepts/laws.md` explains each, with its formulas.

pub mod airtime;
mod candidate;
pub mod fixed;
pub mod shimada;

pub use candidate::by_senders;
