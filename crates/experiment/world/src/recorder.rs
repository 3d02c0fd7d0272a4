//! The records of a command (`--out`), written by several runs at once.
//!
//! The rows of the runs are written in the order of the report, so the files do not depend on how
//! many runs are made at once. A run whose turn has not come keeps its rows in memory, and pauses
//! when it has too many.

use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use wakeai_results::records::{
    Captures, Manifest, Output, Records, RecordsError, Row, RunCaptures,
};
use wakeai_results::result::{Report, Run};
use wakeai_scenario::{Expanded, Scenario};

/// The number of rows that a run writes at once.
const BATCH: usize = 4_096;
/// The largest number of rows that a run keeps before its turn. They take some 40 MB.
const MOST_KEPT: usize = 1 << 19;

/// The records of a command.
#[derive(Clone, Debug)]
pub struct Recorder(Arc<Files>);

#[derive(Debug)]
struct Files {
    state: Mutex<RecorderState>,
    changed: Condvar,
    captures: Option<Captures>,
}

#[derive(Debug, Default)]
struct RecorderState {
    /// The files; `None` once [`Recorder::finish`] has taken them.
    records: Option<Records>,
    /// The run whose turn it is: its rows are written now.
    turn: usize,
    /// Whether [`Records::begin_run`] was called for the run of `turn`.
    begun: bool,
    /// Whether a run has failed. No more rows are written then.
    abandoned: bool,
    /// The number of runs whose records are complete.
    ended: usize,
}

impl Recorder {
    /// Begins the records of a command. With `captures` they include captures of the packets.
    ///
    /// # Errors
    ///
    /// The directory or a file in it cannot be made, or it has a file that must not be replaced.
    pub fn create(
        output: impl Into<Output>,
        scenario: &Scenario,
        manifest: Manifest,
        captures: bool,
    ) -> Result<Self, RecordsError> {
        let mut records = Records::create(output, scenario, manifest)?;
        let captures = if captures { Some(records.capture()?) } else { None };
        let state = RecorderState { records: Some(records), ..RecorderState::default() };
        let state = Mutex::new(state);
        Ok(Self(Arc::new(Files { state, changed: Condvar::new(), captures })))
    }

    /// The directory of the agents' files, see [`Records::agents`].
    ///
    /// # Errors
    ///
    /// Those of [`Recorder::create`].
    pub fn agents(&self) -> Result<PathBuf, RecordsError> {
        self.state().records.as_ref().expect("not finished yet").agents()
    }

    /// The handle through which run number `ordinal` writes its records. Runs are counted from 0 in
    /// the order of the report.
    pub(crate) fn run(
        &self,
        ordinal: usize,
        condition: &str,
        repeat: u32,
        expanded: Expanded,
    ) -> RunSink {
        let condition = condition.to_owned();
        let (files, rows) = (self.clone(), Mutex::default());
        let sink = Sink { files, ordinal, condition, repeat, expanded, rows };
        RunSink(Way::Files(Arc::new(sink)))
    }

    /// Puts the files into place.
    pub(crate) fn finish(self, report: &Report) -> Result<(), RecordsError> {
        let records = self.state().records.take().expect("finished once");
        records.finish(report)
    }

    /// Puts the files of the runs that have ended into place, where a later one has failed. Leaves out of
    /// `report` the runs that have no records, and returns the directory; `None` where no run is left.
    pub(crate) fn keep(self, report: &mut Report) -> Option<Result<PathBuf, RecordsError>> {
        let mut state = self.state();
        report.runs.truncate(state.ended);
        let records = state.records.take().filter(|_| !report.runs.is_empty())?;
        Some(records.keep(report))
    }

    fn state(&self) -> MutexGuard<'_, RecorderState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until it is the run's turn or the records are abandoned, and returns the state.
    fn turn(&self, ordinal: usize) -> MutexGuard<'_, RecorderState> {
        let state = self.state();
        let waits = |state: &mut RecorderState| state.turn != ordinal && !state.abandoned;
        self.0.changed.wait_while(state, waits).unwrap_or_else(PoisonError::into_inner)
    }
}

impl RecorderState {
    fn write(&mut self, run: &Sink, rows: &mut Vec<Row>) -> Result<(), RecordsError> {
        let Some(records) = self.records.as_mut().filter(|_| !self.abandoned) else {
            rows.clear();
            return Ok(());
        };
        if !self.begun {
            records.begin_run(&run.condition, run.repeat, &run.expanded);
            self.begun = true;
        }
        rows.drain(..).try_for_each(|row| records.row(row))
    }
}

/// The records of one run. A clone is another handle to the same run.
#[derive(Clone, Debug)]
pub struct RunSink(Way);

/// Where the rows of a run go.
#[derive(Clone)]
enum Way {
    /// Into the files of a command.
    Files(Arc<Sink>),
    /// To whoever keeps the records.
    Away(Arc<Mutex<dyn FnMut(Row) + Send>>),
}

impl std::fmt::Debug for Way {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Files(sink) => sink.fmt(f),
            Self::Away(_) => f.write_str("Away"),
        }
    }
}

#[derive(Debug)]
struct Sink {
    files: Recorder,
    ordinal: usize,
    condition: String,
    repeat: u32,
    expanded: Expanded,
    rows: Mutex<Rows>,
}

#[derive(Debug, Default)]
struct Rows {
    kept: Vec<Row>,
    /// The first failure to write; [`RunSink::end`] returns it.
    failed: Option<RecordsError>,
}

impl RunSink {
    /// Hands each row to `keep`, for a run whose records are kept elsewhere. There are no captures.
    pub fn to(keep: impl FnMut(Row) + Send + 'static) -> Self {
        Self(Way::Away(Arc::new(Mutex::new(keep))))
    }

    /// Begins the captures of this run; `None` where none were asked for. Captures are written
    /// without waiting for the run's turn, because each run has its own files for them.
    ///
    /// # Errors
    ///
    /// The files of the captures cannot be made.
    pub fn captures(&self) -> Result<Option<RunCaptures>, RecordsError> {
        let Way::Files(sink) = &self.0 else { return Ok(None) };
        let Sink { files, condition, repeat, expanded, .. } = &**sink;
        let Some(captures) = &files.0.captures else { return Ok(None) };
        let stations = expanded.stations.iter().map(|station| station.name.as_str());
        captures.run(condition, *repeat, stations).map(Some)
    }

    /// Adds a row.
    pub fn row(&self, row: Row) {
        let sink = match &self.0 {
            Way::Files(sink) => sink,
            Way::Away(keep) => {
                return keep.lock().unwrap_or_else(PoisonError::into_inner)(row);
            }
        };
        let mut rows = sink.rows();
        if rows.failed.is_some() {
            return;
        }
        rows.kept.push(row);
        if rows.kept.len().is_multiple_of(BATCH) {
            let Sink { files, ordinal, .. } = &**sink;
            let mut state =
                if rows.kept.len() < MOST_KEPT { files.state() } else { files.turn(*ordinal) };
            if state.turn == *ordinal || state.abandoned {
                rows.failed = state.write(sink, &mut rows.kept).err();
            }
        }
    }

    /// The rows that are not written yet.
    #[cfg(test)]
    pub(crate) fn kept(&self) -> Vec<Row> {
        match &self.0 {
            Way::Files(sink) => sink.rows().kept.clone(),
            Way::Away(_) => Vec::new(),
        }
    }

    /// Waits for the run's turn and ends its records with its result.
    pub(crate) fn end(self, run: &Run) -> Result<(), RecordsError> {
        let Way::Files(sink) = &self.0 else { return Ok(()) };
        let Sink { files, ordinal, .. } = &**sink;
        let mut rows = sink.rows();
        let mut state = files.turn(*ordinal);
        let abandoned = state.abandoned;
        let written = match rows.failed.take() {
            Some(error) => Err(error),
            None => state.write(sink, &mut rows.kept),
        };
        let ended = match state.records.as_mut().filter(|_| !abandoned) {
            Some(records) if written.is_ok() => {
                let ended = records.end_run(run);
                state.ended += usize::from(ended.is_ok());
                ended
            }
            _ => Ok(()),
        };
        let result = written.and(ended);
        (state.turn, state.begun) = (ordinal + 1, false);
        state.abandoned |= result.is_err();
        files.0.changed.notify_all();
        result
    }
}

impl Sink {
    fn rows(&self) -> MutexGuard<'_, Rows> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Sink {
    /// Ends all waits for a turn, where the run has failed: [`RunSink::end`] was not called.
    fn drop(&mut self) {
        let mut state = self.files.state();
        state.abandoned |= state.turn <= self.ordinal;
        self.files.0.changed.notify_all();
    }
}
