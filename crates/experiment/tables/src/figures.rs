//! The columns of a connection's figures.

use wakeai_connection::{CongestionState, Figures, INFINITE_SSTHRESH};
use wakeai_units::{Bytes, Duration, Rate, Segments};

use crate::reader::Group;
use crate::writer::{Column, Value};

/// A row that has the figures of a connection.
pub trait HasFigures {
    /// The figures.
    fn figures(&self) -> &Figures;
}

/// The columns of the figures. `docs/reference/records.md` describes each.
pub fn figure_columns<R: HasFigures>() -> Vec<Column<R>> {
    vec![
        Column::new("cwnd", Value::U32(|row| row.figures().cwnd.get())),
        Column::new("ssthresh", Value::MaybeU32(|row| ssthresh(row.figures()))),
        Column::new("srtt_us", Value::MaybeU32(|row| micros(row.figures().smoothed_rtt))),
        Column::new("rtt_us", Value::MaybeU32(|row| micros(row.figures().latest_rtt))),
        Column::new("min_rtt_us", Value::MaybeU32(|row| micros(row.figures().min_rtt))),
        Column::new("state", Value::Text(|row| Some(row.figures().congestion_state.name()))),
        Column::new("packets_out", Value::U32(|row| row.figures().packets_out.get())),
        Column::new("sacked", Value::U32(|row| row.figures().sacked_out.get())),
        Column::new("lost", Value::U32(|row| row.figures().lost_out.get())),
        Column::new("retransmitted", Value::U32(|row| row.figures().retrans_out.get())),
        Column::new("send_queue", Value::U32(|row| clamped(row.figures().send_queue.get()))),
        Column::new("delivered", Value::U64(|row| row.figures().delivered)),
        Column::new("pacing", Value::MaybeU64(|row| bytes(row.figures().pacing_rate))),
        Column::new("k_ms", Value::F64(|row| k_ms(row.figures()))),
        Column::new("delivery_rate", Value::MaybeU64(|row| bytes(row.figures().delivery_rate))),
        Column::new(
            "application_limited",
            Value::MaybeU32(|row| {
                let figures = row.figures();
                figures.delivery_rate.map(|_| figures.application_limited.into())
            }),
        ),
        Column::new("mss", Value::U32(|row| clamped(row.figures().mss.get()))),
        Column::new(
            "interface",
            Value::MaybeU32(|row| Some(row.figures().interface).filter(|index| *index != 0)),
        ),
    ]
}

/// The figures in row `row` of the group. The result is `None` if the group lacks a column of the figures, or if a
/// value is not valid for its column. Times are exact to the microsecond, and rates to the byte per second.
pub fn figures_of(group: &Group, row: usize) -> Option<Figures> {
    // The outer `None` is a column that is missing or wrong, the inner one a null.
    let maybe = |name| group.u64(name, row).ok();
    let integer = |name| maybe(name).flatten();
    let maybe_small = |name| match maybe(name)? {
        None => Some(None),
        Some(value) => u32::try_from(value).ok().map(Some),
    };
    let small = |name| maybe_small(name).flatten();
    let segments = |name| small(name).map(Segments::new);
    let time = |name| maybe_small(name).map(|us| us.map(|us| Duration::from_micros(us.into())));
    let rate = |bytes: u64| Rate::from_bps(bytes.saturating_mul(8));
    let state = group.text("state", row).ok()??;
    let k_ms = group.f64("k_ms", row).ok()?;
    Some(Figures {
        cwnd: segments("cwnd")?,
        ssthresh: Segments::new(maybe_small("ssthresh")?.unwrap_or(INFINITE_SSTHRESH)),
        smoothed_rtt: time("srtt_us")?,
        latest_rtt: time("rtt_us")?,
        min_rtt: time("min_rtt_us")?,
        congestion_state: CongestionState::from_name(state)?,
        packets_out: segments("packets_out")?,
        sacked_out: segments("sacked")?,
        lost_out: segments("lost")?,
        retrans_out: segments("retransmitted")?,
        send_queue: Bytes::new(integer("send_queue")?),
        delivered: integer("delivered")?,
        delivery_rate: group.u64("delivery_rate", row).ok()?.map(rate),
        application_limited: maybe("application_limited")?.is_some_and(|limited| limited != 0),
        pacing_rate: maybe("pacing")?.map(rate),
        k: k_ms.map(|ms| Duration::from_micros((ms * 1e3).round() as u64)),
        mss: Bytes::new(integer("mss")?),
        interface: maybe_small("interface")?.unwrap_or(0),
    })
}

fn bytes(rate: Option<Rate>) -> Option<u64> {
    rate.map(Rate::bytes_per_second)
}

fn k_ms(figures: &Figures) -> Option<f64> {
    Some(f64::from(clamped(figures.k?.as_micros())) / 1e3)
}

/// The slow-start threshold, once there is one.
fn ssthresh(figures: &Figures) -> Option<u32> {
    Some(figures.ssthresh.get()).filter(|segments| *segments < INFINITE_SSTHRESH)
}

/// The duration in microseconds.
fn micros(span: Option<Duration>) -> Option<u32> {
    span.map(|span| clamped(span.as_micros()))
}

fn clamped(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
