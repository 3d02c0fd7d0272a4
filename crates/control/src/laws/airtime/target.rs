//! The RTT growth to aim at.

use wakeai_units::{Bytes, Duration, Rate};

use super::AirtimeKnobs;
use crate::Observation;

/// The longest PPDU (802.11-2020 table 19-25, `aPPDUMaxTime`) and the largest A-MPDU of 802.11n.
const LONGEST_PPDU: Duration = Duration::from_micros(5_484);
const LARGEST_AMPDU: Bytes = Bytes::new(65_535);
/// What a turn costs beside its data: contention, preamble, SIFS, acknowledgement.
const TURN_OVERHEAD: Duration = Duration::from_micros(300);
/// The ACKs of what waits may fill this part of the access point's buffer, percent.
const ACK_BUFFER_PERCENT: u64 = 70;
/// Never aimed at less: a tick is too long to hold it.
const LEAST: Duration = Duration::from_millis(5);
/// 802.11a and g, Mbit/s: frames go one by one there.
const SINGLE_FRAME_RATES: [u64; 8] = [6, 9, 12, 18, 24, 36, 48, 54];

/// So much that every station has a full aggregate waiting when its turn comes: some rounds of all
/// stations' longest turns and the access point's. But never so much that the ACKs of what waits
/// fill more than a part of the access point's buffer: dropped ACKs cost more than short aggregates.
///
/// `total` is what all senders deliver.
pub(super) fn queue(knobs: &AirtimeKnobs, seen: &Observation, total: Rate) -> Duration {
    let rounds = u64::from(knobs.queue_rounds_percent);
    let full_aggregates = round(seen).mul_div(rounds, 100).unwrap_or(Duration::MAX);
    let target = full_aggregates.clamp(knobs.queue_min, knobs.queue_max.max(knobs.queue_min));
    target.min(ack_buffer(seen, total)).max(LEAST)
}

fn ack_buffer(seen: &Observation, total: Rate) -> Duration {
    let acks = u64::from(seen.access_point_buffer) * ACK_BUFFER_PERCENT / 100;
    let segments = acks.saturating_mul(u64::from(seen.segments_per_ack));
    let acknowledged = Bytes::new(seen.mss().get().saturating_mul(segments));
    total.time_for(acknowledged).unwrap_or(Duration::MAX)
}

/// A turn of everybody who sends, and one of the access point, which answers the slowest as well:
/// the turns of slow peers are what a fast station waits for.
fn round(seen: &Observation) -> Duration {
    let own = longest_turn(seen.own.link_rate);
    let sending = seen.peers.iter().filter(|peer| peer.sending);
    let turns = sending.map(|peer| peer.link_rate.map_or(own, |rate| longest_turn(Some(rate))));
    let (count, sum, longest) =
        turns.fold((1, own, own), |(n, sum, longest), turn| (n + 1, sum + turn, longest.max(turn)));
    // Senders that are counted but no longer, or not yet, heard.
    let unheard = u64::from(seen.senders).saturating_sub(count);
    sum + longest + own * unheard
}

/// How long a station at this PHY rate holds the air at most.
fn longest_turn(link_rate: Option<Rate>) -> Duration {
    let aggregate = link_rate.and_then(|rate| rate.time_for(LARGEST_AMPDU));
    aggregate.map_or(LONGEST_PPDU, |time| time.min(LONGEST_PPDU)) + TURN_OVERHEAD
}

/// What one turn of this station carries at most; `None` where it does not aggregate, or its PHY rate is
/// not known.
pub(super) fn aggregate(link_rate: Option<Rate>) -> Option<Bytes> {
    let rate = link_rate?;
    let single = SINGLE_FRAME_RATES.iter().any(|mbps| rate == Rate::from_mbps(*mbps));
    (!single).then(|| rate.bytes_in(LONGEST_PPDU).min(LARGEST_AMPDU))
}
