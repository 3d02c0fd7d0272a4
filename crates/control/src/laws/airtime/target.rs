//! The target queueing delay. In this file a turn is one transmission on the air.

use wakeai_units::{Bytes, Duration, Rate};
use wakeai_wifi::{LEGACY_RATES, LONGEST_PPDU, Standard};

use super::AirtimeKnobs;
use crate::Observation;

/// The largest A-MPDU, as in 802.11n.
const LARGEST_AMPDU: Bytes = Standard::N.longest_ampdu();
/// The time that a turn takes in addition to its data: contention, preamble,
/// SIFS, acknowledgement.
const TURN_OVERHEAD: Duration = Duration::from_micros(300);
/// The ACKs of the waiting segments may fill this part of the access point's buffer, percent.
const ACK_BUFFER_PERCENT: u64 = 80;
/// The least target. The law decides too rarely to hold a shorter queue.
const LEAST: Duration = Duration::from_millis(5);

/// The bottleneck of all senders together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bottleneck {
    Air,
    /// The access point's wired link, or a path beyond it.
    BeyondTheAir,
}

/// The target queueing delay.
///
/// In a round every sending station and the access point have one turn each, with the largest
/// aggregate. So one round passes between two turns of a station. When its turn comes, a full
/// aggregate should be waiting. So the target is a number of rounds. The target is short
/// enough for the ACKs of the waiting segments to fill only a part of the access point's buffer,
/// because lost ACKs cost more than short aggregates.
///
/// `total` is the rate that all senders deliver together. Where the air is not the bottleneck, a
/// queue does not make aggregates larger, and the target is `queue_min`.
pub(super) fn queue(
    knobs: &AirtimeKnobs,
    seen: &Observation,
    total: Rate,
    bottleneck: Bottleneck,
) -> Duration {
    let rounds = u64::from(knobs.queue_rounds_percent);
    let full_aggregates = match bottleneck {
        Bottleneck::Air => round(seen).mul_div(rounds, 100).unwrap_or(Duration::MAX),
        Bottleneck::BeyondTheAir => Duration::ZERO,
    };
    let target = full_aggregates.clamp(knobs.queue_min, knobs.queue_max.max(knobs.queue_min));
    target.min(ack_buffer(seen, total)).max(LEAST)
}

fn ack_buffer(seen: &Observation, total: Rate) -> Duration {
    let acks = u64::from(seen.access_point_buffer) * ACK_BUFFER_PERCENT / 100;
    let segments = acks.saturating_mul(u64::from(seen.segments_per_ack));
    let acknowledged = Bytes::new(seen.mss().get().saturating_mul(segments));
    total.time_for(acknowledged).unwrap_or(Duration::MAX)
}

/// The duration of a round, which has one turn of each sender and one of the access point. The
/// access point's turn is as long as the turn of the slowest station, because the access point also
/// sends to this station.
fn round(seen: &Observation) -> Duration {
    let own = longest_turn(seen.own.link_rate);
    let sending = seen.peers.iter().filter(|peer| peer.announced.sending);
    let turns =
        sending.map(|peer| peer.announced.link_rate.map_or(own, |rate| longest_turn(Some(rate))));
    let (count, sum, longest) =
        turns.fold((1, own, own), |(n, sum, longest), turn| (n + 1, sum + turn, longest.max(turn)));
    // `senders` may be larger than the number of sending peers, for example because a peer has just
    // left.
    let unheard = u64::from(seen.senders).saturating_sub(count);
    sum + longest + own * unheard
}

/// The longest turn of a station at this PHY rate. At an unknown rate the turn has the longest
/// PPDU.
fn longest_turn(link_rate: Option<Rate>) -> Duration {
    let aggregate = link_rate.and_then(|rate| rate.time_for(LARGEST_AMPDU));
    aggregate.map_or(LONGEST_PPDU, |time| time.min(LONGEST_PPDU)) + TURN_OVERHEAD
}

/// The bytes of a station's largest aggregate; `None` where the station does not aggregate, or
/// where its PHY rate is not known.
pub(super) fn aggregate(link_rate: Option<Rate>) -> Option<Bytes> {
    let rate = link_rate?;
    // These are the PHY rates of 802.11a and g, whose stations send frames one by one.
    let single = LEGACY_RATES.contains(&rate);
    (!single).then(|| rate.bytes_in(LONGEST_PPDU).min(LARGEST_AMPDU))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::{announcement, peer};
    use crate::{Announcement, PeerView, StationView};

    /// Knobs for a target of `percent` percent of a round, from 0 to 10 s.
    fn rounds(percent: u32) -> AirtimeKnobs {
        AirtimeKnobs {
            queue_rounds_percent: percent,
            queue_min: Duration::ZERO,
            queue_max: Duration::from_secs(10),
        }
    }

    /// A station at the PHY rate `own` beside peers at the PHY rates `peers`, Mbit/s.
    fn seen(own: Option<u64>, peers: &[Option<u64>]) -> Observation {
        let peers = (1..).zip(peers).map(|(id, link)| {
            let link_rate = link.map(Rate::from_mbps);
            peer(id, Announcement { link_rate, ..announcement(10) })
        });
        let peers: Vec<PeerView> = peers.collect();
        let link_rate = own.map(Rate::from_mbps);
        Observation {
            senders: peers.len() as u32 + 1,
            peers,
            own: StationView { link_rate, connections: Vec::new() },
            ..Observation::default()
        }
    }

    fn micros(knobs: &AirtimeKnobs, seen: &Observation, total_mbps: u64) -> u64 {
        queue(knobs, seen, Rate::from_mbps(total_mbps), Bottleneck::Air).as_micros()
    }

    #[test]
    fn a_round_is_a_turn_of_each_sender_and_one_of_the_access_point() {
        assert_eq!(micros(&rounds(100), &seen(Some(65), &[]), 1), 2 * 5_784);
        assert_eq!(micros(&rounds(300), &seen(Some(65), &[]), 1), 3 * 2 * 5_784);
        assert_eq!(micros(&rounds(200), &seen(Some(65), &[Some(65); 3]), 1), 2 * 5 * 5_784);
        // 65,535 bytes at 390 Mbit/s take 1,344 us.
        assert_eq!(micros(&rounds(1_000), &seen(Some(390), &[]), 1), 10 * 2 * 1_644 + 6);
    }

    #[test]
    fn a_slow_peer_lengthens_its_own_and_the_access_point_s_turn() {
        assert_eq!(micros(&rounds(100), &seen(Some(390), &[Some(13)]), 1), 1_644 + 2 * 5_784);
    }

    #[test]
    fn an_unknown_turn_is_as_long_as_the_own() {
        let fast = 1_644;
        assert_eq!(micros(&rounds(100), &seen(Some(390), &[None, None]), 1) / 4, fast);
        let unheard = Observation { senders: 9, ..seen(Some(390), &[]) };
        assert_eq!(micros(&rounds(100), &unheard, 1) / 10, fast);
        let idle = peer(1, Announcement { sending: false, ..announcement(10) });
        let beside_idle = Observation { peers: vec![idle], ..seen(Some(65), &[]) };
        assert_eq!(
            micros(&rounds(100), &beside_idle, 1),
            2 * 5_784,
            "a peer that does not send has no turn"
        );
        assert_eq!(micros(&rounds(100), &seen(None, &[]), 1), 2 * 5_784, "unknown own PHY rate");
    }

    #[test]
    fn acks_fill_at_most_80_percent_of_the_access_point_s_buffer() {
        // 80 % of the buffer is 240 ACKs. They acknowledge two segments each, together
        // 695,040 bytes.
        let alone = seen(Some(65), &[]);
        for (total, micros_of_acks) in [(100, 55_603), (200, 27_801), (400, 13_900)] {
            assert_eq!(micros(&rounds(1_000), &alone, total), micros_of_acks);
        }
        let small = Observation { access_point_buffer: 100, ..alone.clone() };
        assert_eq!(micros(&rounds(1_000), &small, 100), 18_534);
        let each = Observation { segments_per_ack: 1, ..alone.clone() };
        assert_eq!(micros(&rounds(1_000), &each, 100), 27_801);
        let least = AirtimeKnobs { queue_min: Duration::from_millis(40), ..rounds(100) };
        assert_eq!(
            micros(&least, &alone, 200),
            27_801,
            "the ACKs limit the target even below queue_min"
        );
    }

    #[test]
    fn beyond_the_air_the_target_is_queue_min() {
        let aimed = |bottleneck| {
            let seen = seen(Some(65), &[Some(65); 7]);
            queue(&AirtimeKnobs::default(), &seen, Rate::from_mbps(20), bottleneck)
        };
        assert_eq!(aimed(Bottleneck::Air), Duration::from_millis(75));
        assert_eq!(aimed(Bottleneck::BeyondTheAir), Duration::from_millis(20));
    }

    #[test]
    fn the_target_is_from_5_ms_to_queue_max() {
        let none = Observation { access_point_buffer: 0, ..seen(Some(65), &[]) };
        assert_eq!(micros(&AirtimeKnobs::default(), &none, 100), 5_000);
        assert_eq!(micros(&rounds(0), &seen(Some(65), &[]), 1), 5_000);
        let crowd = seen(Some(65), &[Some(65); 39]);
        assert_eq!(micros(&AirtimeKnobs::default(), &crowd, 20), 75_000);
        let fast = seen(Some(390), &[]);
        assert_eq!(micros(&AirtimeKnobs::default(), &fast, 20), 20_000, "queue_min");
    }

    #[test]
    fn an_aggregate_fits_the_longest_ppdu_and_65535_bytes() {
        let at = |mbps| aggregate(Some(Rate::from_mbps(mbps))).map(Bytes::get);
        assert_eq!(at(65), Some(44_557));
        assert_eq!(at(390), Some(65_535));
        for single in [6, 9, 12, 18, 24, 36, 48, 54] {
            assert_eq!(at(single), None, "802.11a and g send frames one by one: {single}");
        }
        assert_eq!(aggregate(None), None);
    }
}
