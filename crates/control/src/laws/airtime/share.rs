//! What a station may aim at: its share of the air, and how much of it may wait in queues.

use wakeai_units::{Bytes, Duration, Rate};

use super::AirtimeKnobs;
use crate::{Observation, PeerView};

/// The longest PPDU (802.11-2020 table 19-25, `aPPDUMaxTime`) and the largest A-MPDU of 802.11n.
const LONGEST_PPDU: Duration = Duration::from_micros(5_484);
const LARGEST_AMPDU: Bytes = Bytes::new(65_535);
/// What a turn costs beside its data: contention, preamble, SIFS, acknowledgement.
const TURN_OVERHEAD: Duration = Duration::from_micros(300);

/// This station's share of what the air carries, by weights: `w_i · Σ(x_j/w_j) / n`.
///
/// The weights are what each station reaches alone (`Max_i`), or its PHY rate, where all of them
/// say so; else all are equal. Equal parts of the air give rates in proportion to the weights, so
/// `Σ(x_j/w_j)` is how well the air is used and each station gets one part in `n` of that. A peer
/// that has just begun to send and has announced no rate yet is taken for an average one.
pub(super) fn fair_share(observation: &Observation) -> Rate {
    let peers: Vec<&PeerView> = observation
        .peers
        .iter()
        .filter(|peer| peer.sending && peer.delivery_rate > Rate::ZERO)
        .collect();
    let weights = |own: Option<Rate>, of: fn(&PeerView) -> Option<Rate>| {
        let known = |rate: &Rate| *rate > Rate::ZERO;
        let theirs: Option<Vec<Rate>> = peers.iter().map(|peer| of(peer).filter(known)).collect();
        Some((own.filter(known)?, theirs?))
    };
    let (own, theirs) = weights(observation.max_rate, |peer| peer.max_rate)
        .or_else(|| weights(observation.own.link_rate, |peer| peer.link_rate))
        .unwrap_or_else(|| (Rate::from_bps(1), vec![Rate::from_bps(1); peers.len()]));
    let scaled = peers.iter().zip(&theirs).filter_map(|(peer, weight)| {
        peer.delivery_rate.mul_div(own.bits_per_second(), weight.bits_per_second())
    });
    scaled.sum::<Rate>().saturating_add(observation.mean_rate) / (peers.len() as u64 + 1)
}

/// The RTT growth to aim at.
///
/// So much that every station has a full aggregate waiting when its turn comes: some rounds of all
/// stations' longest turns and the access point's. But never so much that the ACKs of what waits
/// fill more than half of the access point's buffer: dropped ACKs cost more than short aggregates.
pub(super) fn queue_target(knobs: &AirtimeKnobs, observation: &Observation) -> Duration {
    let rounds = u64::from(knobs.queue_rounds_percent);
    let full_aggregates = round(observation).mul_div(rounds, 100).unwrap_or(Duration::MAX);
    let acks = u64::from(observation.access_point_buffer / 2);
    let segments = acks.saturating_mul(u64::from(observation.segments_per_ack));
    let acknowledged = Bytes::new(observation.mss().get().saturating_mul(segments));
    let ack_buffer = observation.total_rate.time_for(acknowledged).unwrap_or(Duration::MAX);
    full_aggregates.min(ack_buffer).clamp(knobs.queue_min, knobs.queue_max.max(knobs.queue_min))
}

/// A turn of everybody who sends, and one of the access point, which answers the slowest as well:
/// the turns of slow peers are what a fast station waits for.
fn round(observation: &Observation) -> Duration {
    let own = longest_turn(observation.own.link_rate);
    let sending = observation.peers.iter().filter(|peer| peer.sending);
    let turns = sending.map(|peer| peer.link_rate.map_or(own, |rate| longest_turn(Some(rate))));
    let (count, sum, longest) =
        turns.fold((1, own, own), |(n, sum, longest), turn| (n + 1, sum + turn, longest.max(turn)));
    // Senders that are counted but no longer, or not yet, heard.
    let unheard = u64::from(observation.senders).saturating_sub(count);
    sum + longest + own * unheard
}

/// How long a station at this PHY rate holds the air at most.
fn longest_turn(link_rate: Option<Rate>) -> Duration {
    let aggregate = link_rate.and_then(|rate| rate.time_for(LARGEST_AMPDU));
    aggregate.map_or(LONGEST_PPDU, |time| time.min(LONGEST_PPDU)) + TURN_OVERHEAD
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{StationId, StationView};

    fn peer(rate: u64, max: Option<u64>, link: Option<u64>) -> PeerView {
        PeerView {
            station: StationId(rate),
            interval: Duration::from_secs(1),
            sending: true,
            delivery_rate: Rate::from_mbps(rate),
            max_rate: max.map(Rate::from_mbps),
            link_rate: link.map(Rate::from_mbps),
            min_rtt: None,
            growth: Duration::ZERO,
            reservation: None,
            age: Duration::ZERO,
        }
    }

    fn own(rate: u64, link: Option<u64>, peers: Vec<PeerView>) -> Observation {
        Observation {
            senders: peers.len() as u32 + 1,
            peers,
            mean_rate: Rate::from_mbps(rate),
            own: StationView { link_rate: link.map(Rate::from_mbps), connections: Vec::new() },
            ..Observation::default()
        }
    }

    #[test]
    fn without_weights_the_shares_are_equal() {
        let seen = own(10, None, vec![peer(2, None, Some(65)), peer(6, None, None)]);
        assert_eq!(fair_share(&seen), Rate::from_mbps(6));
    }

    #[test]
    fn a_slow_station_s_share_is_air_and_not_bytes() {
        // Anomaly (802.11g): both deliver 4 Mbit/s, the slow one for nine times the air.
        let slow = own(4, Some(6), vec![peer(4, None, Some(54))]);
        let fast = own(4, Some(54), vec![peer(4, None, Some(6))]);
        let used = 4.0 / 6.0 + 4.0 / 54.0;
        for (seen, link) in [(slow, 6.0), (fast, 54.0)] {
            assert!((fair_share(&seen).as_mbps_f64() - link * used / 2.0).abs() < 1e-5);
        }
    }

    #[test]
    fn a_measured_maximum_goes_before_the_phy_rate() {
        let mut seen = own(10, Some(65), vec![peer(10, Some(20), Some(65))]);
        seen.max_rate = Some(Rate::from_mbps(40));
        assert_eq!(fair_share(&seen), Rate::from_mbps(15)); // 40 * (10/40 + 10/20) / 2
        seen.peers[0].max_rate = None;
        assert_eq!(fair_share(&seen), Rate::from_mbps(10));
    }

    #[test]
    fn a_peer_without_a_rate_yet_takes_nothing_from_the_share() {
        let seen = own(10, None, vec![peer(0, None, None), peer(6, None, None)]);
        assert_eq!(fair_share(&seen), Rate::from_mbps(8));
    }

    #[test]
    fn more_senders_queue_longer_until_the_acks_would_fill_the_access_point() {
        let knobs = AirtimeKnobs::default();
        let mut seen = Observation { senders: 6, ..Observation::default() };
        assert_eq!(queue_target(&knobs, &seen), Duration::from_nanos(5_784_000 * 7 * 2));
        seen.own.link_rate = Some(Rate::from_mbps(300));
        let fast = queue_target(&knobs, &seen);
        assert!(fast > Duration::from_millis(28) && fast < Duration::from_millis(29));
        seen.peers = vec![peer(1, None, Some(6))];
        let beside_a_slow_one = queue_target(&knobs, &seen) - fast;
        assert_eq!(beside_a_slow_one, Duration::from_nanos((5_784_000 - 2_047_600) * 2 * 2));
        seen.peers.clear();
        seen.senders = 40;
        assert_eq!(queue_target(&knobs, &seen), knobs.queue_max);
        seen.total_rate = Rate::from_mbps(100); // 300 segments in 34.8 ms
        assert_eq!(queue_target(&knobs, &seen).as_micros(), 34_752);
    }
}
