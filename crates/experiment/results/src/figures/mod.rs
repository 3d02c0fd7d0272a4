//! The figures that compare runs.

mod avr;
mod fairness;
mod histogram;
mod interval;

pub use avr::AvrMeter;
pub use fairness::{jain, mean};
pub use histogram::DurationHistogram;
pub use interval::{Interval, variance};
