//! The share of a station: the rate that the station delivers with its part of the airtime.

use wakeai_connection::Direction;
use wakeai_units::{Bytes, Duration, Instant, Rate};

use super::aggregate::{FULL_ENOUGH_PERMILLE, NEARLY_FULL_PERMILLE, aggregate, alone, nearly_full};
use super::channel::{Channel, Figures, Queue};
use super::{KNOWN_TICKS, SETTLED_TICKS};
use crate::PeerView;
use crate::observation::Side;
use crate::rates::AIR_LIMITED_PERCENT;
use crate::rtt::quantile;
use crate::weights::{Basis, delivering, delivers, starving};
use crate::windowed::WindowedMax;

/// The whole airtime. Parts of the airtime are in millionths.
pub(super) const WHOLE: u64 = 1_000_000;
/// The limits of the measured sum, percent of the expected sum. They limit the effect of old or
/// wrong announcements on the share. The lower limit holds only while the queue is longer than its
/// target, because only then the measured sum is what the air carries. While the queue is short, the
/// stations deliver less because their windows are short, and a share that followed would shorten
/// the windows further.
pub(super) const LEAST_PERCENT: u64 = 93;
const MOST_PERCENT: u64 = 140;
/// In the mean of the weights, a weight counts as at most this many times the median weight.
const HEAVIEST: u64 = 4;
/// In the mean time for a nearly full aggregate, a time counts as at most this many times the median: a single station
/// that announces a tiny rate must not lengthen the target of all.
const LONGEST: u64 = 2;
/// A bottleneck beyond the air lets all stations together deliver no more than one station alone.
/// Where the sum of the parts is above this multiple (millionths) of the expected sum, they deliver
/// more. So the air is the bottleneck, and losses are the reason why a station alone is slow.
const TOGETHER_MORE: u64 = WHOLE * 12 / 10;

/// Only announcements of so many seconds show what a trial changes, and what strangers took meanwhile. Rates are means of as many.
const RECENT: Duration = Duration::from_secs(2);
/// So many of them stand for all; of few peers, half.
const RECENT_PEERS: u64 = 3;

/// The bottleneck of all senders together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bottleneck {
    Air,
    /// The access point's wired link, or a path beyond it.
    BeyondTheAir,
}

/// What the share follows where the stations deliver less than is expected of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Follows {
    /// The expected sum, or [`LEAST_PERCENT`] of it.
    Expected,
    /// What the channel leaves to uploads.
    Channel,
    /// The highest sum of the last ten seconds, and at least this percentage of the expected one.
    Sum { least_percent: u64 },
}

/// The use of the air, and the share of this station.
///
/// The part of the air that a station uses in a direction is its rate divided by its weight
/// ([`Basis`]), and its part of the air is the sum over both directions. Where all parts are equal, the
/// rates are in proportion to the weights. So a slow station gets the same airtime as the others, and
/// delivers fewer bytes. A station's part is divided between its directions: each has what the other
/// leaves, and half at least.
#[derive(Clone, Debug, Default)]
pub(super) struct AirtimeShare {
    /// The highest sum of the parts of all stations in the last ten seconds, millionths.
    highest: WindowedMax<u64>,
    /// What the channel leaves to the uploads of all stations.
    pub(super) channel: Channel,
    /// The sum of the parts of all senders, divided by the expected sum, millionths. `None` in three
    /// cases: in the first ticks, where the rates of fewer than three quarters of the senders are
    /// known, and where all weights are equal. In the last case there is no expected sum.
    pub(super) used: Option<u64>,
    /// The same for all senders but the one with the largest part, beside three peers at least. A station that takes what
    /// the others lose does not count, whatever it announces.
    pub(super) used_by_most: Option<u64>,
    /// The same for this station and the peers that announced their rates in the last two seconds ([`RECENT`]), as if all senders delivered like them;
    /// `None` where fewer than three did, or fewer than half of four or fewer peers. Many stations announce their rates many seconds apart.
    pub(super) recent_by_most: Option<u64>,
    /// The second-largest part of a peer as a part of the share of each, millionths; `None` where [`Self::used`] is. The
    /// largest one may be that of a station that obeys nothing, or a false announcement.
    pub(super) second: Option<u64>,
    /// The part of a peer ([`Figures::peer`]) as one of the share of each, millionths; `None` where [`Self::used`] is.
    pub(super) peer: Option<u64>,
    /// The rate at which this station would use the median of the peers' parts; zero with fewer
    /// than three peers.
    pub(super) median: Rate,
    /// The rate at which this station would use the median of the peers' parts, or the mean of fewer than three.
    pub(super) peers: Rate,
    /// The mean rate of this station, as its peers announce theirs.
    pub(super) own: Rate,
    /// The rate that all senders deliver together in both directions when each has its share.
    pub(super) total: Rate,
    /// The downloads' part of `total`.
    pub(super) down: Rate,
    /// The mean time in which a sender at its share sends a nearly full aggregate: the duration of a
    /// round in which each of them sends one.
    pub(super) round: Duration,
}

/// What one station moves in one direction.
struct Stream {
    direction: Direction,
    weight: Rate,
    link_rate: Option<Rate>,
    /// The number of directions among which the station divides its part of the air.
    directions: u64,
}

/// The weights and parts of this station and of its peers at a tick.
struct Weights {
    /// The weight of this station in the direction of the law.
    own: Rate,
    /// The part of the air that this station uses in the other direction, and that in both, millionths.
    own_other: u64,
    own_part: u64,
    /// The parts of the peers that deliver something, both directions together, millionths.
    parts: Vec<u64>,
    /// Those of them that were announced within [`RECENT`].
    recent: Vec<u64>,
    /// The traffic of these stations, that of this station first.
    streams: Vec<Stream>,
    /// The expected sum of the parts, millionths; `None` where all weights are equal.
    expected: Option<u64>,
}

impl Weights {
    fn of(seen: Side<'_>) -> Self {
        let (all, direction, other) = (seen.seen, seen.direction, seen.direction.other());
        let basis = Basis::of(all, direction);
        // A PHY rate is weighed by what a station should reach alone at it.
        let weigh = |known: Option<Rate>| match (basis, known) {
            (Basis::Phy { .. }, Some(link_rate)) => alone(link_rate, seen.own().mss()),
            // Where all weights are equal, any will do.
            (_, known) => known.unwrap_or(Rate::from_mbps(1)),
        };
        let own_weight = |of| weigh(basis.own_weight(all, of));
        let weight = |peer: &PeerView, of| weigh(basis.weight(&peer.announced, of));
        // Where nothing is expected, a station without peers has the share that it delivers. The mean is too low at first, because
        // it contains the ticks before.
        let proves_itself = basis == Basis::Equal && all.live_peers == 0;
        let own_rate = |of: Direction| match all.of(of) {
            own if proves_itself => own.mean_rate.max(own.delivery_rate),
            own => own.mean_rate,
        };
        let own_part = |of| part(own_rate(of), own_weight(of));
        let link_rate = all.link_rate;
        let directions = 1 + u64::from(all.of(other).is_active());
        let own = [direction, other].into_iter().take(directions as usize);
        let mut streams: Vec<Stream> = own
            .map(|of| Stream { direction: of, weight: own_weight(of), link_rate, directions })
            .collect();
        let (mut parts, mut recent) = (Vec::new(), Vec::new());
        for peer in delivering(all) {
            let announced = &peer.announced;
            let moved = Direction::BOTH.into_iter().filter(|of| delivers(peer, *of));
            let directions = moved.clone().count() as u64;
            let link_rate = announced.link_rate.or(link_rate);
            let used = moved.clone().map(|of| part(announced.of(of).rate, weight(peer, of))).sum();
            parts.push(used);
            if peer.age <= RECENT {
                recent.push(used);
            }
            streams.extend(moved.map(|of| Stream {
                direction: of,
                weight: weight(peer, of),
                link_rate,
                directions,
            }));
        }
        Self {
            own: own_weight(direction),
            own_other: own_part(other),
            own_part: own_part(direction) + own_part(other),
            parts,
            recent,
            streams,
            expected: (basis != Basis::Equal).then_some(WHOLE),
        }
    }

    /// The mean weight of the stations, and the downloads' part of it. A weight counts as at most four
    /// times the median weight, so that a single wrong announcement does not distort the total. All
    /// stations find the same median.
    fn mean(&self) -> (Rate, Rate) {
        let mut all: Vec<Rate> = self.streams.iter().map(|stream| stream.weight).collect();
        let at = all.len() / 2;
        let median = *all.select_nth_unstable(at).1;
        let heaviest = median.times(HEAVIEST, 1);
        let of = |stream: &Stream| stream.weight.min(heaviest) / stream.directions;
        let down = self.streams.iter().filter(|stream| stream.direction == Direction::Down);
        let stations = self.parts.len() as u64 + 1;
        let (all, down): (Rate, Rate) = (self.streams.iter().map(of).sum(), down.map(of).sum());
        (all / stations, down / stations)
    }

    /// The rate at which this station uses `part` of the air in the direction of the law.
    fn rate(&self, part: u64) -> Rate {
        self.own.times(part, WHOLE)
    }

    /// What `part` of the air leaves this station for the direction of the law.
    fn left(&self, part: u64) -> u64 {
        part - self.own_other.min(part / 2)
    }

    /// The mean time in which a station that uses `part` of the air moves a nearly full aggregate, which has `permille` of the largest goodput. A
    /// peer whose PHY rate is not known counts as one with the PHY rate of this station. Aggregates are limited in time, so
    /// that honest stations need about the same.
    fn round(&self, part: u64, mss: Bytes, permille: u64) -> Duration {
        let time = |stream: &Stream| {
            let rate = stream.weight.times(part / stream.directions, WHOLE);
            rate.time_for(nearly_full(stream.link_rate, mss, permille)).unwrap_or(Duration::MAX)
        };
        let mut times: Vec<Duration> = self.streams.iter().map(time).collect();
        let median = *times.select_nth_unstable(self.streams.len() / 2).1;
        let counted = times.into_iter().map(|time| time.min(median.saturating_mul(LONGEST)));
        counted.fold(Duration::ZERO, Duration::saturating_add) / self.streams.len() as u64
    }
}

/// The sum of the parts of all `senders`, where `known` of them are these parts, that of this station, and zero, and the others are like them. The station
/// with the largest part does not count beside three others at least.
fn sum_of_most(parts: &[u64], own: u64, known: u64, senders: u64) -> u64 {
    let all = parts.iter().sum::<u64>() + own;
    match known {
        4.. => {
            let largest = parts.iter().copied().max().unwrap_or(0).max(own);
            (all - largest) / (known - 1) * senders
        }
        _ => all / known * senders,
    }
}

/// The second-largest of these parts; zero where there are fewer than two.
fn second_largest(parts: &[u64]) -> u64 {
    let (_, second) = parts.iter().fold((0, 0), |(largest, second), part| {
        if *part > largest { (*part, largest) } else { (largest, second.max(*part)) }
    });
    second
}

/// The part of the air that a station of weight `weight` uses at `rate`, millionths.
fn part(rate: Rate, weight: Rate) -> u64 {
    let most = WHOLE * 1000;
    rate.mul_div(WHOLE, weight.bits_per_second())
        .map_or(most, |part| part.bits_per_second().min(most))
}

impl AirtimeShare {
    /// The share of a station that is not active yet in this direction, beside senders that deliver
    /// `total` together.
    pub(super) fn of_total(total: Rate, direction: Direction) -> Self {
        let down = if direction == Direction::Down { total } else { Rate::ZERO };
        Self { total, down, ..Self::default() }
    }

    /// Takes the figures of a tick. Returns the share of this station, which has been active in this
    /// direction for `ticks` ticks.
    pub(super) fn on_tick(
        &mut self,
        now: Instant,
        ticks: u32,
        seen: Side<'_>,
        queue: Queue,
        follows: Follows,
    ) -> Rate {
        let mut weights = Weights::of(seen);
        let senders = u64::from(seen.seen.senders.max(1));
        let delivering = weights.parts.len() as u64 + 1;
        // At first a rate of zero is one that was not measured yet. Later the peer delivers nothing.
        let starving = || starving(seen.seen).filter(|_| ticks > KNOWN_TICKS);
        let known = delivering + starving().count() as u64;
        let enough = known * 4 >= senders * 3;
        // A sender whose rate is not known counts with the mean of the known parts.
        let sum = (weights.parts.iter().sum::<u64>() + weights.own_part) / known * senders;
        if enough {
            self.highest.push(now, sum);
        }
        let highest = if enough { self.highest.get() } else { 0 };
        let mean = weights.parts.iter().sum::<u64>() / (delivering - 1).max(1);
        let median = quantile(&mut weights.parts, 2);
        let peer = median.unwrap_or(mean);
        let is_known = enough && ticks > KNOWN_TICKS && weights.expected.is_some();
        let left = match follows {
            // Only a peer that delivers shows whether the channel or the own path is the reason for a long queue.
            Follows::Channel if is_known && delivering > 1 => {
                self.channel.on_tick(Figures { sum, senders, peer, queue })
            }
            Follows::Channel => self.channel.left(),
            _ => {
                self.channel = Channel::default();
                None
            }
        };
        let carried = match weights.expected {
            None => highest.max(sum),
            Some(expected) => {
                // The peers may have announced their rates before this station sent.
                let fresh = !enough || ticks <= SETTLED_TICKS;
                let least = match follows {
                    Follows::Sum { least_percent } if enough => {
                        debug_assert!(least_percent <= 100);
                        expected * least_percent / 100
                    }
                    _ if fresh || !queue.exceeds_the_target => expected,
                    _ => expected * LEAST_PERCENT / 100,
                };
                left.unwrap_or(highest.clamp(least, expected * MOST_PERCENT / 100))
            }
        };
        let settled = enough && ticks > SETTLED_TICKS;
        let expected = weights.expected.filter(|_| settled);
        let part_of = |sum: u64, expected: u64| sum.saturating_mul(WHOLE) / expected;
        self.used = expected.map(|expected| part_of(sum, expected));
        let by_most = |parts: &[u64], known| {
            expected.map(|all| part_of(sum_of_most(parts, weights.own_part, known, senders), all))
        };
        self.used_by_most = by_most(&weights.parts, known);
        let starving = starving().filter(|peer| peer.age <= RECENT).count();
        let recent = (weights.recent.len() + starving) as u64;
        let are_enough = recent >= RECENT_PEERS.min((senders - 1).div_ceil(2));
        self.recent_by_most = by_most(&weights.recent, recent + 1).filter(|_| are_enough);
        let second = second_largest(&weights.parts);
        self.second = expected.map(|expected| part_of(second * senders, expected));
        self.peer = expected.map(|expected| part_of(peer * senders, expected));
        self.own = seen.own().mean_rate;
        self.peers = weights.rate(weights.left(peer));
        self.median = median.map_or(Rate::ZERO, |part| weights.rate(weights.left(part)));
        let equal = carried / senders;
        let full = if left.is_some() { FULL_ENOUGH_PERMILLE } else { NEARLY_FULL_PERMILLE };
        self.round = weights.round(equal, seen.own().mss(), full);
        let (mean, down) = weights.mean();
        self.total = mean.times(equal * senders, WHOLE);
        self.down = down.times(equal * senders, WHOLE);
        weights.rate(weights.left(equal))
    }

    /// Forgets the sums of the last ten seconds.
    pub(super) fn forget(&mut self) {
        self.highest = WindowedMax::default();
    }

    /// The bottleneck of all senders, as the figures of this station show it.
    pub(super) fn bottleneck(&self, seen: Side<'_>) -> Bottleneck {
        let link_rate = seen.seen.link_rate;
        // Without aggregation a station alone is far below its PHY rate in any case.
        if aggregate(link_rate).is_none() {
            return Bottleneck::Air;
        }
        let slow = seen.own().max_rate.zip(link_rate).is_some_and(|(max, link)| {
            link.mul_div(AIR_LIMITED_PERCENT, 100).is_some_and(|part| max < part)
        });
        let together = self.used.is_some_and(|used| used < TOGETHER_MORE);
        if slow && together { Bottleneck::BeyondTheAir } else { Bottleneck::Air }
    }
}

/// The share of a station that begins to send, or to receive, now; `None` where the rate that it
/// reaches alone is unknown.
pub(super) fn of_newcomer(seen: Side<'_>) -> Option<Rate> {
    let all = seen.seen;
    let others = all.peers.iter().filter(|peer| peer.announced.is_active()).count() as u64;
    let directions = 1 + u64::from(all.of(seen.direction.other()).is_active());
    Some(seen.own().max_rate? / (others + 1) / directions)
}

#[cfg(test)]
mod tests {
    use wakeai_units::Duration;

    use super::*;
    use crate::observation::{peer, traffic, uploads};
    use crate::{Announcement, Observation, OwnTraffic, Traffic};

    const SHORT: Queue = Queue { exceeds_the_target: false, is_too_long: false };
    const ABOVE_TARGET: Queue = Queue { exceeds_the_target: true, is_too_long: false };

    /// A station and its peers, each as (delivery rate, rate reached alone, PHY rate), Mbit/s.
    fn seen(
        own: (u64, Option<u64>, Option<u64>),
        peers: &[(u64, Option<u64>, Option<u64>)],
    ) -> Observation {
        let peers = (1..).zip(peers).map(|(id, (rate, max, link))| {
            let (max_rate, link_rate) = (max.map(Rate::from_mbps), link.map(Rate::from_mbps));
            let up = Traffic { max_rate, ..traffic(*rate) };
            peer(id, Announcement { link_rate, ..uploads(up) })
        });
        let peers: Vec<PeerView> = peers.collect();
        let (mean_rate, max_rate) = (Rate::from_mbps(own.0), own.1.map(Rate::from_mbps));
        Observation {
            senders: peers.len() as u32 + 1,
            peers,
            up: OwnTraffic { mean_rate, max_rate, ..OwnTraffic::default() },
            link_rate: own.2.map(Rate::from_mbps),
            ..Observation::default()
        }
    }

    fn share_after(ticks: u32, seen: &Observation) -> (AirtimeShare, Rate) {
        let mut share = AirtimeShare::default();
        let mut rate = Rate::ZERO;
        for tick in 1..=ticks {
            let now = Instant::ZERO + Duration::from_millis(500) * u64::from(tick);
            rate =
                share.on_tick(now, tick, seen.side(Direction::Up), ABOVE_TARGET, Follows::Expected);
        }
        (share, rate)
    }

    /// The rate in kbit/s. It is rounded, because the parts have rounding errors.
    fn kbps(rate: Rate) -> u64 {
        (rate.bits_per_second() + 500) / 1000
    }

    #[test]
    fn the_station_that_delivers_most_does_not_count_among_most() {
        let with_a_hog = |own, hog| {
            let peers = [(2, Some(50), None), (hog, Some(50), None), (2, Some(50), None)];
            share_after(SETTLED_TICKS + 1, &seen((own, Some(50), None), &peers)).0
        };
        // Three at 2 of 50 Mbit/s each, as if all four were like them.
        for share in [with_a_hog(2, 40), with_a_hog(2, 20), with_a_hog(40, 2)] {
            assert_eq!(share.used_by_most, Some(160_000), "{:?}", share.used);
        }
        let three = seen((2, Some(50), None), &[(2, Some(50), None), (40, Some(50), None)]);
        let (share, _) = share_after(SETTLED_TICKS + 1, &three);
        assert_eq!(share.used_by_most, share.used, "too few");
        assert!(share.used > Some(800_000));
    }

    #[test]
    fn recent_announcements_stand_for_all() {
        let recent_of = |ages: [u64; 5]| {
            let peers = [(2, Some(50), None), (4, Some(50), None), (40, Some(50), None)];
            let mut seen = seen((2, Some(50), None), &[peers.as_slice(), &peers[..2]].concat());
            for (peer, age) in seen.peers.iter_mut().zip(ages) {
                peer.age = Duration::from_millis(age);
            }
            share_after(SETTLED_TICKS + 1, &seen).0.recent_by_most
        };
        // Three stations at 2 of 50 Mbit/s each and two at 4: the mean times six.
        assert_eq!(recent_of([0; 5]), Some(336_000), "all but the largest");
        assert_eq!(recent_of([2001, 0, 0, 2001, 2001]), None, "two are too few");
        assert_eq!(recent_of([0, 2001, 2000, 0, 2001]), Some(240_000), "those at 2");
        assert_eq!(recent_of([2001; 5]), None);
    }

    #[test]
    fn of_few_peers_half_are_enough_recent_announcements() {
        for (peers, least) in [(1, 1), (2, 1), (3, 2), (4, 2), (5, 3), (9, 3)] {
            let of = |recent| {
                let mut seen = seen((2, Some(50), None), &vec![(2, Some(50), None); peers]);
                seen.peers.iter_mut().skip(recent).for_each(|peer| peer.age = RECENT * 2);
                share_after(SETTLED_TICKS + 1, &seen).0.recent_by_most
            };
            assert_eq!((of(least - 1), of(least).is_some()), (None, true), "{least} of {peers}");
        }
    }

    #[test]
    fn the_share_does_not_depend_on_the_own_rate() {
        let few = seen((2, Some(50), None), &[(20, Some(50), None), (20, Some(50), None)]);
        let much = seen((20, Some(50), None), &[(2, Some(50), None), (20, Some(50), None)]);
        assert_eq!(kbps(share_after(30, &few).1), kbps(share_after(30, &much).1));
    }

    #[test]
    fn shares_are_equal_airtime_and_not_equal_bytes() {
        let slow = seen((4, Some(5), None), &[(20, Some(50), None)]);
        let fast = seen((20, Some(50), None), &[(4, Some(5), None)]);
        // The stations use 0.8 and 0.4 of the air, together 1.2. The share of each is 0.6.
        assert_eq!(kbps(share_after(30, &slow).1), 3_000);
        assert_eq!(kbps(share_after(30, &fast).1), 30_000);
    }

    #[test]
    fn before_any_rate_is_known_senders_divide_the_air_equally() {
        let young = seen((0, Some(40), None), &[(0, None, None), (0, None, None), (0, None, None)]);
        assert_eq!(kbps(share_after(1, &young).1), 10_000);
        let by_phy = seen((0, None, Some(65)), &[(0, None, None), (0, None, None)]);
        let alone = alone(Rate::from_mbps(65), by_phy.mss());
        assert_eq!(kbps(share_after(1, &by_phy).1), kbps(alone / 3));
    }

    #[test]
    fn without_weights_the_shares_are_equal_rates() {
        let unknown = seen((10, None, None), &[(2, None, Some(65)), (6, None, None)]);
        assert_eq!(kbps(share_after(30, &unknown).1), 6_000);
    }

    #[test]
    fn without_weights_a_station_without_peers_has_the_share_that_it_delivers_at_this_tick() {
        let share = |live_peers, max| {
            let mut alone = seen((10, max, None), &[]);
            (alone.live_peers, alone.up.delivery_rate) = (live_peers, Rate::from_mbps(40));
            kbps(share_after(30, &alone).1)
        };
        assert_eq!(share(0, None), 40_000);
        assert_eq!(share(1, None), 10_000, "peers announce their mean rates");
        assert_eq!(share(0, Some(50)), 46_500, "the expected rate counts");
    }

    #[test]
    fn one_wrong_announcement_changes_the_share_within_limits() {
        let honest = [(10, Some(50), None); 4];
        let share = |liar| {
            let mut peers = honest.to_vec();
            peers.push(liar);
            let (share, rate) = share_after(30, &seen((10, Some(50), None), &peers));
            (kbps(rate), share.total)
        };
        let (fair, total) = share((10, Some(50), None));
        for liar in [(900_000, Some(50), None), (10, Some(1), None), (1, Some(900_000), None)] {
            let (rate, claimed) = share(liar);
            assert!(
                rate * 10 >= fair * 7 && rate * 100 <= fair * 126,
                "{liar:?}: {rate} beside {fair}"
            );
            assert!(claimed <= total.mul_div(4, 1).unwrap(), "{liar:?}: {claimed}");
        }
    }

    #[test]
    fn a_low_sum_lowers_the_share_only_while_there_is_a_queue_or_to_the_least_that_was_found() {
        let little = seen((5, Some(50), None), &[(5, Some(50), None)]);
        let share_with = |queue, follows| {
            let mut share = AirtimeShare::default();
            let rates = (1..=30).map(|tick| {
                let now = Instant::ZERO + Duration::from_millis(500) * u64::from(tick);
                share.on_tick(now, tick, little.side(Direction::Up), queue, follows)
            });
            rates.last().map(kbps)
        };
        assert_eq!(share_with(SHORT, Follows::Expected), Some(25_000));
        assert_eq!(share_with(ABOVE_TARGET, Follows::Expected), Some(25_000 * LEAST_PERCENT / 100));
        for queue in [SHORT, ABOVE_TARGET] {
            assert_eq!(share_with(queue, Follows::Sum { least_percent: 10 }), Some(5_000));
            assert_eq!(share_with(queue, Follows::Sum { least_percent: 40 }), Some(10_000));
        }
    }

    #[test]
    fn the_share_follows_what_the_channel_leaves() {
        let too_long = Queue { exceeds_the_target: true, is_too_long: true };
        let share_beside = |peers, follows, ticks| {
            let mut share = AirtimeShare::default();
            let mut seen = both_ways((5, 0), (5, 0));
            seen.peers.truncate(peers);
            seen.senders = peers as u32 + 1;
            let rates = (1..=ticks).map(|tick| {
                let now = Instant::ZERO + Duration::from_millis(500) * u64::from(tick);
                share.on_tick(now, tick, seen.side(Direction::Up), too_long, follows)
            });
            rates.last().map(kbps)
        };
        let share_of = |follows, ticks| share_beside(1, follows, ticks);
        // Each delivers a tenth of the air, and may have 1 % more.
        assert_eq!(share_of(Follows::Channel, KNOWN_TICKS + 1), Some(5_500));
        let expected = Some(25_000 * LEAST_PERCENT / 100);
        assert_eq!(share_of(Follows::Channel, KNOWN_TICKS), expected);
        assert_eq!(share_of(Follows::Expected, KNOWN_TICKS + 1), expected);
        let alone = Some(50_000 * LEAST_PERCENT / 100);
        assert_eq!(share_beside(0, Follows::Channel, 30), alone, "no peer shows the channel");
    }

    #[test]
    fn what_the_channel_leaves_is_kept_while_no_peer_is_heard() {
        let too_long = Queue { exceeds_the_target: true, is_too_long: true };
        let mut share = AirtimeShare::default();
        let mut seen = both_ways((5, 0), (5, 0));
        let mut next = |tick: u32, seen: &Observation| {
            let now = Instant::ZERO + Duration::from_millis(500) * u64::from(tick);
            kbps(share.on_tick(now, tick, seen.side(Direction::Up), too_long, Follows::Channel))
        };
        let with_peer = (1..=KNOWN_TICKS + 1).map(|tick| next(tick, &seen)).last();
        assert_eq!(with_peer, Some(5_500));
        (seen.peers, seen.senders) = (Vec::new(), 1);
        assert_eq!(next(KNOWN_TICKS + 2, &seen), 11_000, "the whole of the sum");
    }

    /// Two stations that reach 50 Mbit/s alone in each direction: this one with these uploads and downloads,
    /// Mbit/s, and a peer with those.
    fn both_ways(own: (u64, u64), peer_moves: (u64, u64)) -> Observation {
        let max_rate = Some(Rate::from_mbps(50));
        let own_traffic = |mbps: u64| {
            let active =
                crate::ConnectionView { active: mbps > 0, ..crate::observation::example() };
            let mean_rate = Rate::from_mbps(mbps);
            OwnTraffic { connections: vec![active], mean_rate, max_rate, ..OwnTraffic::default() }
        };
        let of_peer = |mbps| Traffic { max_rate, active: mbps > 0, ..traffic(mbps) };
        let (up, down) = (of_peer(peer_moves.0), of_peer(peer_moves.1));
        Observation {
            up: own_traffic(own.0),
            down: own_traffic(own.1),
            senders: 2,
            peers: vec![peer(2, Announcement { up, down, ..Announcement::default() })],
            ..Observation::default()
        }
    }

    #[test]
    fn a_direction_has_what_the_other_leaves_and_half_at_least() {
        let share = |own, direction| {
            let seen = both_ways(own, (25, 0));
            kbps(AirtimeShare::default().on_tick(
                Instant::ZERO,
                1,
                seen.side(direction),
                SHORT,
                Follows::Expected,
            ))
        };
        assert_eq!(share((25, 0), Direction::Up), 25_000, "half of the air");
        // A tenth of the air is used by the downloads, and 0.4 of it are left.
        assert_eq!(share((20, 5), Direction::Up), 20_000);
        assert_eq!(share((20, 5), Direction::Down), 12_500, "half of its share");
        assert_eq!(share((0, 25), Direction::Up), 12_500);
    }

    #[test]
    fn what_is_moved_in_both_directions_counts_as_use_of_the_air() {
        let of = |own, peer| {
            let seen = both_ways(own, peer);
            let mut share = AirtimeShare::default();
            for tick in 1..=SETTLED_TICKS + 1 {
                let now = Instant::ZERO + Duration::from_millis(500) * u64::from(tick);
                share.on_tick(now, tick, seen.side(Direction::Up), SHORT, Follows::Expected);
            }
            (share.used, kbps(share.total), kbps(share.down))
        };
        assert_eq!(of((10, 0), (10, 0)), (Some(400_000), 50_000, 0));
        assert_eq!(of((10, 5), (10, 15)), (Some(800_000), 50_000, 25_000));
        assert_eq!(of((10, 0), (0, 15)), (Some(500_000), 50_000, 25_000));
    }

    #[test]
    fn a_round_is_the_mean_time_for_a_nearly_full_aggregate_at_the_share() {
        let fast = seen((20, Some(50), Some(65)), &[(20, Some(50), Some(65)); 3]);
        let (share, rate) = share_after(1, &fast);
        let window = nearly_full(Some(Rate::from_mbps(65)), fast.mss(), NEARLY_FULL_PERMILLE);
        assert_eq!(Some(share.round), rate.time_for(window));
        // The share of the slow station is a fifth of that of the fast one, and so is its aggregate.
        let slow = seen((4, Some(10), Some(13)), &[(20, Some(50), Some(65))]);
        let (share, rate) = share_after(1, &slow);
        let times = [(13, rate), (65, rate.mul_div(5, 1).unwrap())].map(|(link, rate)| {
            let link = Some(Rate::from_mbps(link));
            rate.time_for(nearly_full(link, slow.mss(), NEARLY_FULL_PERMILLE)).unwrap()
        });
        assert_eq!(share.round, (times[0] + times[1]) / 2);
    }

    #[test]
    fn where_the_windows_follow_the_channel_a_round_is_one_of_aggregates_that_are_full_enough() {
        let seen = seen((8, Some(50), Some(65)), &[(8, Some(50), Some(65)); 3]);
        let queue = Queue { exceeds_the_target: true, is_too_long: true };
        let mut share = AirtimeShare::default();
        let rates = (1..=20).map(|tick| {
            let now = Instant::ZERO + Duration::from_millis(500) * u64::from(tick);
            share.on_tick(now, tick, seen.side(Direction::Up), queue, Follows::Channel)
        });
        let rate = rates.last().expect("it ticked");
        let window = nearly_full(Some(Rate::from_mbps(65)), seen.mss(), FULL_ENOUGH_PERMILLE);
        assert_eq!(Some(share.round), rate.time_for(window));
    }

    #[test]
    fn one_tiny_announced_rate_does_not_lengthen_the_round_of_all() {
        let honest = (10, Some(50), Some(65));
        let round = |max_bps| {
            let mut seen = seen(honest, &[honest; 4]);
            seen.peers[0].announced.up.max_rate = Some(Rate::from_bps(max_bps));
            share_after(1, &seen).0.round
        };
        let fair = round(50_000_000);
        // Of five times one counts twice. A share of 0 bit/s takes for ever.
        for tiny in [1, 1_000_000] {
            assert!(round(tiny) <= fair.mul_div(61, 50).unwrap(), "{:?} {fair:?}", round(tiny));
        }
        let mut all = seen((10, Some(50), Some(65)), &[honest; 4]);
        for peer in &mut all.peers {
            peer.announced.up.max_rate = Some(Rate::from_bps(1));
        }
        assert!(share_after(1, &all).0.round > fair, "most announce it");
    }

    #[test]
    fn the_use_of_the_air_is_known_once_most_rates_are() {
        let alone = seen((10, Some(50), None), &[]);
        assert_eq!(share_after(SETTLED_TICKS, &alone).0.used, None);
        assert_eq!(share_after(SETTLED_TICKS + 1, &alone).0.used, Some(200_000));
        let two = seen((10, Some(50), None), &[(10, Some(50), None)]);
        assert_eq!(share_after(SETTLED_TICKS, &two).0.used, None);
        assert_eq!(share_after(SETTLED_TICKS + 1, &two).0.used, Some(400_000));
        let mut crowd = seen((10, Some(50), None), &[(10, Some(50), None)]);
        crowd.senders = 9;
        assert_eq!(share_after(30, &crowd).0.used, None, "two of nine");
    }

    #[test]
    fn an_active_peer_with_an_rtt_and_no_rate_counts_as_one_that_delivers_nothing() {
        let crowd = |min_rtt| {
            let mut crowd = seen((10, Some(50), None), &[(0, Some(50), None); 4]);
            for peer in &mut crowd.peers {
                peer.announced.up.min_rtt = min_rtt;
            }
            crowd
        };
        let starving = crowd(Some(Duration::from_millis(20)));
        assert_eq!(share_after(KNOWN_TICKS, &starving).0.used, None, "not measured yet");
        let (share, _) = share_after(KNOWN_TICKS + 1, &starving);
        assert_eq!(share.used, Some(200_000), "a fifth of the air among five");
        assert_eq!(share.recent_by_most, Some(0), "the others");
        let mut long_ago = starving.clone();
        for peer in &mut long_ago.peers {
            peer.age = RECENT + RECENT;
        }
        assert_eq!(share_after(KNOWN_TICKS + 1, &long_ago).0.recent_by_most, None);
        assert_eq!(share_after(30, &crowd(None)).0.used, None, "they have no connection");
    }

    #[test]
    fn the_second_largest_part_is_one_of_the_share() {
        let second = |rates: &[u64]| {
            let peers: Vec<_> = rates.iter().map(|rate| (*rate, Some(50), None)).collect();
            share_after(SETTLED_TICKS + 1, &seen((5, Some(50), None), &peers)).0.second
        };
        // Each of the five stations has a share of 10 Mbit/s.
        assert_eq!(second(&[5, 40, 5, 15]), Some(1_500_000));
        assert_eq!(second(&[5, 40, 5, 40]), Some(4_000_000));
        assert_eq!(second(&[5]), Some(0), "there is none");
        let (three, _) = share_after(
            SETTLED_TICKS + 1,
            &seen((9, Some(50), None), &[(6, Some(50), None), (4, Some(50), None)]),
        );
        assert_eq!(three.peer, Some(300_000), "the mean of two");
        assert_eq!(share_after(SETTLED_TICKS, &seen((5, Some(50), None), &[])).0.second, None);
    }

    #[test]
    fn a_station_without_a_phy_rate_has_the_median_weight_of_the_others_where_most_have_one() {
        let share = |links: &[Option<u64>]| {
            let peers: Vec<_> = links.iter().map(|link| (5, None, *link)).collect();
            let share = share_after(30, &seen((5, None, Some(65)), &peers)).0;
            (share.used.is_some(), share.peers)
        };
        let (measured, rate) = share(&[Some(65), Some(65), None]);
        assert!(measured && rate.bits_per_second().abs_diff(5_000_000) < 100, "{rate}");
        let slow = share(&[Some(13), Some(13), None]).1;
        assert!(slow > rate * 2, "the one without a rate counts as the slow ones: {slow}");
        assert!(!share(&[Some(65), None, None]).0, "two of four");
        let mut unknown = seen((5, None, None), &[(5, None, Some(65)); 3]);
        assert!(share_after(30, &unknown).0.used.is_some(), "so does this station");
        unknown.link_rate = Some(Rate::ZERO);
        assert!(share_after(30, &unknown).0.used.is_some(), "zero is no rate");
    }

    #[test]
    fn a_weight_counts_up_to_four_medians_in_the_total() {
        let total = |liar| {
            let mut peers = [(10, Some(50), None); 4].to_vec();
            peers.push((10, Some(liar), None));
            share_after(30, &seen((10, Some(50), None), &peers)).0.total
        };
        assert!(total(900_000) <= total(50).mul_div(2, 1).unwrap(), "{}", total(900_000));
    }

    #[test]
    fn a_rate_far_below_the_phy_rate_shows_another_bottleneck() {
        let of = |max, link, rate| {
            let seen = seen((rate, Some(max), Some(link)), &[(rate, Some(max), Some(link)); 3]);
            share_after(30, &seen).0.bottleneck(seen.side(Direction::Up))
        };
        assert_eq!(of(20, 65, 5), Bottleneck::BeyondTheAir);
        assert_eq!(of(50, 65, 12), Bottleneck::Air);
        assert_eq!(of(24, 54, 6), Bottleneck::Air, "without aggregation 24 of 54 Mbit/s is normal");
        assert_eq!(of(20, 65, 8), Bottleneck::Air, "together they reach more than one alone: loss");
    }
}
