//! Readings in files: [`Recorder`] writes them, [`Replay`] reads them back.
//!
//! A recording is a directory of parts of some seconds each. A part is two Parquet files, `connections-N.parquet` with
//! a row per connection and reading, and `readings-N.parquet` with a row per reading. The file of readings gets its
//! name last, so a part that has it is complete. `docs/reference/records.md` describes the columns.

mod columns;
mod experiment;
mod recorder;
mod recording;
mod replay;

use std::io;
use std::path::{Path, PathBuf};

use wakeai_tables::{Group, TableError, TableReader};

pub use experiment::RunChoice;
pub use recorder::Recorder;
pub use replay::Replay;
pub(crate) use replay::{MOST_SHOWN, SHOWN};

/// The version of the columns, in the metadata of each file.
const SCHEMA: &str = "top 2";

/// Why a recording does not begin, or has ended.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// There is something at the path that is not an empty directory.
    #[error("--record: {} is not an empty directory; choose another one", .0.display())]
    InTheWay(PathBuf),
    /// A file cannot be written.
    #[error("cannot record to {}: {reason}", path.display())]
    Write {
        /// The file or directory.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
}

/// Calls `work` with each row of a file.
fn each_row(
    path: &Path,
    schema: &'static str,
    mut work: impl FnMut(&Group, usize) -> Result<(), TableError>,
) -> Result<(), TableError> {
    let mut table = TableReader::open(path)?.expect(schema)?;
    while let Some(group) = table.next_group()? {
        (0..group.rows()).try_for_each(|row| work(&group, row))?;
    }
    Ok(())
}

/// Why nothing is replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The directory cannot be read.
    #[error("--replay: cannot read {}: {source}", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// There is nothing to replay.
    #[error(
        "--replay: {} has neither a recording (`wakeai top --record`) nor the records of an experiment (`--out`)",
        .0.display()
    )]
    Nothing(PathBuf),
    /// The experiment has no such run.
    #[error("--replay: {} has no such run; it has these (condition and repeat): {runs}", path.display())]
    NoSuchRun {
        /// The directory.
        path: PathBuf,
        /// The runs that it has.
        runs: String,
    },
    /// A file cannot be read.
    #[error(transparent)]
    Table(#[from] TableError),
}
