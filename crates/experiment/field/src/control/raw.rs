//! What the machines have measured in one run, before it becomes figures: it can be kept, and read again.

use serde::{Deserialize, Serialize};

use crate::protocol::{Facts, StationData};

/// What was measured in one run of a condition.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct RawRun {
    /// The index of the condition among those of the command, and the number of the block from 0.
    pub(super) condition: usize,
    pub(super) block: u32,
    /// The place in the block from 0.
    pub(super) position: u32,
    pub(super) wall_s: f64,
    /// The end where all flows had a size and have completed, nanoseconds.
    pub(super) ended_ns: Option<u64>,
    /// The server's, then the stations'.
    pub(super) machines: Vec<RawMachine>,
}

/// What one machine has measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct RawMachine {
    /// The station's name, or `server`.
    pub(super) station: String,
    /// Where the machine is.
    pub(super) machine: String,
    pub(super) facts: Option<Facts>,
    pub(super) data: Option<StationData>,
    /// Why there are no data.
    pub(super) reason: Option<String>,
    /// The most by which the machine's clock may have been wrong, and what it has drifted in the run, nanoseconds.
    pub(super) clock_error_ns: u64,
    pub(super) drift_ns: i64,
    /// The bytes that went over the connection, both ways, from the run's time zero to its end.
    pub(super) carried: u64,
}
