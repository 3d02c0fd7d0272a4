//! The rate of what obeys no window: datagrams.
//!
//! Such traffic is limited by the rate at which it leaves the host, and not by what it has in flight. A
//! rate cannot hold a queue at a length: with a rate a little above what the air leaves, the queue grows
//! without an end. So the limit is a little less than the part of the share, and follows the queueing delay that
//! the stations announce.

use wakeai_units::{Bytes, Duration, Instant, Rate};

use super::AirtimeKnobs;
use super::aggregate::aggregate;
use super::channel::Queue;
use super::share::{AirtimeShare, Follows};
use super::target;
use crate::driver::TICK;
use crate::observation::Side;
use crate::rtt::{common_delays, quantile};
use crate::{AirtimeState, Phase};

/// No limit.
const UNLIMITED: Rate = Rate::from_bps(u64::MAX);
/// The usual limit, permille of the part of the share.
const USUAL: u32 = 950;
/// While the queue is longer than its target, the limit falls by this much in each tick, permille, down to
/// the least limit.
const LESS: u32 = 50;
const LEAST: u32 = 500;
/// While the queue is nearly empty, the limit grows by this factor in each tick, permille, because the
/// air has room.
const MORE: u32 = 1250;
/// While there is a queue, the limit is at most this part of what the median peer delivers, permille.
const PEERS: u32 = 1030;

/// The longest time between two bursts: a datagram waits for so much longer at most.
const LONGEST_BURST: Duration = Duration::from_millis(30);
/// The part of the largest aggregate that the datagrams of a burst have, percent. A burst that is longer than an aggregate by a
/// few datagrams takes two turns.
const BURST_PERCENT: u64 = 90;

/// The time between two bursts of datagrams at this rate: that of a nearly full aggregate, or zero where the station does not
/// aggregate. Datagrams that leave evenly would each have a turn, or share aggregates of a few.
pub(super) fn burst(rate: Rate, link_rate: Option<Rate>) -> Duration {
    let burst = aggregate(link_rate).map(|all| Bytes::new(all.get() * BURST_PERCENT / 100));
    let time = burst.and_then(|bytes| rate.time_for(bytes));
    time.map_or(Duration::ZERO, |time| time.min(LONGEST_BURST))
}

/// Finds the limit, tick by tick.
#[derive(Clone, Debug, Default)]
pub(super) struct RateLimit {
    share: AirtimeShare,
    /// The number of ticks since the station began to send what obeys no window.
    ticks: u32,
    /// The target of the last tick.
    target: Duration,
    /// The limit, permille of the part of the share.
    factor: u32,
}

impl RateLimit {
    /// The largest rate of all that obeys no window, until the next tick (0.5 s); `None` while the
    /// station sends nothing of the kind, or while its share is not known. With the limit comes the state from
    /// which it follows.
    pub(super) fn on_tick(
        &mut self,
        now: Instant,
        knobs: &AirtimeKnobs,
        seen: Side<'_>,
    ) -> Option<(Rate, AirtimeState)> {
        let own = seen.own();
        let (free, windowed) = (own.unwindowed().count() as u64, own.windowed().count() as u64);
        if free == 0 {
            *self = Self::default();
            return None;
        }
        self.ticks = self.ticks.saturating_add(1);
        let delay = announced_delay(seen);
        // A longer queue lowers the limit itself, below.
        let exceeds_the_target = delay.is_some_and(|delay| delay > self.target);
        let queue = Queue { exceeds_the_target, is_too_long: false };
        let share = self.share.on_tick(now, self.ticks, seen, queue, Follows::Expected);
        let path = own.rtt.map(|rtt| rtt.min);
        self.target = target::queue(knobs, seen, path, &self.share, self.share.bottleneck(seen));
        self.adapt(delay, seen.seen.senders);
        if share == Rate::ZERO {
            return None;
        }
        // What the connections with windows leave of the share is for the rest.
        let rate_of = |limits| own.rate_of(limits, TICK);
        let part = share.times(free, free + windowed);
        let part = part.max(share.saturating_sub(rate_of(crate::Limit::Window)));
        let growth = delay.unwrap_or(Duration::ZERO);
        let (senders, rate) = (seen.seen.senders, own.mean_rate.max(own.delivery_rate));
        let phase = if self.factor > USUAL { Phase::Probing } else { Phase::Steady };
        let state = AirtimeState { senders, rate, share, growth, target: self.target, phase };
        let rate = part.times(u64::from(self.factor), 1000);
        let rate = if exceeds_the_target { rate.min(self.as_peers(part, share)) } else { rate };
        Some((rate, state))
    }

    /// The limit while there is a queue: what the median peer has of its share, and a little more. Windows
    /// that hold the queue at its target deliver less than the share where the air carries less than was
    /// expected, and a rate would not.
    fn as_peers(&self, part: Rate, share: Rate) -> Rate {
        if self.share.median == Rate::ZERO {
            return UNLIMITED;
        }
        let median = self.share.median.times(u64::from(PEERS), 1000);
        part.mul_div(median.bits_per_second(), share.bits_per_second())
            .unwrap_or(UNLIMITED)
            .max(part / 2)
    }

    /// Adapts the limit to the queueing delay. Where the delay is not known and there is an expected sum of all
    /// rates, the limit is the usual one. Where there is none either, only more traffic can show what the
    /// air carries.
    fn adapt(&mut self, delay: Option<Duration>, senders: u32) {
        let is_measured = self.share.used.is_some();
        let has_room = delay.map_or(!is_measured, |delay| delay < self.target / 2);
        let is_full = delay.is_some_and(|delay| delay > self.target * 2);
        self.factor = if self.factor == 0 {
            USUAL
        } else if has_room {
            let most = senders.saturating_mul(1000).max(MORE);
            (self.factor.saturating_mul(MORE) / 1000).min(most)
        } else if is_full {
            self.factor.min(USUAL + LESS).saturating_sub(LESS).max(LEAST)
        } else if delay.is_none() {
            USUAL
        } else {
            self.factor.max((self.factor + LESS).min(USUAL))
        };
    }
}

/// The queueing delay that this station and its peers see: the median, or the longest of one or two.
/// `None` where nobody knows one.
fn announced_delay(seen: Side<'_>) -> Option<Duration> {
    let own = seen.own().rtt.filter(|_| seen.own().is_active()).map(|rtt| rtt.growth);
    let mut delays = common_delays(&seen.seen.peers, seen.direction, own);
    quantile(&mut delays, 2).or_else(|| delays.into_iter().max())
}

#[cfg(test)]
mod tests {
    use wakeai_connection::Direction;

    use super::super::aggregate;
    use super::*;
    use crate::observation::{example, peer, traffic, uploads};
    use crate::{ConnectionView, Limit, Observation, OwnTraffic, RttView, Traffic};

    /// A station at 65 Mbit/s that sends datagrams, and peers that deliver 5 Mbit/s each and see this
    /// queueing delay, ms; `None` where they see none.
    fn seen(peers: u64, delay_ms: Option<u64>) -> Observation {
        let link_rate = Some(Rate::from_mbps(65));
        let peers = (1..=peers).map(|id| {
            let growth = Duration::from_millis(delay_ms.unwrap_or(0));
            let min_rtt = delay_ms.map(|_| Duration::from_millis(30));
            let up = Traffic { min_rtt, growth, ..traffic(5) };
            peer(id, crate::Announcement { link_rate, ..uploads(up) })
        });
        let peers: Vec<_> = peers.collect();
        let mean_rate = Rate::from_mbps(5);
        let connections = vec![flow(1, 216)];
        let up = OwnTraffic { connections, mean_rate, ..OwnTraffic::default() };
        Observation {
            link_rate,
            senders: peers.len() as u32 + 1,
            peers,
            up,
            ..Observation::default()
        }
    }

    /// A flow of datagrams of 1,448 bytes, and of these this many in a tick.
    fn flow(id: u64, delivered: u32) -> ConnectionView {
        ConnectionView { id, limit: Limit::Rate, delivered, ..example() }
    }

    /// The limit in kbit/s after each of `ticks` ticks; 0 is none.
    fn limits(ticks: u64, seen: &Observation) -> Vec<u64> {
        let (mut law, knobs) = (RateLimit::default(), AirtimeKnobs::default());
        let tick = |tick| {
            let now = Instant::ZERO + TICK * tick;
            let limit = law.on_tick(now, &knobs, seen.side(Direction::Up));
            limit.map(|(rate, _)| rate).map_or(0, |rate| rate.bits_per_second() / 1000)
        };
        (1..=ticks).map(tick).collect()
    }

    /// The share of one of eight stations at 65 Mbit/s, kbit/s, while the queue is not long.
    fn eighth() -> u64 {
        let seen = seen(7, None);
        aggregate::alone(Rate::from_mbps(65), seen.up.mss()).bits_per_second() / 8000
    }

    #[test]
    fn the_datagrams_of_a_burst_fill_an_aggregate() {
        let millis = |mbps, link: Option<u64>| {
            burst(Rate::from_mbps(mbps), link.map(Rate::from_mbps)).as_millis()
        };
        // Nine tenths of 65,535 bytes are 11 ms at 40 Mbit/s, and more than 30 ms at 6 Mbit/s.
        assert_eq!((millis(40, Some(390)), millis(6, Some(65))), (11, 30));
        assert_eq!(millis(6, Some(54)), 0, "802.11g does not aggregate");
        assert_eq!(millis(6, None), 0);
        assert_eq!(burst(Rate::ZERO, Some(Rate::from_mbps(65))), Duration::ZERO);
    }

    #[test]
    fn the_law_asks_for_bursts_where_it_limits_a_rate() {
        let burst_of = |seen: &Observation| {
            let mut law = super::super::Airtime::new(AirtimeKnobs::default());
            let bounds = (1..10)
                .map(|tick| crate::Law::on_tick(&mut law, Instant::ZERO + TICK * tick, seen).0);
            let bounds = bounds.last().expect("it ticked");
            (bounds.rate, bounds.burst)
        };
        let (rate, found) = burst_of(&seen(7, None));
        let rate = rate.expect("datagrams are sent");
        assert!(found > Duration::ZERO && found == burst(rate, Some(Rate::from_mbps(65))));
        let idle = Observation { up: OwnTraffic::default(), ..seen(7, None) };
        assert_eq!(burst_of(&idle), (None, Duration::ZERO));
    }

    #[test]
    fn without_a_known_delay_the_limit_is_a_little_less_than_the_share() {
        let limits = limits(20, &seen(7, None));
        assert!(limits[19].abs_diff(eighth() * 950 / 1000) <= 1, "{limits:?} of {}", eighth());
    }

    #[test]
    fn while_the_queue_is_nearly_empty_the_limit_grows_to_the_whole_air_at_most() {
        let limits = limits(30, &seen(7, Some(1)));
        assert!(limits.windows(2).skip(8).all(|pair| pair[0] <= pair[1]), "{limits:?}");
        assert!(limits[29].abs_diff(eighth() * 8) <= 8, "{limits:?}");
    }

    #[test]
    fn while_there_is_a_queue_the_limit_is_near_the_rate_of_the_median_peer() {
        let limits = limits(30, &seen(7, Some(20)));
        assert!(limits[29].abs_diff(5_150) <= 1, "{limits:?}");
    }

    #[test]
    fn while_the_queue_is_long_the_limit_falls_to_half_of_the_part() {
        // Two peers are too few for a median.
        let seen = seen(2, Some(60));
        let limits = limits(40, &seen);
        assert!(limits[..9].windows(2).all(|pair| pair[0] > pair[1]), "{limits:?}");
        // The share is a third of the 93 % that the air carries at least.
        let half = eighth() * 8 * 93 / 100 / 3 / 2;
        assert!(limits[39].abs_diff(half) <= 2, "{limits:?}");
    }

    #[test]
    fn what_connections_with_windows_leave_of_the_share_is_for_the_rest() {
        let mut seen = seen(7, None);
        let with = |segments, seen: &mut Observation| {
            seen.up.connections =
                vec![flow(1, 100), ConnectionView { id: 2, delivered: segments, ..example() }];
            limits(20, seen)[19]
        };
        let half = eighth() * 950 / 2000;
        assert!(with(500, &mut seen).abs_diff(half) <= 1, "the connection uses its part");
        // 43 segments in a tick are 1 Mbit/s.
        let rest = with(43, &mut seen);
        assert!(rest.abs_diff((eighth() - 996) * 950 / 1000) <= 2, "{rest} beside {half}");
    }

    #[test]
    fn nothing_is_limited_where_no_datagrams_are_sent_or_no_share_is_known() {
        let mut idle = seen(7, None);
        idle.up.connections = vec![example()];
        assert_eq!(limits(3, &idle), [0, 0, 0]);
        let mut unknown = seen(0, None);
        (unknown.link_rate, unknown.up.mean_rate) = (None, Rate::ZERO);
        assert_eq!(limits(3, &unknown), [0, 0, 0]);
    }

    #[test]
    fn the_windows_of_the_station_leave_what_its_datagrams_use() {
        let mut seen = seen(7, Some(14));
        let rtt = Duration::from_millis(44);
        let view = RttView {
            current: rtt,
            min: Duration::from_millis(30),
            growth: Duration::from_millis(14),
        };
        seen.up.rtt = Some(view);
        let mut window = |datagrams: &[u32]| {
            seen.up.connections = vec![ConnectionView { id: 9, ..example() }];
            seen.up.connections.extend((1..).zip(datagrams).map(|(id, sent)| flow(id, *sent)));
            let mut law = super::super::Airtime::new(AirtimeKnobs::default());
            let ticks = (1..30).map(|tick| {
                crate::Law::on_tick(&mut law, Instant::ZERO + TICK * tick, &seen).0.ceiling.get()
            });
            ticks.last()
        };
        let whole = window(&[]).expect("it ticked");
        // The flow sends as much as it may and more: the connection keeps its half.
        let half = window(&[9_999]).expect("it ticked");
        assert!(half.abs_diff(whole / 2) <= 2, "{half} of {whole}");
        // 5 segments in a tick are a fiftieth of the share.
        assert!(window(&[5]).expect("it ticked").abs_diff(whole) <= 2);
    }
}
