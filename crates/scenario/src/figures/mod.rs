//! The figures that compare runs.

mod avr;
mod fairness;
mod rtt;

pub use avr::AvrMeter;
pub use fairness::{jain, mean};
pub use rtt::RttHistogram;
