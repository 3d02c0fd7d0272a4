//! The figures that runs are judged by.

mod avr;
mod fairness;
mod histogram;

pub use avr::AvrMeter;
pub use fairness::{jain, mean};
pub use histogram::DurationHistogram;
