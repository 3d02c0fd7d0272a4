//! Readings in files: [`Recorder`] writes them, [`Replay`] reads them back.
//!
//! A recording is a directory of parts of some seconds each. A part is two Parquet files, `connections-N.parquet` with a
//! row per connection and reading, and `readings-N.parquet` with a row per reading. The second one is put into place
//! last, so that a part with it is whole. `docs/reference/records.md` describes the columns.

mod columns;
mod experiment;
mod recorder;
mod recording;
mod replay;

pub use recorder::{RecordError, Recorder};
pub(crate) use replay::{MOST_SHOWN, SHOWN};
pub use replay::{Replay, ReplayError, RunChoice};

/// The version of the columns, in the metadata of each file.
const SCHEMA: &str = "top 1";
