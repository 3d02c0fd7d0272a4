//! The records of an experiment on disk: what `--out DIR` writes.
//!
//! Order of calls: [`Records::create`]; for each run [`Records::begin_run`], [`Records::sample`],
//! [`Records::event`], [`Records::queue`] and [`Records::airtime`] any number of times,
//! [`Records::end_run`]; then [`Records::finish`].
//! Everything is written in a hidden directory and put into place at the end, `result.json` last:
//! where that file is, the others are whole. A run that fails, or a full disk, leaves the directory
//! as it was. Nothing is replaced but an earlier result, and that only where [`Output::force`] says
//! so; what is in the way is found before the first run. `docs/reference/records.md` describes the
//! files.

mod captures;
mod error;
mod exchange;
mod marker;
mod output;
mod parquet;
mod pcapng;
mod rows;
mod tables;
mod workplace;

use std::fs::File;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;

use crate::Scenario;
use crate::expand::Expanded;
use crate::result::{Report, Run};
pub use captures::{Captures, Host, RunCaptures};
pub use error::RecordsError;
use error::{broken, cannot};
pub use output::Output;
use parquet::{Column, TableWriter};
pub use pcapng::Way;
pub use rows::{AirKind, AirOf, AirtimeRow, EventRow, Queue, QueueRow, RowEvent, SampleRow};
use tables::{FlowRow, Of, RunName};
use workplace::Workplace;

/// What reproduces an experiment: `run.json`.
#[derive(Clone, Debug, Serialize)]
pub struct Manifest {
    /// The version of wakeai.
    pub version: String,
    /// `sim` or `lab`.
    pub world: String,
    /// The scenario's name.
    pub scenario: String,
    /// The seed of the first repeat.
    pub seed: u64,
    /// Repeats of each condition.
    pub repeat: u32,
    /// The conditions that were run, in order.
    pub conditions: Vec<String>,
}

impl Manifest {
    /// What the directories of its runs are called.
    fn runs(&self) -> impl Iterator<Item = String> {
        let repeats = |name: &String| {
            let name = name.clone();
            (0..self.repeat).map(move |repeat| format!("{name}-{repeat}"))
        };
        self.conditions.iter().flat_map(repeats)
    }

    /// The command that runs it again, in the directory of the records.
    fn command(&self) -> String {
        format!(
            "wakeai {} scenario.toml --seed {} --repeat {} --conditions {}",
            self.world,
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
    /// Whether there are captures of it.
    pcap: bool,
    /// Rows of each file.
    rows: Rows,
}

#[derive(Serialize)]
struct Rows {
    flows: u64,
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
    flows: Table<FlowRow>,
    samples: Table<SampleRow>,
    events: Table<EventRow>,
    queues: Table<QueueRow>,
    airtime: Table<AirtimeRow>,
    captures: Option<Captures>,
    /// Where all of it lies. The last field: dropped after the files in it.
    workplace: Workplace,
}

type Table<R> = (PathBuf, TableWriter<Of<R>, File>);

impl std::fmt::Debug for Records {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Records").field("workplace", &self.workplace).finish_non_exhaustive()
    }
}

/// The files that every result has.
const FILES: [&str; 8] = [
    "flows.parquet",
    "samples.parquet",
    "events.parquet",
    "queues.parquet",
    "airtime.parquet",
    "scenario.toml",
    "run.json",
    RESULT,
];
const RESULT: &str = "result.json";

impl Records {
    /// Begins records of `scenario`. The directory is made where it does not exist.
    ///
    /// # Errors
    ///
    /// Where the directory or a file in it cannot be made, or something is there that is not to be
    /// replaced.
    pub fn create(
        output: impl Into<Output>,
        scenario: &Scenario,
        manifest: Manifest,
    ) -> Result<Self, RecordsError> {
        let workplace = Workplace::begin(output.into())?;
        Ok(Self {
            flows: table(&workplace, FILES[0], &tables::FLOWS)?,
            samples: table(&workplace, FILES[1], &tables::SAMPLES)?,
            events: table(&workplace, FILES[2], &tables::EVENTS)?,
            queues: table(&workplace, FILES[3], &tables::QUEUES)?,
            airtime: table(&workplace, FILES[4], &tables::AIRTIME)?,
            manifest,
            scenario: scenario.to_toml(),
            run: None,
            captures: None,
            workplace,
        })
    }

    /// Begins packet captures beside the tables.
    ///
    /// # Errors
    ///
    /// Where their directory cannot be made, or something is there that is not to be replaced.
    pub fn capture(&mut self) -> Result<Captures, RecordsError> {
        let directory = self.workplace.directory("pcap", self.manifest.runs())?;
        let captures = Captures::create(directory, &self.manifest.version);
        Ok(self.captures.insert(captures).clone())
    }

    /// A directory for what the agents of each run write, in a directory of the run's name. It is
    /// moved with the other records.
    ///
    /// # Errors
    ///
    /// As [`Records::capture`].
    pub fn agents(&self) -> Result<PathBuf, RecordsError> {
        self.workplace.directory("agents", self.manifest.runs())
    }

    /// The rows that follow are of this run.
    pub fn begin_run(&mut self, condition: &str, repeat: u32, expanded: &Expanded) {
        let flows = expanded
            .flows
            .iter()
            .map(|flow| (expanded.stations[flow.station()].name.clone(), flow.direction().name()));
        let condition = condition.to_owned();
        let flows = flows.collect();
        let stations = expanded.stations.iter().map(|station| station.name.clone()).collect();
        self.run = Some(Arc::new(RunName { condition, repeat, flows, stations }));
    }

    /// Adds a sample of the run. Panics before the first [`Records::begin_run`].
    ///
    /// # Errors
    ///
    /// Where the file cannot be written.
    pub fn sample(&mut self, row: SampleRow) -> Result<(), RecordsError> {
        let row = Of { run: self.run(), row };
        self.samples.1.push(row).map_err(|error| broken(&self.samples.0, &error))
    }

    /// Adds an event of the run. Panics before the first [`Records::begin_run`].
    ///
    /// # Errors
    ///
    /// Where the file cannot be written.
    pub fn event(&mut self, row: EventRow) -> Result<(), RecordsError> {
        let row = Of { run: self.run(), row };
        self.events.1.push(row).map_err(|error| broken(&self.events.0, &error))
    }

    /// Adds the length of a queue. Panics before the first [`Records::begin_run`].
    ///
    /// # Errors
    ///
    /// Where the file cannot be written.
    pub fn queue(&mut self, row: QueueRow) -> Result<(), RecordsError> {
        let row = Of { run: self.run(), row };
        self.queues.1.push(row).map_err(|error| broken(&self.queues.0, &error))
    }

    /// Adds some air. Panics before the first [`Records::begin_run`].
    ///
    /// # Errors
    ///
    /// Where the file cannot be written.
    pub fn airtime(&mut self, row: AirtimeRow) -> Result<(), RecordsError> {
        let row = Of { run: self.run(), row };
        self.airtime.1.push(row).map_err(|error| broken(&self.airtime.0, &error))
    }

    /// Ends the run with what it came to. Panics before the first [`Records::begin_run`].
    ///
    /// # Errors
    ///
    /// Where the file cannot be written.
    pub fn end_run(&mut self, run: &Run) -> Result<(), RecordsError> {
        for (flow, result) in run.flows.iter().enumerate() {
            let row = FlowRow { flow: flow as u32, result: result.clone() };
            let row = Of { run: self.run(), row };
            self.flows.1.push(row).map_err(|error| broken(&self.flows.0, &error))?;
        }
        Ok(())
    }

    fn run(&self) -> Arc<RunName> {
        self.run.clone().expect("begin_run comes before the rows of a run")
    }

    /// Completes the files and puts them into place.
    ///
    /// # Errors
    ///
    /// Where a file cannot be written; then none is put into place.
    pub fn finish(self, report: &Report) -> Result<(), RecordsError> {
        let Self { manifest, scenario, flows, samples, events, workplace, .. } = self;
        let rows = Rows {
            flows: complete(flows)?,
            samples: complete(samples)?,
            events: complete(events)?,
            queues: complete(self.queues)?,
            airtime: complete(self.airtime)?,
        };
        let (command, pcap) = (manifest.command(), self.captures.is_some());
        let written = Written { command, pcap, manifest: &manifest, rows };
        let json = serde_json::to_string_pretty(&written).expect("strings and numbers");
        text(&workplace, FILES[5], &scenario)?;
        text(&workplace, FILES[6], &(json + "\n"))?;
        text(&workplace, RESULT, &(report.to_json() + "\n"))?;
        workplace.finish(&manifest.version)
    }
}

fn table<R>(
    workplace: &Workplace,
    name: &str,
    columns: &'static [Column<Of<R>>],
) -> Result<Table<R>, RecordsError> {
    let path = workplace.path(name);
    let file = File::create(&path).map_err(|error| cannot(&path, &error))?;
    let writer = TableWriter::new(columns, file).map_err(|error| broken(&path, &error))?;
    Ok((path, writer))
}

fn complete<R>((path, writer): Table<R>) -> Result<u64, RecordsError> {
    let (file, rows) = writer.finish().map_err(|error| broken(&path, &error))?;
    file.sync_all().map_err(|error| cannot(&path, &error))?;
    Ok(rows)
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
