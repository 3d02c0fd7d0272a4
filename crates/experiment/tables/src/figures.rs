//! The columns of a connection's figures.

use std::borrow::Borrow;

use wakeai_connection::{CongestionState, Figures, INFINITE_SSTHRESH};
use wakeai_units::{Bytes, Duration, Rate, Segments};

use crate::reader::Group;
use crate::{Column, columns};

/// The columns of the figures. `docs/reference/records.md` describes each.
pub fn figure_columns<R: Borrow<Figures>>() -> Vec<Column<R>> {
    columns! { Figures as figures:
        "cwnd" U32(figures.cwnd.get()),
        "ssthresh" MaybeU32(ssthresh(figures)),
        "srtt_us" MaybeU32(micros(figures.smoothed_rtt)),
        "rtt_us" MaybeU32(micros(figures.latest_rtt)),
        "min_rtt_us" MaybeU32(micros(figures.min_rtt)),
        "state" Text(Some(figures.congestion_state.name())),
        "packets_out" U32(figures.packets_out.get()),
        "sacked" U32(figures.sacked_out.get()),
        "lost" U32(figures.lost_out.get()),
        "retransmitted" U32(figures.retrans_out.get()),
        "send_queue" U32(clamped(figures.send_queue.get())),
        "delivered" U64(figures.delivered),
        "pacing" MaybeU64(bytes(figures.pacing_rate)),
        "k_ms" F64(k_ms(figures)),
        "delivery_rate" MaybeU64(bytes(figures.delivery_rate)),
        "application_limited" MaybeU32(
            figures.delivery_rate.map(|_| figures.application_limited.into())
        ),
        "mss" U32(clamped(figures.mss.get())),
        "interface" MaybeU32(Some(figures.interface).filter(|index| *index != 0)),
    }
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
