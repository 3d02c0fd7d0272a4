//! Traffic: iperf3 for endless and UDP flows, connections of our own for sized ones.

pub(crate) mod iperf;
mod plan;
pub(crate) mod transfer;

pub(crate) use plan::{ENDLESS, FlowPlan, HOLDS_A_RATE, Kind, SenderFacts, plan};

use wakeai_units::{Bytes, Duration};

/// What the receiving application of one flow got.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Received {
    /// In all.
    pub(crate) bytes: Bytes,
    /// Between warmup and end of the run.
    pub(crate) bytes_in_window: Bytes,
    /// When its first bytes arrived, from the start of the run.
    pub(crate) first: Option<Duration>,
    /// When its last byte arrived, from the start of the run, where it has a size and got it all.
    pub(crate) completed: Option<Duration>,
    /// What arrived when, in steps of 0.1 s to a few seconds: (end of the step, bytes).
    pub(crate) progress: Vec<(Duration, Bytes)>,
}
