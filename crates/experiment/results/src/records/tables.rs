//! The columns of each Parquet file, and the rows that they are taken from.

use std::borrow::Borrow;
use std::sync::Arc;

use wakeai_connection::Figures;
use wakeai_tables::{Column, Value, columns, figure_columns};

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

impl Borrow<Figures> for Of<SampleRow> {
    fn borrow(&self) -> &Figures {
        &self.row.figures
    }
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

/// The columns with which every table begins.
pub(crate) fn of_run<R>() -> [Column<Of<R>>; 2] {
    [
        Column::new("condition", Value::Text(|of| Some(&of.run.condition))),
        Column::new("repeat", Value::U32(|of| of.run.repeat)),
    ]
}

pub(crate) fn samples() -> Vec<Column<Of<SampleRow>>> {
    let mut columns: Vec<Column<Of<SampleRow>>> = columns! { Of<SampleRow> as of:
        "at_ns" U64(of.row.at_ns),
        "flow" U32(of.row.flow),
        "station" Text(flow_of(&of.run, of.row.flow).map(|flow| &*flow.0)),
        "direction" Text(flow_of(&of.run, of.row.flow).map(|flow| flow.1)),
        "connection" U32(of.row.connection),
    };
    columns.extend(figure_columns());
    columns
}

pub(crate) fn events() -> Vec<Column<Of<EventRow>>> {
    columns! { Of<EventRow> as of:
        "at_ns" U64(of.row.at_ns),
        "flow" U32(of.row.flow),
        "station" Text(flow_of(&of.run, of.row.flow).map(|flow| &*flow.0)),
        "direction" Text(flow_of(&of.run, of.row.flow).map(|flow| flow.1)),
        "connection" U32(of.row.connection),
        "event" Text(Some(of.row.event.name())),
        "value" MaybeU32(of.row.event.value()),
        "cwnd" U32(of.row.cwnd.get()),
    }
}

pub(crate) fn flows() -> Vec<Column<Of<FlowRow>>> {
    let mut columns = vec![Column::new("flow", Value::U32(|of: &Of<FlowRow>| of.row.flow))];
    columns.extend(crate::columns::flows());
    columns
}

pub(crate) fn goodput() -> Vec<Column<Of<GoodputRow>>> {
    columns! { Of<GoodputRow> as of:
        "at_ns" U64(of.row.at_ns),
        "flow" U32(of.row.flow),
        "station" Text(flow_of(&of.run, of.row.flow).map(|flow| &*flow.0)),
        "direction" Text(flow_of(&of.run, of.row.flow).map(|flow| flow.1)),
        "interval_ns" U64(of.row.interval_ns),
        "bytes" U64(of.row.bytes),
        "goodput_mbps" F64(Some(of.row.mbps())),
    }
}

pub(crate) fn queues() -> Vec<Column<Of<QueueRow>>> {
    columns! { Of<QueueRow> as of:
        "at_ns" U64(of.row.at_ns),
        "queue" Text(Some(of.row.queue.into())),
        "station" Text(station_of_queue(of)),
        "packets" U32(of.row.packets),
    }
}

pub(crate) fn airtime() -> Vec<Column<Of<AirtimeRow>>> {
    columns! { Of<AirtimeRow> as of:
        "at_ns" U64(of.row.at_ns),
        "of" Text(Some(of.row.of.into())),
        "station" Text(station_of_air(of)),
        "kind" Text(Some(of.row.kind.into())),
        "air_ns" U64(of.row.air_ns),
    }
}
