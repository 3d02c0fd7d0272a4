//! Readings in files: [`Recorder`] writes them, [`Replay`] reads them back.
//!
//! A recording is a directory of parts of some seconds each. A part is two Parquet files, `connections-N.parquet` with
//! a row per connection and reading, and `readings-N.parquet` with a row per reading. The file of readings gets its
//! name last, so a part that has it is complete. `docs/reference/records.md` describes the columns.

mod columns;
mod error;
mod experiment;
mod recorder;
mod recording;
mod replay;

pub use error::{RecordError, ReplayError};
pub use experiment::RunChoice;
pub use recorder::Recorder;
pub use replay::Replay;
pub(crate) use replay::{MOST_SHOWN, SHOWN};

/// The version of the columns, in the metadata of each file.
const SCHEMA: &str = "top 2";
