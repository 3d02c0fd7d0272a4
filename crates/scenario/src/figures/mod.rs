//! The figures that runs are judged by.

mod avr;
mod fairness;
mod rtt;

pub use avr::AvrMeter;
pub use fairness::{
    capacity_normalised, jain, mean, mean_utilisation, normalised_required_throughput,
};
pub use rtt::{RttHistogram, percentile};
