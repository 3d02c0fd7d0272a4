//! The figures that compare runs.

mod avr;
mod fairness;
mod histogram;

pub use avr::AvrMeter;
pub use fairness::{jain, mean};
pub use histogram::DurationHistogram;
