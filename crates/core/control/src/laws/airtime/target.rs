//! The target queueing delay: the queue that the goodput needs, and no more. In this file a turn is
//! one transmission on the air.
//!
//! Two regimes meet. `docs/concepts/laws.md` derives both.
//!
//! *Busy air*: a round, in which each sender has one turn, lasts longer than the path. A station
//! whose window is one aggregate of `W` packets has one turn in each round and does not contend
//! again. Its goodput is a part `W / (W + o)` of the largest, where `o` is the time of a turn beside
//! its data, counted in packets. So the queue has to be as long as the round in which a nearly full
//! aggregate is sent, minus the path.
//!
//! *Room in the air*: the path is longer than that round. Then the queue only has to absorb the
//! differences between turns, and those between round trips.

use wakeai_connection::Direction;
use wakeai_units::{Bytes, Duration};
use wakeai_wifi::LONGEST_PPDU;

use super::AirtimeKnobs;
use super::aggregate::{BESIDE_PAYLOAD, aggregate, is_short_turn, turn};
use super::share::{AirtimeShare, Bottleneck};
use crate::observation::Side;

/// With room in the air, where nobody receives, the queue of stations that aggregate: about the longest turn (5.5 ms), and a part of the
/// path, because the data in flight on a long path varies more.
const ROOM: Room = Room { queue: Duration::from_millis(5), path_divisor: 16 };
/// The same where a station receives, where a turn is short, and where the PHY rate is not known.
const ROOM_OTHERWISE: Room = Room { queue: Duration::from_millis(6), path_divisor: 12 };
/// The same for stations that send frames one by one: beside the longest frame of a sender.
const ROOM_SINGLE: Duration = Duration::from_micros(1770);
const ROOM_SINGLE_PATH_DIVISOR: u64 = 50;
/// The same in addition where stations send and stations receive, so that the access point, which has as many turns as one of them, finds
/// frames for its turns.
const ROOM_SINGLE_BOTH_WAYS: Duration = Duration::from_millis(1);
/// With room in the air, the queue of downloads: so many turns, percent of one, and this part of the path. The
/// access point's queue mixes the packets of the stations, so that a turn has a part of a window. Beside
/// uploads, whose packets wait in the stations, there are fewer.
const MIXED_TURNS_PERCENT: u64 = 400;
const MIXED_TURNS_BESIDE_UPLOADS_PERCENT: u64 = 225;
const MIXED_PATH_DIVISOR: u64 = 64;
/// The minimum RTT that is assumed where it has not been measured yet.
pub(super) const PATH_UNKNOWN: Duration = Duration::from_millis(100);
/// The packets and ACKs of the waiting segments may fill this part of the access point's buffer,
/// percent.
const BUFFER_PERCENT: u64 = 80;

/// A queue, and a part of the path in addition.
struct Room {
    queue: Duration,
    path_divisor: u64,
}

impl Room {
    fn of(&self, path: Duration) -> Duration {
        self.queue + path / self.path_divisor
    }
}

/// The target queueing delay of a station whose minimum RTT is `own_path`, where it is known.
///
/// All stations compute nearly the same target, because it follows from what all announce: the PHY
/// rates and weights ([`AirtimeShare::round`]) and the mean of the minimum RTTs.
pub(super) fn queue(
    knobs: &AirtimeKnobs,
    seen: Side<'_>,
    own_path: Option<Duration>,
    share: &AirtimeShare,
    bottleneck: Bottleneck,
) -> Duration {
    let path = mean_path(seen, own_path);
    let round = share.round.mul_div(u64::from(knobs.queue_rounds_percent), 100);
    let busy = match bottleneck {
        Bottleneck::Air => round.unwrap_or(Duration::MAX).saturating_sub(path),
        Bottleneck::BeyondTheAir => Duration::ZERO,
    };
    let target = room(seen, path).max(busy.min(knobs.queue_max)).max(knobs.queue_min);
    target.min(access_point_buffer(seen, share))
}

/// The target with room in the air.
fn room(seen: Side<'_>, path: Duration) -> Duration {
    let own = seen.seen.link_rate;
    let single = own.is_some_and(|rate| aggregate(Some(rate)).is_none());
    if single {
        let active = seen.seen.peers.iter().filter(|peer| peer.announced.is_active());
        let rates = active.filter_map(|peer| peer.announced.link_rate).chain(own);
        let packet = Bytes::new(seen.own().mss().get() + BESIDE_PAYLOAD);
        let longest = rates.min().and_then(|rate| rate.time_for(packet)).unwrap_or_default();
        // A wrong announcement of a very low rate must not make the queue long.
        let both_ways = seen.seen.has_both_directions();
        let more = if both_ways { ROOM_SINGLE_BOTH_WAYS } else { Duration::ZERO };
        more + ROOM_SINGLE + longest.min(LONGEST_PPDU) + path / ROOM_SINGLE_PATH_DIVISOR
    } else {
        let is_long = own.is_some() && !is_short_turn(own);
        let receives = seen.direction == Direction::Down || seen.seen.has_both_directions();
        let room = if is_long && !receives { ROOM } else { ROOM_OTHERWISE };
        room.of(path).max(mixed(seen, path))
    }
}

/// The target with room in the air where some station receives; zero where none does. All traffic has the
/// same target, because that of both directions waits in the access point's queue.
fn mixed(seen: Side<'_>, path: Duration) -> Duration {
    let rates = seen.seen.peers.iter().filter(|peer| peer.announced.down.active);
    let own = seen.seen.link_rate.filter(|_| seen.seen.down.is_active());
    let rates = rates.map(|peer| peer.announced.link_rate).chain([own]);
    let turns = rates.filter_map(turn);
    let (count, sum) = turns.fold((0, Duration::ZERO), |(n, sum), one| (n + 1, sum + one));
    let percent = if seen.seen.has_both_directions() {
        MIXED_TURNS_BESIDE_UPLOADS_PERCENT
    } else {
        MIXED_TURNS_PERCENT
    };
    if count == 0 {
        return Duration::ZERO;
    }
    sum * percent / (count * 100) + path / MIXED_PATH_DIVISOR
}

/// The mean of the minimum RTTs of all traffic for which one is announced, that of this station included.
fn mean_path(seen: Side<'_>, own: Option<Duration>) -> Duration {
    let other = seen.seen.side(seen.direction.other());
    let own_other = other.own().rtt.filter(|_| other.own().is_active()).map(|rtt| rtt.min);
    let peers = seen.active_peers().chain(other.active_peers());
    let known = peers.filter_map(|traffic| traffic.min_rtt).chain(own).chain(own_other);
    let (count, sum) =
        known.fold((0, Duration::ZERO), |(n, sum), rtt| (n + 1, sum.saturating_add(rtt)));
    if count == 0 { PATH_UNKNOWN } else { sum / count }
}

/// The longest queue that the access point's buffer can hold: the packets of downloads, and the ACKs of
/// the uploads' waiting segments, because lost ACKs cost more than short aggregates.
pub(super) fn access_point_buffer(seen: Side<'_>, share: &AirtimeShare) -> Duration {
    let packets = u64::from(seen.seen.access_point_buffer) * BUFFER_PERCENT / 100;
    let per_ack = u64::from(seen.seen.segments_per_ack);
    // A packet of a download takes the place of an ACK, which acknowledges `per_ack` segments.
    let segments = packets.saturating_mul(per_ack);
    let held = Bytes::new(seen.own().mss().get().saturating_mul(segments));
    let down = share.down.times(per_ack, 1);
    let in_acks = share.total.saturating_sub(share.down).saturating_add(down);
    in_acks.time_for(held).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakeai_connection::Direction;
    use wakeai_units::Rate;

    use crate::observation::{peer, traffic, uploads};
    use crate::{Observation, Traffic};

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// A station at the PHY rate `own`, Mbit/s, beside peers with these minimum RTTs, ms.
    fn seen(own: Option<u64>, paths: &[u64]) -> Observation {
        let peers = (1..).zip(paths).map(|(id, path)| {
            peer(id, uploads(Traffic { min_rtt: Some(ms(*path)), ..traffic(10) }))
        });
        Observation {
            peers: peers.collect(),
            link_rate: own.map(Rate::from_mbps),
            ..Observation::default()
        }
    }

    /// The share of a station where a round lasts this long, ms, and all deliver `mbps` together.
    fn share(round: u64, mbps: u64) -> AirtimeShare {
        let mut share = AirtimeShare::of_total(Rate::from_mbps(mbps), Direction::Up);
        share.round = ms(round);
        share
    }

    fn target(seen: &Observation, path: u64, round: u64) -> Duration {
        let share = share(round, 20);
        let seen = seen.side(Direction::Up);
        queue(&AirtimeKnobs::default(), seen, Some(ms(path)), &share, Bottleneck::Air)
    }

    #[test]
    fn in_busy_air_the_target_is_the_round_without_the_path() {
        let seen = seen(Some(65), &[]);
        assert_eq!(target(&seen, 10, 60), ms(50));
        assert_eq!(target(&seen, 10, 500), ms(75), "at most queue_max");
    }

    #[test]
    fn with_room_in_the_air_the_target_is_a_turn_and_a_part_of_the_path() {
        let room = |rate| target(&seen(rate, &[]), 120, 60).as_micros();
        assert_eq!(room(Some(65)), 12_500);
        assert_eq!([Some(390), None].map(room), [16_000; 2], "short turns, and unknown ones");
    }

    #[test]
    fn while_a_station_receives_the_target_of_all_is_some_turns_and_a_part_of_the_path() {
        let target = |up: bool, down: bool, direction| {
            let mut seen = seen(Some(65), &[60]);
            (seen.peers[0].announced.up.active, seen.peers[0].announced.down.active) = (up, down);
            seen.peers[0].announced.link_rate = Some(Rate::from_mbps(65));
            let (knobs, share) = (AirtimeKnobs::default(), share(0, 20));
            queue(&knobs, seen.side(direction), Some(ms(60)), &share, Bottleneck::Air)
        };
        // A turn at 65 Mbit/s is 0.28 ms and the longest transmission, 5.484 ms.
        let mixed =
            |percent: u64| Duration::from_micros(percent * (280 + 5_484) / 100 + 60_000 / 64);
        for direction in Direction::BOTH {
            for (up, percent) in [(true, 225), (false, 400)] {
                let (found, mixed) = (target(up, true, direction), mixed(percent));
                assert!(found.as_micros().abs_diff(mixed.as_micros()) <= 1, "{found} of {mixed}");
            }
        }
        assert_eq!(target(true, false, Direction::Up), Duration::from_micros(8_750));
        assert_eq!(target(true, false, Direction::Down), ms(11));
    }

    #[test]
    fn on_a_long_path_both_directions_have_the_same_target() {
        let mut both_ways = seen(Some(65), &[192]);
        both_ways.peers[0].announced.link_rate = Some(Rate::from_mbps(65));
        both_ways.peers[0].announced.down.active = true;
        for direction in Direction::BOTH {
            let (knobs, share) = (AirtimeKnobs::default(), share(0, 20));
            let side = both_ways.side(direction);
            let found = queue(&knobs, side, Some(ms(192)), &share, Bottleneck::Air);
            assert_eq!(found, ms(6 + 192 / 12), "{direction:?}");
        }
    }

    #[test]
    fn frames_one_by_one_need_the_longest_frame_and_a_part_of_the_path() {
        // 1,540 bytes take 0.228 ms at 54 Mbit/s and 2.053 ms at 6 Mbit/s.
        let at = |own, peer: Option<u64>, sending| {
            let mut seen = seen(Some(own), &[100]);
            seen.peers[0].announced.link_rate = peer.map(Rate::from_mbps);
            seen.peers[0].announced.up.active = sending;
            target(&seen, 100, 0).as_micros()
        };
        assert_eq!(at(54, Some(54), true), 1_770 + 228 + 2_000);
        assert_eq!(at(54, None, true), 1_770 + 228 + 2_000);
        assert_eq!(at(54, Some(6), true), 1_770 + 2_053 + 2_000);
        assert_eq!(at(6, Some(54), true), 1_770 + 2_053 + 2_000, "all have the same target");
        assert_eq!(at(54, Some(6), false), 1_770 + 228 + 2_000, "it does not send");
        assert_eq!(at(54, Some(1), true), 1_770 + 5_484 + 2_000, "a false announcement");
        let mut both_ways = seen(Some(54), &[100]);
        both_ways.peers[0].announced.down.active = true;
        assert_eq!(target(&both_ways, 100, 0).as_micros(), 1_000 + 1_770 + 228 + 2_000);
    }

    #[test]
    fn the_path_of_the_target_is_the_mean_of_all_senders() {
        assert_eq!(target(&seen(Some(65), &[240, 240]), 120, 0), ms(5) + ms(200) / 16);
        let none = queue(
            &AirtimeKnobs::default(),
            seen(Some(65), &[]).side(Direction::Up),
            None,
            &AirtimeShare::default(),
            Bottleneck::Air,
        );
        assert_eq!(none, ms(5) + ms(100) / 16, "no path is known");
    }

    #[test]
    fn beyond_the_air_no_queue_fills_aggregates() {
        let share = share(60, 20);
        let knobs = AirtimeKnobs::default();
        let seen = seen(Some(65), &[]);
        let of =
            |bottleneck| queue(&knobs, seen.side(Direction::Up), Some(ms(12)), &share, bottleneck);
        assert_eq!(of(Bottleneck::Air), ms(48));
        assert_eq!(of(Bottleneck::BeyondTheAir), ms(5) + ms(12) / 16);
    }

    #[test]
    fn the_acks_of_the_waiting_segments_fit_in_the_access_point_s_buffer() {
        // 240 ACKs of 2 segments each: 695,040 bytes, at 20 Mbit/s 278 ms, at 400 Mbit/s 13.9 ms.
        let at = |mbps, buffer| {
            let share = share(90, mbps);
            let seen = Observation { access_point_buffer: buffer, ..seen(Some(65), &[]) };
            let seen = seen.side(Direction::Up);
            queue(&AirtimeKnobs::default(), seen, Some(ms(20)), &share, Bottleneck::Air)
        };
        assert_eq!(at(20, 300), ms(70));
        assert_eq!(at(400, 300).as_micros(), 13_900);
        assert_eq!(at(20, 0), Duration::ZERO);
    }

    #[test]
    fn the_packets_of_downloads_fit_in_the_access_point_s_buffer() {
        // 240 packets: 347,520 bytes, at 400 Mbit/s 6.95 ms.
        let target = |down| {
            let mut share = share(90, 400);
            share.down = Rate::from_mbps(down);
            let seen = seen(Some(65), &[]);
            let side = seen.side(Direction::Down);
            let knobs = AirtimeKnobs::default();
            queue(&knobs, side, Some(ms(20)), &share, Bottleneck::Air).as_micros()
        };
        assert_eq!((target(400), target(0)), (6_950, 13_900));
        assert_eq!(target(200), 9_267, "half downloads, half uploads with ACKs");
    }

    #[test]
    fn the_knobs_limit_the_target() {
        let share = share(60, 20);
        let of = |percent, min, max| {
            let knobs = AirtimeKnobs {
                queue_rounds_percent: percent,
                queue_min: ms(min),
                queue_max: ms(max),
                ..AirtimeKnobs::default()
            };
            let seen = seen(Some(65), &[]);
            queue(&knobs, seen.side(Direction::Up), Some(ms(12)), &share, Bottleneck::Air)
        };
        assert_eq!(of(100, 1, 75), ms(48));
        assert_eq!(of(50, 1, 75), ms(18));
        assert_eq!(of(100, 1, 30), ms(30));
        assert_eq!(of(100, 60, 75), ms(60));
    }
}
