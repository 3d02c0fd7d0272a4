//! The columns of a connection's figures.

use wakeai_connection::{CongestionState, Figures};
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
        Column::new("ssthresh", Value::U32(|row| row.figures().ssthresh.get())),
        Column::new("srtt_us", Value::U32(|row| micros(row.figures().smoothed_rtt))),
        Column::new("rtt_us", Value::U32(|row| micros(row.figures().latest_rtt))),
        Column::new("min_rtt_us", Value::U32(|row| micros(row.figures().min_rtt))),
        Column::new("state", Value::Text(|row| Some(row.figures().congestion_state.name()))),
        Column::new("packets_out", Value::U32(|row| row.figures().packets_out.get())),
        Column::new("sacked", Value::U32(|row| row.figures().sacked_out.get())),
        Column::new("lost", Value::U32(|row| row.figures().lost_out.get())),
        Column::new("retransmitted", Value::U32(|row| row.figures().retrans_out.get())),
        Column::new("send_queue", Value::U32(|row| clamped(row.figures().send_queue.get()))),
        Column::new("delivered", Value::U64(|row| row.figures().delivered)),
        Column::new("pacing", Value::U64(|row| bytes(row.figures().pacing_rate).unwrap_or(0))),
        Column::new("k_ms", Value::F64(|row| k_ms(row.figures()))),
        Column::new("delivery_rate", Value::MaybeU64(|row| bytes(row.figures().delivery_rate))),
        Column::new(
            "application_limited",
            Value::U32(|row| row.figures().application_limited.into()),
        ),
        Column::new("mss", Value::U32(|row| clamped(row.figures().mss.get()))),
        Column::new("interface", Value::U32(|row| row.figures().interface)),
    ]
}

/// The figures in row `row` of the group. The result is `None` if the group lacks a column of the figures, or if a
/// value is not valid for its column. Times are exact to the microsecond, and rates to the byte per second.
pub fn figures_of(group: &Group, row: usize) -> Option<Figures> {
    let integer = |name| group.u64(name, row).ok().flatten();
    let small = |name| integer(name).and_then(|value| u32::try_from(value).ok());
    let segments = |name| small(name).map(Segments::new);
    let time = |name| small(name).map(|us| (us != 0).then(|| Duration::from_micros(us.into())));
    let rate = |bytes: u64| Rate::from_bps(bytes.saturating_mul(8));
    let state = group.text("state", row).ok()??;
    let k_ms = group.f64("k_ms", row).ok()?;
    Some(Figures {
        cwnd: segments("cwnd")?,
        ssthresh: segments("ssthresh")?,
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
        application_limited: integer("application_limited")? != 0,
        pacing_rate: Some(rate(integer("pacing")?)).filter(|rate| *rate != Rate::ZERO),
        k: k_ms.map(|ms| Duration::from_micros((ms * 1e3).round() as u64)),
        mss: Bytes::new(integer("mss")?),
        interface: small("interface")?,
    })
}

fn bytes(rate: Option<Rate>) -> Option<u64> {
    rate.map(Rate::bytes_per_second)
}

fn k_ms(figures: &Figures) -> Option<f64> {
    Some(f64::from(clamped(figures.k?.as_micros())) / 1e3)
}

/// The duration in microseconds; 0 if nothing was measured.
fn micros(span: Option<Duration>) -> u32 {
    clamped(span.map_or(0, Duration::as_micros))
}

fn clamped(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
