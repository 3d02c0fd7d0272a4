//! The report on an access point's buffer, from all bursts.

use serde::Serialize;
use wakeai_units::Bytes;

use super::burst::{Accepted, Burst};
use super::reading::BurstReading;
use super::{median, quantile};

/// The largest share of packets that the air itself may lose. With more, losses say nothing about
/// the queue.
const AIR_LOSS: f64 = 0.01;

/// The lengths of IP packets.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// The length in most bursts.
    pub large: Bytes,
    /// The length in the bursts that find out whether the buffer's limit counts packets or bytes.
    pub small: Bytes,
}

/// Median, smallest and largest value of several bursts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// The median.
    pub median: f64,
    /// The smallest value.
    pub min: f64,
    /// The largest value.
    pub max: f64,
    /// The number of bursts.
    pub runs: usize,
}

impl Spread {
    fn from_values(values: &[f64]) -> Option<Self> {
        let at = |share| quantile(values, share);
        Some(Self { median: at(0.5)?, min: at(0.0)?, max: at(1.0)?, runs: values.len() })
    }
}

/// What the limit of the queue counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitUnit {
    /// Packets of any length.
    Packets,
    /// The bytes of the packets.
    Bytes,
    /// The results with large and small packets fit neither kind of limit.
    Unclear,
}

/// How packets are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Drops {
    /// A full queue drops the packets that arrive.
    Tail,
    /// Active queue management (RFC 7567): single packets are dropped before the queue is full.
    Aqm,
    /// The air itself loses so many packets that the queue's drops cannot be told apart.
    Unclear,
}

/// Whether the packets of a sparse flow wait behind those of a burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    /// They do: both flows share one queue.
    Shared,
    /// They do not: each flow has a queue of its own.
    Separate,
    /// The queue was too short to tell.
    Unclear,
}

/// The first drops of active queue management.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FirstDrop {
    /// The number of packets in the queue.
    pub packets: f64,
    /// The queueing delay.
    pub delay_ms: f64,
}

/// The result of the measurement.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BufferReport {
    /// The buffer in packets of `packet_bytes`. With active queue management it is the largest
    /// number of packets that were seen in the queue.
    pub packets: Option<Spread>,
    /// The buffer in bytes of IP packets.
    pub bytes: Option<Spread>,
    /// An independent estimate of the buffer in packets, from the queueing delay and the rate.
    pub packets_by_delay: Option<Spread>,
    /// The length of the large IP packets.
    pub packet_bytes: u64,
    /// The buffer in packets of `small_packet_bytes`.
    pub small_packets: Option<Spread>,
    /// The length of the small IP packets.
    pub small_packet_bytes: u64,
    /// What the buffer's limit counts.
    pub counts: LimitUnit,
    /// How packets are dropped.
    pub drops: Drops,
    /// The queue at its first drop, if `drops` is `aqm`.
    pub first_drop: Option<FirstDrop>,
    /// Whether two flows to the same station share a queue.
    pub flows: Option<Isolation>,
    /// Whether two stations share a queue; `None` without a second station.
    pub stations: Option<Isolation>,
    /// The rate that the air carried, counted in IP packets.
    pub drain_mbps: f64,
    /// The rate that the sender offered meanwhile.
    pub offered_mbps: f64,
    /// The share of packets that were lost while there was no queue.
    pub air_loss: f64,
}

/// The results of the bursts, from which the report is made.
#[derive(Clone, Debug, Default)]
pub(crate) struct BurstResults {
    pub(crate) large: Vec<BurstReading>,
    pub(crate) small: Vec<BurstReading>,
    pub(crate) air_loss: f64,
    pub(crate) per_flow: Option<Isolation>,
    pub(crate) per_station: Option<Isolation>,
}

impl BufferReport {
    pub(crate) fn new(found: &BurstResults, Sizes { large, small }: Sizes) -> Self {
        let BurstResults { air_loss, per_flow, per_station, .. } = *found;
        let gradual = found.large.iter().filter(|reading| is_gradual(reading)).count();
        let drops = match () {
            () if 2 * gradual <= found.large.len() => Drops::Tail,
            () if air_loss > AIR_LOSS => Drops::Unclear,
            () => Drops::Aqm,
        };
        let full = |readings: &[BurstReading]| -> Option<Spread> {
            let one = |reading: &BurstReading| match drops {
                Drops::Aqm => Some(reading.most),
                Drops::Tail | Drops::Unclear => reading.packets,
            };
            Spread::from_values(&readings.iter().filter_map(one).collect::<Vec<_>>())
        };
        let (packets, small_packets) = (full(&found.large), full(&found.small));
        let bytes = packets.map(|Spread { median, min, max, runs }| {
            let in_bytes = |packets: f64| packets * large.get() as f64;
            Spread { median: in_bytes(median), min: in_bytes(min), max: in_bytes(max), runs }
        });
        let by_delay: Vec<f64> =
            found.large.iter().filter_map(|one| one.packets_by_delay).collect();
        let mbps = |per_s: fn(&BurstReading) -> f64| {
            median(&found.large, per_s).unwrap_or(0.0) * large.bits() as f64 / 1e6
        };
        Self {
            packets,
            bytes,
            packets_by_delay: Spread::from_values(&by_delay).filter(|_| drops == Drops::Tail),
            packet_bytes: large.get(),
            small_packets,
            small_packet_bytes: small.get(),
            counts: counts(packets, small_packets, large, small, drops),
            drops,
            first_drop: (drops == Drops::Aqm).then(|| first_drop(&found.large)).flatten(),
            flows: per_flow,
            stations: per_station,
            drain_mbps: mbps(|one| one.drain_per_s),
            offered_mbps: mbps(|one| one.offered_per_s),
            air_loss,
        }
    }
}

/// Whether active queue management drops the packets. A full queue would lose all packets that the
/// air does not carry, from the first loss on; active queue management loses fewer at first.
pub(crate) fn is_gradual(reading: &BurstReading) -> bool {
    let excess = 1.0 - reading.drain_per_s / reading.offered_per_s;
    reading.first_loss.is_some_and(|first| first.then_lost < excess / 2.0)
}

fn first_drop(readings: &[BurstReading]) -> Option<FirstDrop> {
    let first: Vec<_> = readings.iter().filter_map(|reading| reading.first_loss).collect();
    let (packets, delay_ms) =
        (median(&first, |loss| loss.waiting), median(&first, |loss| loss.delay_ms));
    Some(FirstDrop { packets: packets?, delay_ms: delay_ms? })
}

/// Compares the buffer in small packets with that in large ones. Their ratio is 1 if the limit
/// counts packets. It is the ratio of the packets' lengths if the limit counts bytes. On a
/// logarithmic scale the middle third between these two values is unclear.
fn counts(
    large: Option<Spread>,
    small: Option<Spread>,
    long: Bytes,
    short: Bytes,
    drops: Drops,
) -> LimitUnit {
    let (Some(large), Some(small), Drops::Tail) = (large, small, drops) else {
        return LimitUnit::Unclear;
    };
    let found = (small.median / large.median).ln() / (long.get() as f64 / short.get() as f64).ln();
    match found {
        found if found.abs() < 1.0 / 3.0 => LimitUnit::Packets,
        found if (found - 1.0).abs() < 1.0 / 3.0 => LimitUnit::Bytes,
        _ => LimitUnit::Unclear,
    }
}

/// A queueing delay below this value may come from a single transmission.
const TELLING_MS: f64 = 5.0;

/// The quantile of the sparse flow's delays that is compared. In a shared queue a sparse packet may
/// leave earlier than the packets before it, because the access point collects the packets of one
/// station for an aggregate. The delays then lie anywhere between none and that of a full queue, and
/// their median is half of it. A single stall of a busy computer must not pass for the queue, so it
/// is not the largest delay either.
const HIGH: f64 = 0.8;

/// Compares the delay of a sparse flow with the delay of the burst beside it, while the queue is
/// full.
pub(crate) fn isolation(reading: &BurstReading, burst: &Burst, sparse: &Burst) -> Isolation {
    let Some(first_loss) = reading.first_loss else { return Isolation::Unclear };
    let (Some(from), Some(until)) = (burst.sent.get(first_loss.number), burst.sent.last()) else {
        return Isolation::Unclear;
    };
    let window = from.as_nanos().cast_signed()..until.as_nanos().cast_signed();
    let delay_ms = |one: &Accepted, base: i64| (one.delay_ns() - base) as f64 / 1e6;
    let delays_ms = |all: &[Accepted], base: i64| -> Vec<f64> {
        let inside = all.iter().filter(|one| window.contains(&one.sent_ns));
        inside.map(|one| delay_ms(one, base)).collect()
    };
    let Some(full) = quantile(&delays_ms(&burst.accepted(), reading.base_ns), 0.5) else {
        return Isolation::Unclear;
    };
    let arrived = sparse.accepted();
    // The smallest delay of the sparse flow is its delay without queueing: its first datagrams met
    // an empty queue. The burst's smallest delay does not serve, because a second station has
    // another clock.
    let base = arrived.iter().map(Accepted::delay_ns).min().unwrap_or(0);
    let delays = delays_ms(&arrived, base);
    let came = delays.len();
    let sent =
        sparse.sent.iter().filter(|at| window.contains(&at.as_nanos().cast_signed())).count();
    match quantile(&delays, HIGH) {
        _ if full < TELLING_MS || sent < 5 => Isolation::Unclear,
        Some(delay) if delay < full / 2.0 && 10 * came >= 8 * sent => Isolation::Separate,
        Some(delay) if delay < full / 2.0 => Isolation::Unclear,
        Some(_) | None => Isolation::Shared,
    }
}
