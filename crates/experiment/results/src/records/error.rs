//! The errors of writing records.

use std::io;
use std::path::{Path, PathBuf};

use wakeai_tables::ParquetError;

/// Why the records could not be written.
#[derive(Debug, thiserror::Error)]
pub enum RecordsError {
    /// A file or directory cannot be written.
    #[error(
        "cannot write the records to {}: {reason}; free some space or choose another --out",
        path.display()
    )]
    Write {
        /// The file or directory.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The path is not a directory.
    #[error(
        "--out: found {found} at {}, expected a directory or nothing; choose another --out",
        path.display()
    )]
    NotADirectory {
        /// The path.
        path: PathBuf,
        /// The kind of file that was found there.
        found: &'static str,
    },
    /// The file of the scenario that is run would be replaced.
    #[error(
        "--out: {} is the scenario that is run, and is never replaced; choose another --out",
        .0.display()
    )]
    Input(PathBuf),
    /// A file that is not of an earlier result would be replaced.
    #[error(
        "--out: {} is not as wakeai wrote it, or not from wakeai at all, and is never replaced; \
         choose another --out, or move it away", .0.display()
    )]
    Foreign(PathBuf),
    /// An earlier result would be replaced.
    #[error(
        "--out: {} holds an earlier result; choose another --out, or replace it with --force",
        .0.display()
    )]
    Earlier(PathBuf),
    /// Another process is writing its records to the directory.
    #[error(
        "--out: another run is writing its records to {}; wait for its end, or choose another --out",
        .0.display()
    )]
    Busy(PathBuf),
    /// A file that was not there before the first run is where a record has to be.
    #[error(
        "cannot put {} into place: {reason}; the result is whole in {}",
        path.display(), kept.display()
    )]
    Aside {
        /// The file that could not be put into place.
        path: PathBuf,
        /// The reason.
        reason: String,
        /// The directory in which all files were kept.
        kept: PathBuf,
    },
}

impl RecordsError {
    /// Whether the user should give another `--out`.
    pub fn is_usage(&self) -> bool {
        !matches!(self, Self::Write { .. } | Self::Aside { .. })
    }
}

pub(super) fn cannot(path: &Path, error: &io::Error) -> RecordsError {
    RecordsError::Write { path: path.to_owned(), reason: error.to_string() }
}

pub(super) fn broken(path: &Path, error: &ParquetError) -> RecordsError {
    let reason = match error {
        ParquetError::External(source) => source.to_string(),
        other => other.to_string(),
    };
    RecordsError::Write { path: path.to_owned(), reason }
}
