//! The records of an experiment on disk, which `--out DIR` writes.
//!
//! Order of calls: [`Records::create`]; for each run [`Records::begin_run`], [`Records::row`] any number
//! of times, [`Records::end_run`]; then [`Records::finish`], or [`Records::keep`] where a run has failed.
//!
//! All files are written in a hidden directory and moved to their places at the end, `result.json`
//! last. So if that file exists, the other files are complete. Before a run has ended, a run that fails, or a
//! full disk, leaves the directory as it was. An earlier result is replaced only if [`Output::force`] is set.
//! Any other file that would be replaced is reported before the first run.
//! `docs/reference/records.md` describes the files.

mod captures;
mod error;
mod exchange;
mod marker;
mod output;
mod pcapng;
mod rows;
mod tables;
mod workplace;

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;

use crate::result::{Report, Run};
pub use captures::{Captures, Host, RunCaptures};
pub use error::RecordsError;
use error::{broken, cannot};
pub use output::Output;
pub use pcapng::Way;
pub use rows::{
    AirKind, AirOf, AirtimeRow, EventRow, GoodputRow, Queue, QueueRow, Row, RowEvent, SampleRow,
};
use tables::{FlowRow, Of, RunName};
use wakeai_scenario::{Expanded, Scenario};
use wakeai_tables::{Column, TableWriter, copy_first};
use workplace::Workplace;

/// The content of `run.json`: everything that is needed to reproduce an experiment.
#[derive(Clone, Debug, Serialize)]
pub struct Manifest {
    /// The version of wakeai.
    pub version: String,
    /// `sim`, `lab` or `field`.
    pub world: String,
    /// The scenario's name.
    pub scenario: String,
    /// The seed of the first repeat.
    pub seed: u64,
    /// The number of repeats of each condition.
    pub repeat: u32,
    /// The conditions that were run, in order.
    pub conditions: Vec<String>,
}

impl Manifest {
    /// The names of the directories of the command's runs.
    fn runs(&self) -> impl Iterator<Item = String> {
        let repeats = |name: &String| {
            let name = name.clone();
            (0..self.repeat).map(move |repeat| format!("{name}-{repeat}"))
        };
        self.conditions.iter().flat_map(repeats)
    }

    /// The command that repeats the runs, in the directory of the records.
    fn command(&self) -> String {
        format!(
            "wakeai {} scenario.toml{} --seed {} --repeat {} --conditions {}",
            self.world,
            // Which machines there are is not part of the scenario.
            if self.world == "field" { " --machines FILE" } else { "" },
            self.seed,
            self.repeat,
            self.conditions.join(",")
        )
    }
}

/// The manifest as it is written.
#[derive(Serialize)]
struct Written<'a> {
    #[serde(flatten)]
    manifest: &'a Manifest,
    command: String,
    /// Whether packets were captured.
    pcap: bool,
    /// The number of rows of each file.
    rows: Rows,
}

#[derive(Clone, Copy, Serialize)]
struct Rows {
    flows: u64,
    goodput: u64,
    samples: u64,
    events: u64,
    queues: u64,
    airtime: u64,
}

/// Records that are being written.
pub struct Records {
    manifest: Manifest,
    scenario: String,
    run: Option<Arc<RunName>>,
    /// The number of rows in each table before the run that has begun and not ended.
    before: Option<Rows>,
    flows: Table<FlowRow>,
    goodput: Table<GoodputRow>,
    samples: Table<SampleRow>,
    events: Table<EventRow>,
    queues: Table<QueueRow>,
    airtime: Table<AirtimeRow>,
    captures: Option<Captures>,
    /// The directory of all files. It is the last field, so that it is dropped after the files.
    workplace: Workplace,
}

/// A Parquet file of rows.
struct Table<R: 'static> {
    path: PathBuf,
    writer: TableWriter<Of<R>, File>,
}

impl std::fmt::Debug for Records {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Records").field("workplace", &self.workplace).finish_non_exhaustive()
    }
}

/// The files that every result has.
const FILES: [&str; 9] = [
    "flows.parquet",
    "goodput.parquet",
    "samples.parquet",
    "events.parquet",
    "queues.parquet",
    "airtime.parquet",
    "scenario.toml",
    "run.json",
    RESULT,
];
const RESULT: &str = "result.json";
/// The version of the tables' columns, in the metadata of each file.
pub const SCHEMA: &str = "experiment 2";

impl Records {
    /// Creates records of `scenario`, and their directory if it does not exist.
    ///
    /// # Errors
    ///
    /// The directory or a file in it cannot be made, or it has a file that must not be replaced.
    pub fn create(
        output: impl Into<Output>,
        scenario: &Scenario,
        manifest: Manifest,
    ) -> Result<Self, RecordsError> {
        let workplace = Workplace::begin(output.into())?;
        Ok(Self {
            flows: Table::create(&workplace, FILES[0], tables::flows())?,
            goodput: Table::create(&workplace, FILES[1], tables::goodput())?,
            samples: Table::create(&workplace, FILES[2], tables::samples())?,
            events: Table::create(&workplace, FILES[3], tables::events())?,
            queues: Table::create(&workplace, FILES[4], tables::queues())?,
            airtime: Table::create(&workplace, FILES[5], tables::airtime())?,
            manifest,
            scenario: scenario.to_toml(),
            run: None,
            before: None,
            captures: None,
            workplace,
        })
    }

    /// Begins packet captures beside the tables.
    ///
    /// # Errors
    ///
    /// The directory of the captures cannot be made, or it has a file that must not be replaced.
    pub fn capture(&mut self) -> Result<Captures, RecordsError> {
        let directory = self.workplace.directory("pcap", self.manifest.runs())?;
        let captures = Captures::create(directory, &self.manifest.version);
        Ok(self.captures.insert(captures).clone())
    }

    /// Makes a directory for the files that agents write, and in it a directory for each run. It is
    /// moved into place together with the other records.
    ///
    /// # Errors
    ///
    /// Those of [`Records::capture`].
    pub fn agents(&self) -> Result<PathBuf, RecordsError> {
        self.workplace.directory("agents", self.manifest.runs())
    }

    /// Begins a run. The following rows belong to it.
    pub fn begin_run(&mut self, condition: &str, repeat: u32, expanded: &Expanded) {
        let flows = expanded
            .flows
            .iter()
            .map(|flow| (expanded.stations[flow.station()].name.clone(), flow.direction().into()));
        let condition = condition.to_owned();
        let flows = flows.collect();
        let stations = expanded.stations.iter().map(|station| station.name.clone()).collect();
        self.run = Some(Arc::new(RunName { condition, repeat, flows, stations }));
        self.before = Some(self.rows());
    }

    /// Adds a row of the run. Panics before the first [`Records::begin_run`].
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn row(&mut self, row: Row) -> Result<(), RecordsError> {
        let run = self.run();
        match row {
            Row::Sample(row) => self.samples.push(run, row),
            Row::Event(row) => self.events.push(run, row),
            Row::Goodput(row) => self.goodput.push(run, row),
            Row::Queue(row) => self.queues.push(run, row),
            Row::Airtime(row) => self.airtime.push(run, row),
        }
    }

    /// Ends the run with its result. Panics before the first [`Records::begin_run`].
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn end_run(&mut self, run: &Run) -> Result<(), RecordsError> {
        for (flow, result) in run.flows.iter().enumerate() {
            let row = FlowRow { flow: flow as u32, result: result.clone() };
            self.flows.push(self.run(), row)?;
        }
        self.before = None;
        Ok(())
    }

    fn run(&self) -> Arc<RunName> {
        self.run.clone().expect("begin_run comes before the rows of a run")
    }

    /// Completes the files and moves them to their places.
    ///
    /// # Errors
    ///
    /// A file cannot be written. Then no file is moved to its place.
    pub fn finish(self, report: &Report) -> Result<(), RecordsError> {
        let version = self.manifest.version.clone();
        self.complete(report)?.finish(&version)
    }

    /// Completes the files of a command of which a run has failed: `report` has the runs that have ended. Rows
    /// and captures of other runs are removed. If there is an earlier result, it stays, and the files are moved
    /// to a directory below. Returns the directory of the files.
    ///
    /// # Errors
    ///
    /// Those of [`Records::finish`].
    pub fn keep(self, report: &Report) -> Result<PathBuf, RecordsError> {
        if self.captures.is_some() {
            let ended = report.runs.iter().map(|run| format!("{}-{}", run.condition, run.repeat));
            let ended: BTreeSet<String> = ended.collect();
            for run in self.manifest.runs().filter(|run| !ended.contains(run)) {
                let path = self.workplace.path("pcap").join(run);
                match std::fs::remove_dir_all(&path) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => {
                        return Err(cannot(&path, &error));
                    }
                    _ => {}
                }
            }
        }
        let version = self.manifest.version.clone();
        self.complete(report)?.finish_beside(&version)
    }

    fn rows(&self) -> Rows {
        Rows {
            flows: self.flows.writer.rows(),
            goodput: self.goodput.writer.rows(),
            samples: self.samples.writer.rows(),
            events: self.events.writer.rows(),
            queues: self.queues.writer.rows(),
            airtime: self.airtime.writer.rows(),
        }
    }

    /// Completes the files, without the rows of a run that has not ended.
    fn complete(self, report: &Report) -> Result<Workplace, RecordsError> {
        let rows = self.before.unwrap_or(self.rows());
        let Self { manifest, scenario, workplace, .. } = self;
        self.flows.complete(rows.flows)?;
        self.goodput.complete(rows.goodput)?;
        self.samples.complete(rows.samples)?;
        self.events.complete(rows.events)?;
        self.queues.complete(rows.queues)?;
        self.airtime.complete(rows.airtime)?;
        let (command, pcap) = (manifest.command(), self.captures.is_some());
        let written = Written { command, pcap, manifest: &manifest, rows };
        let json = serde_json::to_string_pretty(&written).expect("strings and numbers");
        text(&workplace, FILES[6], &scenario)?;
        text(&workplace, FILES[7], &(json + "\n"))?;
        text(&workplace, RESULT, &(report.to_json() + "\n"))?;
        Ok(workplace)
    }
}

impl<R> Table<R> {
    fn create(
        workplace: &Workplace,
        name: &str,
        columns: Vec<Column<Of<R>>>,
    ) -> Result<Self, RecordsError> {
        let path = workplace.path(name);
        let file = File::create(&path).map_err(|error| cannot(&path, &error))?;
        let columns = tables::of_run().into_iter().chain(columns).collect();
        let writer =
            TableWriter::new(SCHEMA, columns, file).map_err(|error| broken(&path, &error))?;
        Ok(Self { path, writer })
    }

    fn push(&mut self, run: Arc<RunName>, row: R) -> Result<(), RecordsError> {
        self.writer.push(Of { run, row }).map_err(|error| broken(&self.path, &error))
    }

    /// Writes the remaining rows, and keeps the first `keep` of all.
    fn complete(self, keep: u64) -> Result<(), RecordsError> {
        let Self { path, writer } = self;
        let (mut file, rows) = writer.finish().map_err(|error| broken(&path, &error))?;
        if keep < rows {
            let whole = path.with_extension("whole");
            std::fs::rename(&path, &whole).map_err(|error| cannot(&path, &error))?;
            file = File::create(&path).map_err(|error| cannot(&path, &error))?;
            file = copy_first(&whole, keep, file).map_err(|error| broken(&path, &error))?;
            std::fs::remove_file(&whole).map_err(|error| cannot(&whole, &error))?;
        }
        file.sync_all().map_err(|error| cannot(&path, &error))
    }
}

fn text(workplace: &Workplace, name: &str, content: &str) -> Result<(), RecordsError> {
    let path = workplace.path(name);
    let write = || {
        let mut file = File::create(&path)?;
        file.write_all(content.as_bytes())?;
        file.sync_all()
    };
    write().map_err(|error: io::Error| cannot(&path, &error))
}
