//! The figures that runs are judged by.

mod avr;
mod fairness;
mod rtt;

pub use avr::AvrMeter;
pub use fairness::{jain, mean};
pub use rtt::RttHistogram;
