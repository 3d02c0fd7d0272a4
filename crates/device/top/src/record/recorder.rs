//! Writes readings into a directory while they are made.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use wakeai_tables::{Column, ParquetError, TableWriter};
use wakeai_units::Duration;

use super::columns::{self, ConnectionRow, ReadingRow};
use super::{RecordError, SCHEMA};
use crate::reading::Reading;

/// The longest time that is lost if the process is killed.
const AT_RISK: Duration = Duration::from_secs(4);

/// A recording that is being written.
#[derive(Debug)]
pub struct Recorder {
    directory: PathBuf,
    interval: Duration,
    /// The number of the next part.
    part: u32,
    /// The readings of this part.
    kept: Vec<Arc<Reading>>,
}

impl Recorder {
    /// Begins a recording in `directory`, which is made if it does not exist. `interval` is the time between two
    /// readings.
    ///
    /// # Errors
    ///
    /// There is something at that path that is not an empty directory, or the directory cannot be made.
    pub fn create(directory: &Path, interval: Duration) -> Result<Self, RecordError> {
        let failed = |error: io::Error| RecordError::Write {
            path: directory.to_owned(),
            reason: error.to_string(),
        };
        fs::create_dir_all(directory).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory => {
                RecordError::InTheWay(directory.to_owned())
            }
            _ => failed(error),
        })?;
        if fs::read_dir(directory).map_err(failed)?.next().is_some() {
            return Err(RecordError::InTheWay(directory.to_owned()));
        }
        Ok(Self { directory: directory.to_owned(), interval, part: 1, kept: Vec::new() })
    }

    /// Adds a reading, and writes a part when its readings span four seconds.
    ///
    /// # Errors
    ///
    /// A part cannot be written. The recording has then ended.
    pub fn push(&mut self, reading: Arc<Reading>) -> Result<(), RecordError> {
        let first = self.kept.first().map_or(reading.at, |first| first.at);
        let next = reading.at.saturating_since(first).saturating_add(self.interval);
        self.kept.push(reading);
        if next >= AT_RISK { self.write() } else { Ok(()) }
    }

    /// Writes the remaining readings.
    ///
    /// # Errors
    ///
    /// The last part cannot be written.
    pub fn finish(mut self) -> Result<(), RecordError> {
        self.write()
    }

    fn write(&mut self) -> Result<(), RecordError> {
        let kept = std::mem::take(&mut self.kept);
        if kept.is_empty() {
            return Ok(());
        }
        let rows = kept.iter().flat_map(|reading| {
            reading.connections.iter().map(|found| ConnectionRow::new(reading.at, found))
        });
        self.table("connections", columns::connections(), rows)?;
        let rows = kept.iter().map(ReadingRow::new);
        self.table("readings", columns::readings(), rows)?;
        self.part += 1;
        Ok(())
    }

    /// Writes a file of this part under a temporary name, and renames it when it is complete.
    fn table<R>(
        &self,
        name: &str,
        columns: Vec<Column<R>>,
        mut rows: impl Iterator<Item = R>,
    ) -> Result<(), RecordError> {
        let path = self.directory.join(format!("{name}-{:06}.parquet", self.part));
        let partial = path.with_extension("partial");
        let write = || -> Result<(), ParquetError> {
            let mut table = TableWriter::new(SCHEMA, columns, File::create(&partial)?)?;
            rows.try_for_each(|row| table.push(row))?;
            table.finish()?;
            Ok(())
        };
        let done = write().map_err(|error| match error {
            ParquetError::External(source) => source.to_string(),
            other => other.to_string(),
        });
        let done =
            done.and_then(|()| fs::rename(&partial, &path).map_err(|error| error.to_string()));
        done.map_err(|reason| {
            let _ = fs::remove_file(&partial); // half of a file is of no use
            RecordError::Write { path, reason }
        })
    }
}
