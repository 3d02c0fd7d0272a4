//! What is replayed: a recording, or an experiment.

use std::path::Path;
use std::sync::Arc;

use wakeai_units::{Duration, Instant};

use super::ReplayError;
use super::experiment::{self, RunChoice};
use super::recording::Recording;
use crate::reading::Reading;

/// The span of the readings that the screen shows.
pub(crate) const SHOWN: Duration = Duration::from_secs(60);
/// The largest number of readings that the screen shows.
pub(crate) const MOST_SHOWN: usize = 601;

/// Readings that were made earlier.
#[derive(Debug)]
pub struct Replay {
    source: ReplaySource,
    times: Vec<Instant>,
}

#[derive(Debug)]
enum ReplaySource {
    Recording(Recording),
    Experiment(Vec<Arc<Reading>>),
}

impl Replay {
    /// Opens a recording, or the chosen run of an experiment.
    ///
    /// # Errors
    ///
    /// The directory has neither, or a file cannot be read or has another schema.
    pub fn open(directory: &Path, choice: &RunChoice) -> Result<Self, ReplayError> {
        if let Some(recording) = Recording::open(directory)? {
            let times = recording.times().collect();
            return Ok(Self { source: ReplaySource::Recording(recording), times });
        }
        if !experiment::is_there(directory) {
            return Err(ReplayError::Nothing(directory.to_owned()));
        }
        let readings = experiment::readings(directory, choice)?;
        let times = readings.iter().map(|reading| reading.at).collect();
        Ok(Self { source: ReplaySource::Experiment(readings), times })
    }

    /// The times of all readings. There is at least one.
    pub fn times(&self) -> &[Instant] {
        &self.times
    }

    /// The reading with this index. Panics beyond the last one.
    ///
    /// # Errors
    ///
    /// Its file cannot be read.
    pub fn reading(&mut self, index: usize) -> Result<Arc<Reading>, ReplayError> {
        match &mut self.source {
            ReplaySource::Recording(recording) => recording.reading(index),
            ReplaySource::Experiment(readings) => Ok(Arc::clone(&readings[index])),
        }
    }

    /// The readings of the minute that ends with this index: those that the screen shows. Panics beyond the last one.
    ///
    /// # Errors
    ///
    /// As [`Replay::reading`].
    pub fn window(&mut self, index: usize) -> Result<Vec<Arc<Reading>>, ReplayError> {
        let end = self.times[index];
        let is_shown = |at: &Instant| end.saturating_since(*at) <= SHOWN;
        let first = self.times[..index].partition_point(|at| !is_shown(at));
        let first = first.max((index + 1).saturating_sub(MOST_SHOWN));
        (first..=index).map(|index| self.reading(index)).collect()
    }
}
