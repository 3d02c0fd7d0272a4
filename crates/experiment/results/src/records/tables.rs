//! The columns of each Parquet file.

use std::borrow::Borrow;
use std::sync::Arc;

use wakeai_connection::Figures;
use wakeai_tables::{Column, HasFigures, Value, figure_columns};

use super::rows::{AirOf, AirtimeRow, EventRow, GoodputRow, Queue, QueueRow, SampleRow};
use crate::result::FlowResult;

/// The names that the rows of a run use.
#[derive(Debug)]
pub(crate) struct RunName {
    pub(crate) condition: String,
    pub(crate) repeat: u32,
    /// The station and the direction of every flow.
    pub(crate) flows: Vec<(String, &'static str)>,
    /// The names of the stations.
    pub(crate) stations: Vec<String>,
}

/// A row and the run that it belongs to.
pub(crate) struct Of<R> {
    pub(crate) run: Arc<RunName>,
    pub(crate) row: R,
}

/// A flow's result and its index.
pub(crate) struct FlowRow {
    pub(crate) flow: u32,
    pub(crate) result: FlowResult,
}

impl Borrow<FlowResult> for Of<FlowRow> {
    fn borrow(&self) -> &FlowResult {
        &self.row.result
    }
}

impl HasFigures for Of<SampleRow> {
    fn figures(&self) -> &Figures {
        &self.row.figures
    }
}

const fn column<R>(name: &'static str, value: Value<R>) -> Column<R> {
    Column::new(name, value)
}

fn flow_of(run: &RunName, flow: u32) -> Option<&(String, &'static str)> {
    run.flows.get(flow as usize)
}

/// The name of the station with this index.
fn station_of(run: &RunName, station: Option<u32>) -> Option<&str> {
    run.stations.get(station? as usize).map(String::as_str)
}

fn station_of_queue(of: &Of<QueueRow>) -> Option<&str> {
    let station = match of.row.queue {
        Queue::Station(station) => Some(station),
        _ => None,
    };
    station_of(&of.run, station)
}

fn station_of_air(of: &Of<AirtimeRow>) -> Option<&str> {
    let station = match of.row.of {
        AirOf::Up(station) | AirOf::Down(station) => Some(station),
        AirOf::AccessPoint | AirOf::All => None,
    };
    station_of(&of.run, station)
}

pub(crate) fn samples() -> Vec<Column<Of<SampleRow>>> {
    let mut columns: Vec<Column<Of<SampleRow>>> = vec![
        column("condition", Value::Text(|of| Some(&of.run.condition))),
        column("repeat", Value::U32(|of| of.run.repeat)),
        column("at_ns", Value::U64(|of| of.row.at_ns)),
        column("flow", Value::U32(|of| of.row.flow)),
        column("station", Value::Text(|of| flow_of(&of.run, of.row.flow).map(|flow| &*flow.0))),
        column("direction", Value::Text(|of| flow_of(&of.run, of.row.flow).map(|flow| flow.1))),
        column("connection", Value::U32(|of| of.row.connection)),
    ];
    columns.extend(figure_columns());
    columns
}

pub(crate) fn events() -> Vec<Column<Of<EventRow>>> {
    vec![
        column("condition", Value::Text(|of| Some(&of.run.condition))),
        column("repeat", Value::U32(|of| of.run.repeat)),
        column("at_ns", Value::U64(|of| of.row.at_ns)),
        column("flow", Value::U32(|of| of.row.flow)),
        column("station", Value::Text(|of| flow_of(&of.run, of.row.flow).map(|flow| &*flow.0))),
        column("direction", Value::Text(|of| flow_of(&of.run, of.row.flow).map(|flow| flow.1))),
        column("connection", Value::U32(|of| of.row.connection)),
        column("event", Value::Text(|of| Some(of.row.event.name()))),
        column("value", Value::MaybeU32(|of| of.row.event.value())),
        column("cwnd", Value::U32(|of| of.row.cwnd.get())),
    ]
}

pub(crate) fn flows() -> Vec<Column<Of<FlowRow>>> {
    let mut columns: Vec<Column<Of<FlowRow>>> = vec![
        column("condition", Value::Text(|of| Some(&of.run.condition))),
        column("repeat", Value::U32(|of| of.run.repeat)),
        column("flow", Value::U32(|of| of.row.flow)),
    ];
    columns.extend(crate::columns::flows());
    columns
}

pub(crate) fn goodput() -> Vec<Column<Of<GoodputRow>>> {
    vec![
        column("condition", Value::Text(|of| Some(&of.run.condition))),
        column("repeat", Value::U32(|of| of.run.repeat)),
        column("at_ns", Value::U64(|of| of.row.at_ns)),
        column("flow", Value::U32(|of| of.row.flow)),
        column("station", Value::Text(|of| flow_of(&of.run, of.row.flow).map(|flow| &*flow.0))),
        column("direction", Value::Text(|of| flow_of(&of.run, of.row.flow).map(|flow| flow.1))),
        column("interval_ns", Value::U64(|of| of.row.interval_ns)),
        column("bytes", Value::U64(|of| of.row.bytes)),
        column("goodput_mbps", Value::F64(|of| Some(of.row.mbps()))),
    ]
}

pub(crate) fn queues() -> Vec<Column<Of<QueueRow>>> {
    vec![
        column("condition", Value::Text(|of| Some(&of.run.condition))),
        column("repeat", Value::U32(|of| of.run.repeat)),
        column("at_ns", Value::U64(|of| of.row.at_ns)),
        column("queue", Value::Text(|of| Some(of.row.queue.name()))),
        column("station", Value::Text(station_of_queue)),
        column("packets", Value::U32(|of| of.row.packets)),
    ]
}

pub(crate) fn airtime() -> Vec<Column<Of<AirtimeRow>>> {
    vec![
        column("condition", Value::Text(|of| Some(&of.run.condition))),
        column("repeat", Value::U32(|of| of.run.repeat)),
        column("at_ns", Value::U64(|of| of.row.at_ns)),
        column("of", Value::Text(|of| Some(of.row.of.name()))),
        column("station", Value::Text(station_of_air)),
        column("kind", Value::Text(|of| Some(of.row.kind.name()))),
        column("air_ns", Value::U64(|of| of.row.air_ns)),
    ]
}
