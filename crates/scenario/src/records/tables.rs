//! The columns of each Parquet file.

use std::sync::Arc;

use wakeai_units::{Duration, Rate};

use super::parquet::{Column, Value};
use super::rows::{AirOf, AirtimeRow, EventRow, Queue, QueueRow, SampleRow};
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

/// The duration in microseconds; 0 if nothing was measured.
fn micros(span: Option<Duration>) -> u32 {
    clamped(span.map_or(0, Duration::as_micros))
}

fn clamped(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

const fn column<R>(name: &'static str, value: Value<R>) -> Column<R> {
    Column { name, value }
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

pub(crate) static SAMPLES: [Column<Of<SampleRow>>; 21] = [
    column("condition", Value::Text(|of| Some(&of.run.condition))),
    column("repeat", Value::U32(|of| of.run.repeat)),
    column("at_ns", Value::U64(|of| of.row.at_ns)),
    column("flow", Value::U32(|of| of.row.flow)),
    column("station", Value::Text(|of| flow_of(&of.run, of.row.flow).map(|flow| &*flow.0))),
    column("direction", Value::Text(|of| flow_of(&of.run, of.row.flow).map(|flow| flow.1))),
    column("connection", Value::U32(|of| of.row.connection)),
    column("cwnd", Value::U32(|of| of.row.figures.cwnd.get())),
    column("ssthresh", Value::U32(|of| of.row.figures.ssthresh.get())),
    column("srtt_us", Value::U32(|of| micros(of.row.figures.smoothed_rtt))),
    column("rtt_us", Value::U32(|of| micros(of.row.figures.latest_rtt))),
    column("min_rtt_us", Value::U32(|of| micros(of.row.figures.min_rtt))),
    column("state", Value::Text(|of| Some(of.row.figures.congestion_state.name()))),
    column("packets_out", Value::U32(|of| of.row.figures.packets_out.get())),
    column("sacked", Value::U32(|of| of.row.figures.sacked_out.get())),
    column("lost", Value::U32(|of| of.row.figures.lost_out.get())),
    column("retransmitted", Value::U32(|of| of.row.figures.retrans_out.get())),
    column("send_queue", Value::U32(|of| clamped(of.row.figures.send_queue.get()))),
    column("delivered", Value::U64(|of| of.row.figures.delivered)),
    column("pacing", Value::U64(|of| of.row.figures.pacing_rate.map_or(0, Rate::bytes_per_second))),
    column("k_ms", Value::F64(|of| Some(f64::from(clamped(of.row.figures.k?.as_micros())) / 1e3))),
];

pub(crate) static EVENTS: [Column<Of<EventRow>>; 10] = [
    column("condition", Value::Text(|of| Some(&of.run.condition))),
    column("repeat", Value::U32(|of| of.run.repeat)),
    column("at_ns", Value::U64(|of| of.row.at_ns)),
    column("flow", Value::U32(|of| of.row.flow)),
    column("station", Value::Text(|of| flow_of(&of.run, of.row.flow).map(|flow| &*flow.0))),
    column("direction", Value::Text(|of| flow_of(&of.run, of.row.flow).map(|flow| flow.1))),
    column("connection", Value::U32(|of| of.row.connection)),
    column("event", Value::Text(|of| Some(of.row.event.name()))),
    column("value", Value::U32(|of| of.row.event.value())),
    column("cwnd", Value::U32(|of| of.row.cwnd.get())),
];

pub(crate) static FLOWS: [Column<Of<FlowRow>>; 13] = [
    column("condition", Value::Text(|of| Some(&of.run.condition))),
    column("repeat", Value::U32(|of| of.run.repeat)),
    column("flow", Value::U32(|of| of.row.flow)),
    column("station", Value::Text(|of| Some(&of.row.result.station))),
    column("direction", Value::Text(|of| Some(&of.row.result.direction))),
    column("kind", Value::Text(|of| Some(&of.row.result.kind))),
    column("algorithm", Value::Text(|of| of.row.result.algorithm.as_deref())),
    column("bytes", Value::U64(|of| of.row.result.bytes)),
    column("goodput_mbps", Value::F64(|of| Some(of.row.result.goodput_mbps))),
    column("completion_s", Value::F64(|of| of.row.result.completion_s)),
    column("retransmits", Value::U64(|of| of.row.result.retransmits)),
    column("timeouts", Value::U64(|of| of.row.result.timeouts)),
    column("avr", Value::F64(|of| of.row.result.avr)),
];

pub(crate) static QUEUES: [Column<Of<QueueRow>>; 6] = [
    column("condition", Value::Text(|of| Some(&of.run.condition))),
    column("repeat", Value::U32(|of| of.run.repeat)),
    column("at_ns", Value::U64(|of| of.row.at_ns)),
    column("queue", Value::Text(|of| Some(of.row.queue.name()))),
    column("station", Value::Text(station_of_queue)),
    column("packets", Value::U32(|of| of.row.packets)),
];

pub(crate) static AIRTIME: [Column<Of<AirtimeRow>>; 7] = [
    column("condition", Value::Text(|of| Some(&of.run.condition))),
    column("repeat", Value::U32(|of| of.run.repeat)),
    column("at_ns", Value::U64(|of| of.row.at_ns)),
    column("of", Value::Text(|of| Some(of.row.of.name()))),
    column("station", Value::Text(station_of_air)),
    column("kind", Value::Text(|of| Some(of.row.kind.name()))),
    column("air_ns", Value::U64(|of| of.row.air_ns)),
];
