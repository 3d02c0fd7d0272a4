//! Makes readings of the records of an experiment, as simulator and lab write them with `--out`.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use wakeai_connection::{Bounds, EventKind};
use wakeai_results::records;
use wakeai_tables::{Group, TableError, TableReader, figures_of};
use wakeai_units::{Bytes, Duration, Instant, Rate};

use super::{ReplayError, each_row};
use crate::reading::{ConnectionId, End, Events, Reading, SeenConnection, Texts};

/// The run of an experiment that is replayed.
#[derive(Clone, Debug, Default)]
pub struct RunChoice {
    /// The name of its condition; `None`: the first.
    pub condition: Option<String>,
    /// The number of its repeat, from 0; `None`: the first.
    pub repeat: Option<u32>,
}

/// The time between two readings.
const INTERVAL: Duration = Duration::from_secs(1);

/// Whether the directory has the records of an experiment.
pub(super) fn is_there(directory: &Path) -> bool {
    directory.join("samples.parquet").is_file()
}

/// One reading for each second of the run, up to the second of its last sample.
pub(super) fn readings(
    directory: &Path,
    choice: &RunChoice,
) -> Result<Vec<Arc<Reading>>, ReplayError> {
    let (run, flows) = run(directory, choice)?;
    let mut second = Second { flows, ..Second::default() };
    let mut events = Rows::open(&directory.join("events.parquet"), &run)?;
    let mut samples = Rows::open(&directory.join("samples.parquet"), &run)?;
    let mut readings = Vec::new();
    let mut end = Instant::ZERO + INTERVAL;
    // Samples and events are in the order of their times.
    loop {
        let (event, sample) = (events.at()?, samples.at()?);
        let Some(next) = event.into_iter().chain(sample).min() else { break };
        while next > end {
            readings.push(Arc::new(second.reading(end)));
            end += INTERVAL;
        }
        if sample == Some(next) {
            second.sample(samples.group(), samples.row)?;
            samples.row += 1;
        } else {
            second.event(events.group(), events.row)?;
            events.row += 1;
        }
    }
    readings.push(Arc::new(second.reading(end)));
    Ok(readings)
}

/// The name of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Run {
    condition: String,
    repeat: u64,
}

/// A flow of a run.
#[derive(Clone, Debug, Default)]
struct RunFlow {
    station: Arc<str>,
    direction: String,
    algorithm: Arc<str>,
}

/// The chosen run, and its flows by index.
fn run(directory: &Path, choice: &RunChoice) -> Result<(Run, BTreeMap<u64, RunFlow>), ReplayError> {
    let path = directory.join("flows.parquet");
    let (mut names, mut chosen, mut flows) = (Vec::new(), None, BTreeMap::new());
    let mut texts = Texts::default();
    each_row(&path, records::SCHEMA, |group, row| {
        let run = run_of(group, row)?;
        let name = format!("{}-{}", run.condition, run.repeat);
        if !names.contains(&name) {
            names.push(name);
        }
        let fits = choice.condition.as_ref().is_none_or(|name| *name == run.condition)
            && choice.repeat.is_none_or(|repeat| u64::from(repeat) == run.repeat);
        if fits && *chosen.get_or_insert_with(|| run.clone()) == run {
            let text = |name| group.text(name, row).map(Option::unwrap_or_default);
            let flow = RunFlow {
                station: texts.share(text("station")?),
                direction: text("direction")?.to_owned(),
                algorithm: texts.share(text("algorithm")?),
            };
            flows.insert(integer(group, "flow", row)?, flow);
        }
        Ok(())
    })?;
    match chosen {
        Some(run) => Ok((run, flows)),
        None => Err(ReplayError::NoSuchRun { path: directory.to_owned(), runs: names.join(", ") }),
    }
}

fn run_of(group: &Group, row: usize) -> Result<Run, TableError> {
    let condition = group.text("condition", row)?.ok_or_else(|| group.lacks("condition"))?;
    Ok(Run { condition: condition.to_owned(), repeat: integer(group, "repeat", row)? })
}

fn integer(group: &Group, column: &str, row: usize) -> Result<u64, TableError> {
    group.u64(column, row)?.ok_or_else(|| group.lacks(column))
}

/// The rows of one run in a file, one after another.
struct Rows<'a> {
    table: TableReader,
    run: &'a Run,
    group: Option<Group>,
    row: usize,
}

impl<'a> Rows<'a> {
    fn open(path: &Path, run: &'a Run) -> Result<Self, TableError> {
        let table = TableReader::open(path)?.expect(records::SCHEMA)?;
        Ok(Self { table, run, group: None, row: 0 })
    }

    /// The time of the present row; `None` after the last row of the run.
    fn at(&mut self) -> Result<Option<Instant>, TableError> {
        loop {
            match &self.group {
                Some(group) if self.row < group.rows() => {
                    if run_of(group, self.row)? == *self.run {
                        return integer(group, "at_ns", self.row)
                            .map(Instant::from_nanos)
                            .map(Some);
                    }
                    self.row += 1;
                }
                _ => {
                    self.group = self.table.next_group()?;
                    self.row = 0;
                    if self.group.is_none() {
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// The group of the present row.
    fn group(&self) -> &Group {
        self.group.as_ref().expect("`at` has found a row")
    }
}

/// The state of all connections of the run at the end of a second.
#[derive(Debug, Default)]
struct Second {
    flows: BTreeMap<u64, RunFlow>,
    connections: BTreeMap<ConnectionId, FlowState>,
}

/// The state of a connection of the run.
#[derive(Debug)]
struct FlowState {
    connection: SeenConnection,
    /// Segments delivered at the previous reading.
    delivered: u64,
}

impl Second {
    fn state(&mut self, group: &Group, row: usize) -> Result<&mut FlowState, TableError> {
        let flow = integer(group, "flow", row)?;
        let id = ConnectionId { netns: flow, cookie: integer(group, "connection", row)? };
        let named = self.flows.get(&flow);
        let begin = || {
            let RunFlow { station, direction, algorithm } = named.cloned().unwrap_or_default();
            let (here, there) = (End::Named(Arc::clone(&station)), End::Named("server".into()));
            let is_down = direction == "down";
            let (local, remote) = if is_down { (there, here) } else { (here, there) };
            let connection = SeenConnection {
                id,
                namespace: "".into(),
                owner: station,
                pid: None,
                local,
                remote,
                algorithm,
                figures: wakeai_connection::Figures::default(),
                bounds: Bounds::NONE,
                sent: None,
                received: None,
                limit: None,
                events: Some(Events::default()),
                retransmits: 0,
            };
            FlowState { connection, delivered: 0 }
        };
        Ok(self.connections.entry(id).or_insert_with(begin))
    }

    fn sample(&mut self, group: &Group, row: usize) -> Result<(), TableError> {
        let figures = figures_of(group, row).ok_or_else(|| group.lacks("cwnd … interface"))?;
        self.state(group, row)?.connection.figures = figures;
        Ok(())
    }

    fn event(&mut self, group: &Group, row: usize) -> Result<(), TableError> {
        let name = group.text("event", row)?.ok_or_else(|| group.lacks("event"))?;
        if name == "reservation" {
            return Ok(()); // a reservation belongs to the flow, which may have no connection yet
        }
        let state = self.state(group, row)?;
        if name == EventKind::Retransmit.name() {
            state.connection.retransmits += 1;
        } else if name == "error"
            && let (Some(events), code @ 1..=4) =
                (&mut state.connection.events, integer(group, "value", row)?)
        {
            events.counts[code as usize - 1] += 1;
        } else if name == EventKind::Closed.name() {
            let id = state.connection.id;
            self.connections.remove(&id);
        }
        Ok(())
    }

    /// The reading at the end of a second.
    fn reading(&mut self, at: Instant) -> Reading {
        for state in self.connections.values_mut() {
            let FlowState { connection, delivered } = state;
            let figures = &connection.figures;
            let segments = figures.delivered.saturating_sub(*delivered);
            let bytes = Bytes::new(segments.saturating_mul(figures.mss.get()));
            connection.sent = Some(Rate::of(bytes, INTERVAL));
            *delivered = figures.delivered;
        }
        let connections = self.connections.values().map(|state| state.connection.clone()).collect();
        Reading { at, connections, ..Reading::default() }
    }
}
