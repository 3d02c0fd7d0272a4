//! What a station sends in one turn on the air at its PHY rate, and what it should reach alone with it.

use wakeai_units::{Bytes, Duration, Rate};
use wakeai_wifi::{DSSS_RATES, LEGACY_RATES, LONGEST_PPDU, Standard};

/// The time of a turn beside its data: contention, preamble, SIFS, acknowledgement.
const TURN_OVERHEAD: Duration = Duration::from_micros(280);
/// In busy air an aggregate is nearly full where it has this part (permille) of the largest goodput.
pub(super) const NEARLY_FULL_PERMILLE: u64 = 985;
/// The same where others on the channel take air. With more stations the goodput rises less with the window, because more turns collide.
pub(super) const FULL_ENOUGH_PERMILLE: u64 = 960;
/// The bytes of a packet in an aggregate beside its payload: headers of TCP/IP and 802.11, and the
/// delimiter and padding of the subframe (802.11-2020 §9.7).
pub(super) const BESIDE_PAYLOAD: u64 = 92;
/// The part of the air that the data of stations that aggregate have beside the access point's turns
/// with TCP ACKs, percent. Without aggregation the ACKs take turns in which data would collide.
const BESIDE_ACKS_PERCENT: u64 = 83;
/// The payload of an aggregate at this PHY rate that has a part `permille` of the largest goodput.
///
/// With `a` bytes in the largest aggregate and `o` bytes in the time of a turn beside its data, an
/// aggregate of `w` bytes has the part `w (a + o) / (a (w + o))` of the largest goodput. So a part
/// `f` needs `w = f a o / (a + o - f a)`. Without aggregation it is two packets, because the receiver
/// acknowledges every second one at once.
pub(super) fn nearly_full(link_rate: Option<Rate>, mss: Bytes, permille: u64) -> Bytes {
    let packet = mss.get() + BESIDE_PAYLOAD;
    let two_packets = Bytes::new(mss.get().saturating_mul(2));
    let (Some(rate), packets @ 2..) = (link_rate, packets(link_rate, mss)) else {
        return two_packets;
    };
    let most = u128::from(packets * packet);
    let overhead = u128::from(rate.bytes_in(TURN_OVERHEAD).get().max(1));
    let f = u128::from(permille);
    let bytes = f * most * overhead / (1000 * (most + overhead) - f * most);
    let payload = bytes * u128::from(mss.get()) / u128::from(packet);
    Bytes::new(u64::try_from(payload).unwrap_or(u64::MAX))
}

/// The duration of a turn with the largest aggregate; `None` where the station does not aggregate, or
/// where its PHY rate is not known.
pub(super) fn turn(link_rate: Option<Rate>) -> Option<Duration> {
    Some(TURN_OVERHEAD + link_rate?.time_for(aggregate(link_rate)?)?)
}

/// What a station at this PHY rate should reach alone, by the same model: in a turn with the largest
/// aggregate, the time beside the data is [`TURN_OVERHEAD`], and the TCP ACKs take a part of the air.
pub(super) fn alone(link_rate: Rate, mss: Bytes) -> Rate {
    let packet = mss.get() + BESIDE_PAYLOAD;
    let packets = packets(Some(link_rate), mss);
    let (data, overhead) = (packets * packet, link_rate.bytes_in(TURN_OVERHEAD).get());
    let beside_acks = if packets > 1 { BESIDE_ACKS_PERCENT } else { 100 };
    let payload = packets * mss.get() * beside_acks / 100;
    link_rate.times(payload, data + overhead)
}

/// The packets in a station's largest aggregate; 1 where the station does not aggregate, or where
/// its PHY rate is not known.
pub(super) fn packets(link_rate: Option<Rate>, mss: Bytes) -> u64 {
    let bytes = aggregate(link_rate).map_or(0, Bytes::get);
    (bytes / (mss.get() + BESIDE_PAYLOAD)).max(1)
}

/// Whether the largest aggregate at this PHY rate is limited by its bytes, and not by its duration.
pub(super) fn is_short_turn(link_rate: Option<Rate>) -> bool {
    aggregate(link_rate) == Some(Standard::N.longest_ampdu())
}

/// The bytes of a station's largest aggregate; `None` where the station does not aggregate, or
/// where its PHY rate is not known.
pub(super) fn aggregate(link_rate: Option<Rate>) -> Option<Bytes> {
    let rate = link_rate?;
    // These are the PHY rates of 802.11a, b and g, whose stations send frames one by one.
    let single = LEGACY_RATES.contains(&rate) || DSSS_RATES.contains(&rate);
    (!single).then(|| rate.bytes_in(LONGEST_PPDU).min(Standard::N.longest_ampdu()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: Bytes = Bytes::new(1448);

    fn mbps(mbps: u64) -> Rate {
        Rate::from_mbps(mbps)
    }

    #[test]
    fn a_nearly_full_aggregate_has_985_permille_of_the_goodput() {
        let full = |rate, permille| nearly_full(Some(mbps(rate)), MSS, permille).get() / MSS.get();
        let segments = |rate| full(rate, NEARLY_FULL_PERMILLE);
        // At 65 Mbit/s the largest aggregate has 28 packets, and 1.48 fit in the time beside the data.
        assert_eq!(segments(65), 21);
        assert_eq!(segments(390), 38);
        assert_eq!(segments(54), 2, "frames one by one");
        assert_eq!(nearly_full(None, MSS, NEARLY_FULL_PERMILLE), Bytes::new(2896));
        // Beside others on the channel.
        assert_eq!((full(65, FULL_ENOUGH_PERMILLE), full(390, FULL_ENOUGH_PERMILLE)), (15, 33));
    }

    #[test]
    fn the_model_of_a_station_alone_is_close_to_what_the_simulator_shows() {
        // One station alone in the simulator: 50.8, 262 and 23.9 Mbit/s.
        let alone = |rate| alone(Rate::from_mbps(rate), MSS).bits_per_second() / 1_000_000;
        assert_eq!((alone(65), alone(390), alone(54)), (48, 251, 22));
    }

    #[test]
    fn an_aggregate_fits_the_longest_ppdu_and_65535_bytes() {
        let at = |rate| aggregate(Some(mbps(rate))).map(Bytes::get);
        assert_eq!(at(65), Some(44_557));
        assert_eq!(at(390), Some(65_535));
        for single in [6, 9, 12, 18, 24, 36, 48, 54] {
            assert_eq!(at(single), None, "802.11a and g send frames one by one: {single}");
        }
        assert_eq!(aggregate(None), None);
        let is_short = |rate| is_short_turn(Some(mbps(rate)));
        let packets = |rate| packets(Some(mbps(rate)), MSS);
        assert_eq!((packets(65), packets(390), packets(13), packets(54)), (28, 42, 5, 1));
        assert!(is_short(390) && !is_short(65) && !is_short(54));
    }
}
