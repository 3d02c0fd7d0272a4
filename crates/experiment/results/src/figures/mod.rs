//! The figures that compare runs: Jain's index, AVR, percentiles of delays, means and their intervals.

mod avr;
mod fairness;
mod histogram;
mod interval;

pub use avr::AvrMeter;
pub use fairness::{jain, mean};
pub use histogram::DurationHistogram;
pub use interval::{Interval, variance};
