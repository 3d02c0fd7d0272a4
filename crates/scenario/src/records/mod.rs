//! The records of a run on disk: what `--out DIR` writes.

mod rows;

pub use rows::{EventKind, EventRow, FlowRow, SampleRow};
