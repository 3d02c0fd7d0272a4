//! Measures, for one direction, the delivery rate of this station, the aggregate goodput, and the rate
//! that this station reaches alone.

use std::collections::VecDeque;

use wakeai_connection::Direction;
use wakeai_units::{Bytes, Duration, Instant, Rate};

use crate::lasting::LastingRate;
use crate::windowed::WindowedMax;
use crate::{ConnectionView, PeerView};

/// An announced rate is the mean over this many ticks (decisions, one every 0.5 s).
pub(crate) const MEAN_TICKS: u32 = 4;

/// The bytes that the station's connections delivered since the last tick.
fn delivered(own: &[ConnectionView]) -> Bytes {
    own.iter().fold(Bytes::ZERO, |sum, one| sum.checked_add(one.moved()).unwrap_or(sum))
}

fn scaled(rate: Rate, numerator: Rate, denominator: Rate) -> Rate {
    rate.times(numerator.bits_per_second(), denominator.bits_per_second())
}

/// A station measures the rate that it reaches alone after it was the only sender and had a queue
/// for this long.
const ALONE_FOR: Duration = Duration::from_secs(10);
/// A queueing delay of at least this length shows that the air limits the rate, and not the sender.
const QUEUE: Duration = Duration::from_millis(10);

/// TCP goodput is at most this part of the PHY rate, percent.
const MOST_GOODPUT_PERCENT: u64 = 90;
/// A station that alone reaches less than this percentage of its PHY rate is not limited by the
/// air.
pub(crate) const AIR_LIMITED_PERCENT: u64 = 40;

/// What a station knows of itself in one direction at a tick.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RateTick<'a> {
    pub(crate) direction: Direction,
    pub(crate) connections: &'a [ConnectionView],
    pub(crate) link_rate: Option<Rate>,
    /// Whether the station moves nothing in the other direction.
    pub(crate) other_is_idle: bool,
}

/// Measures the rates, tick by tick.
#[derive(Clone, Debug, Default)]
pub(crate) struct RateWatch {
    configured_max: Option<Rate>,
    /// The PHY rate at which `configured_max` was measured.
    configured_at: Option<Rate>,
    link: LastingRate,
    link_is_known: bool,
    last_tick: Option<Instant>,
    /// The bytes delivered in each of the last ticks, and the length of the tick.
    recent: VecDeque<(Bytes, Duration)>,
    /// What the station delivered over the last tick.
    pub(crate) rate: Rate,
    total: WindowedMax<Rate>,
    /// The time since which no peer has been sending and this station has had a queue.
    alone_since: Option<Instant>,
    alone: WindowedMax<Rate>,
}

impl RateWatch {
    pub(crate) fn new(configured_max: Option<Rate>) -> Self {
        Self { configured_max, ..Self::default() }
    }

    pub(crate) fn on_tick(
        &mut self,
        now: Instant,
        tick: RateTick<'_>,
        peers: &[PeerView],
        growth: Duration,
    ) {
        let bytes = delivered(tick.connections);
        let elapsed = self.last_tick.map_or(Duration::ZERO, |last| now.saturating_since(last));
        self.last_tick = Some(now);
        self.rate = Rate::of(bytes, elapsed);
        if self.recent.len() == MEAN_TICKS as usize {
            self.recent.pop_front();
        }
        self.recent.push_back((bytes, elapsed));
        let traffic = peers.iter().map(|peer| peer.announced.of(tick.direction));
        let announced: Rate = traffic.filter(|it| it.active).map(|it| it.rate).sum();
        self.total.push(now, announced.saturating_add(self.mean()));
        self.take_link_rate(now, tick.link_rate);
        let alone = tick.other_is_idle && !peers.iter().any(|peer| peer.announced.is_active());
        self.measure_alone(now, alone && growth >= QUEUE);
        if alone {
            self.outdo_alone(now);
        }
    }

    /// Takes the PHY rate. When the PHY rate has changed for two seconds, the measured `alone` rate
    /// is scaled in proportion.
    fn take_link_rate(&mut self, now: Instant, link_rate: Option<Rate>) {
        if let Some((before, after)) = self.link.on_tick(now, link_rate) {
            self.alone.scale(|rate| scaled(rate, after, before));
            self.alone_since = None;
        }
        self.link_is_known = link_rate.is_some();
        self.take_configured_at();
    }

    /// Finds the PHY rate at which the configured maximum was measured. It is the first lasting PHY
    /// rate that can carry the maximum. Where this PHY rate can carry far more than the maximum,
    /// the air does not limit the station, and a higher PHY rate does not raise the maximum.
    fn take_configured_at(&mut self) {
        let Some((max, link)) = self.configured_max.zip(self.link.rate) else { return };
        let fits = match self.configured_at {
            None => max <= link.times(MOST_GOODPUT_PERCENT, 100),
            Some(at) => link > at && max < at.times(AIR_LIMITED_PERCENT, 100),
        };
        if fits {
            self.configured_at = Some(link);
        }
    }

    fn measure_alone(&mut self, now: Instant, alone: bool) {
        if !alone {
            self.alone_since = None;
            return;
        }
        let since = *self.alone_since.get_or_insert(now);
        if now.saturating_since(since) >= ALONE_FOR && !self.link.is_in_doubt() {
            self.alone.push(now, self.mean());
        }
    }

    /// Raises the measured `alone` rate to a higher delivery rate, also without a queue. A station
    /// may have measured a low rate while the air was disturbed. Its windows are then too short to
    /// make a queue, and without a queue it does not measure again.
    fn outdo_alone(&mut self, now: Instant) {
        let (measured, mean) = (self.alone.get(), self.mean());
        if measured > Rate::ZERO && mean > measured && !self.link.is_in_doubt() {
            self.alone.push(now, mean);
        }
    }

    /// The mean delivery rate over [`MEAN_TICKS`] ticks. The rate of a single tick is
    /// uncertain, because an aggregate falls either into this tick or into the next one.
    pub(crate) fn mean(&self) -> Rate {
        let sum = |(bytes, span): (Bytes, Duration), (more, longer): &(Bytes, Duration)| {
            (bytes.checked_add(*more).unwrap_or(bytes), span.saturating_add(*longer))
        };
        let (bytes, span) = self.recent.iter().fold((Bytes::ZERO, Duration::ZERO), sum);
        Rate::of(bytes, span)
    }

    /// The aggregate goodput: the largest sum of all delivery rates in the last ten seconds.
    pub(crate) fn total(&self) -> Rate {
        self.total.get()
    }

    /// The configured maximum, scaled in proportion to the PHY rate.
    fn configured(&self) -> Option<Rate> {
        let max = self.configured_max?;
        let rates = self.link.rate.zip(self.configured_at).filter(|_| self.link_is_known);
        Some(rates.map_or(max, |(now, then)| scaled(max, now, then)))
    }

    /// The rate that this station reaches alone: the configured rate, or else the measured rate.
    pub(crate) fn alone(&self) -> Option<Rate> {
        self.configured().or_else(|| Some(self.alone.get()).filter(|rate| *rate > Rate::ZERO))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::{self, example};
    use crate::{Announcement, ConnectionView, Traffic};

    fn at(half_seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(500) * half_seconds
    }

    /// Makes a tick of a station with one connection, which delivered `segments` in it.
    fn tick(
        watch: &mut RateWatch,
        now: Instant,
        (link_rate, segments): (Option<Rate>, u32),
        peers: &[PeerView],
        growth: Duration,
    ) {
        let connections = &[ConnectionView { delivered: segments, ..example() }];
        let direction = Direction::Up;
        let tick = RateTick { direction, connections, link_rate, other_is_idle: true };
        watch.on_tick(now, tick, peers, growth);
    }

    fn peer(active: bool, mbps: u64) -> PeerView {
        let up = Traffic { active, ..observation::traffic(mbps) };
        observation::peer(2, observation::uploads(up))
    }

    #[test]
    fn the_rate_is_what_was_delivered_over_the_length_of_the_tick() {
        let mut watch = RateWatch::new(None);
        tick(&mut watch, at(0), (None, 0), &[], Duration::ZERO);
        assert_eq!(watch.rate, Rate::ZERO);
        tick(&mut watch, at(1), (None, 500), &[], Duration::ZERO);
        assert_eq!(watch.rate, Rate::from_bps(500 * 1448 * 8 * 2));
    }

    #[test]
    fn the_total_is_a_maximum_of_ten_seconds() {
        let mut watch = RateWatch::new(None);
        tick(&mut watch, at(0), (None, 0), &[peer(true, 40)], Duration::ZERO);
        for number in 1..=20 {
            tick(&mut watch, at(number), (None, 0), &[peer(true, 5)], Duration::ZERO);
            assert_eq!(watch.total(), Rate::from_mbps(40));
        }
        tick(&mut watch, at(21), (None, 0), &[peer(true, 5)], Duration::ZERO);
        assert_eq!(watch.total(), Rate::from_mbps(5));
    }

    #[test]
    fn the_rate_alone_is_measured_only_alone_and_with_a_queue() {
        let queue = Duration::from_millis(30);
        let run = |ticks: u64, peers: &[PeerView], growth| {
            let mut watch = RateWatch::new(None);
            for number in 0..ticks {
                tick(&mut watch, at(number), (None, 1000), peers, growth);
            }
            watch.alone()
        };
        let rate = Some(Rate::from_bps(1000 * 1448 * 8 * 2));
        assert_eq!(run(30, &[], queue), rate);
        assert_eq!(run(30, &[peer(false, 0)], queue), rate);
        assert_eq!(run(10, &[], queue), None, "too short");
        assert_eq!(run(30, &[], Duration::ZERO), None, "no queue");
        assert_eq!(run(30, &[peer(true, 1)], queue), None, "not alone");
    }

    #[test]
    fn a_station_that_moves_data_the_other_way_is_not_alone() {
        let alone = |other_is_idle, receives| {
            let mut watch = RateWatch::new(None);
            let down = Traffic { active: receives, ..Traffic::default() };
            let peer = observation::peer(2, Announcement { down, ..Announcement::default() });
            let connections = &[ConnectionView { delivered: 1000, ..example() }];
            for number in 0..30 {
                let (direction, link_rate) = (Direction::Up, None);
                let tick = RateTick { direction, connections, link_rate, other_is_idle };
                watch.on_tick(
                    at(number),
                    tick,
                    std::slice::from_ref(&peer),
                    Duration::from_millis(30),
                );
            }
            watch.alone().is_some()
        };
        assert!(alone(true, false));
        assert!(!alone(false, false), "it receives");
        assert!(!alone(true, true), "a peer receives");
    }

    /// A station that is the only sender. It has a queue while it delivers.
    struct Alone {
        watch: RateWatch,
        tick: u64,
    }

    impl Alone {
        fn new(configured: Option<u64>) -> Self {
            Self { watch: RateWatch::new(configured.map(Rate::from_mbps)), tick: 0 }
        }

        /// The rate that the station reaches alone, kbit/s, after `ticks` ticks. Each tick delivers
        /// `segments`. The PHY rate changes from tick to tick through `link_mbps`; 0 is an unknown
        /// rate.
        fn run(&mut self, ticks: u64, link_mbps: &[u64], segments: u32) -> Option<u64> {
            for _ in 0..ticks {
                let link = link_mbps[self.tick as usize % link_mbps.len()];
                let link_rate = Some(Rate::from_mbps(link)).filter(|rate| *rate > Rate::ZERO);
                let queue = Duration::from_millis(if segments > 0 { 30 } else { 0 });
                tick(&mut self.watch, at(self.tick), (link_rate, segments), &[], queue);
                self.tick += 1;
            }
            self.watch.alone().map(|rate| rate.bits_per_second() / 1_000)
        }
    }

    /// The rate of 1000 segments in each tick, kbit/s.
    const MEASURED: u64 = 1000 * 1448 * 8 * 2 / 1_000;

    #[test]
    fn a_small_or_short_change_of_the_phy_rate_keeps_the_measure() {
        let mut alone = Alone::new(None);
        assert_eq!(alone.run(30, &[65], 1000), Some(MEASURED));
        assert_eq!(alone.run(30, &[65, 58, 72], 0), Some(MEASURED));
        assert_eq!(alone.run(30, &[65, 13, 6, 13], 0), Some(MEASURED));
        assert_eq!(alone.run(30, &[0], 0), Some(MEASURED), "unknown");
    }

    #[test]
    fn a_higher_rate_disproves_the_measure_also_without_a_queue() {
        let mut alone = Alone::new(None);
        assert_eq!(alone.run(30, &[65], 100), Some(MEASURED / 10));
        let mut deliver = |segments, peers: &[PeerView]| {
            for _ in 0..8 {
                let now = at(alone.tick);
                let own = (Some(Rate::from_mbps(65)), segments);
                tick(&mut alone.watch, now, own, peers, Duration::ZERO);
                alone.tick += 1;
            }
            alone.watch.alone().map(|rate| rate.bits_per_second() / 1_000)
        };
        assert_eq!(deliver(500, &[peer(true, 1)]), Some(MEASURED / 10), "not alone");
        assert_eq!(deliver(1000, &[]), Some(MEASURED));
        assert_eq!(deliver(10, &[]), Some(MEASURED), "a lower rate says nothing without a queue");
    }

    #[test]
    fn a_lasting_change_scales_the_measure_until_the_next_one() {
        let mut alone = Alone::new(None);
        alone.run(30, &[65], 1000);
        assert_eq!(alone.run(5, &[13], 0), Some(MEASURED / 5));
        assert_eq!(alone.run(5, &[65], 0), Some(MEASURED));
        alone.run(5, &[13], 0);
        assert_eq!(alone.run(60, &[13], 250), Some(MEASURED / 4));
    }

    #[test]
    fn a_configured_rate_rises_with_the_phy_rate() {
        let mut alone = Alone::new(Some(10));
        assert_eq!(alone.run(9, &[13], 0), Some(10_000));
        assert_eq!(alone.run(9, &[65], 0), Some(50_000));
        assert_eq!(alone.run(9, &[6], 0), Some(4_615));
        let mut wire = Alone::new(Some(10));
        wire.run(9, &[65], 0);
        assert_eq!(wire.run(9, &[130], 0), Some(10_000), "the wire is the limit");
        assert_eq!(wire.run(9, &[65], 0), Some(5_000));
    }

    #[test]
    fn a_configured_rate_falls_with_the_phy_rate() {
        let mut alone = Alone::new(Some(40));
        assert_eq!(alone.run(9, &[0], 0), Some(40_000), "before any is known");
        assert_eq!(
            alone.run(9, &[13], 0),
            Some(40_000),
            "13 Mbit/s cannot carry it: the PHY rate to which it belongs is unknown"
        );
        assert_eq!(alone.run(9, &[130], 0), Some(40_000));
        assert_eq!(alone.run(4, &[13], 0), Some(40_000), "it may not last");
        assert_eq!(alone.run(9, &[13], 0), Some(4_000));
        assert_eq!(alone.run(9, &[0], 0), Some(40_000), "no longer known");
        assert_eq!(alone.run(9, &[130], 0), Some(40_000));
    }
}
