//! What this station delivers, what the air carries in total, what the station reaches alone.

use std::collections::{BTreeMap, VecDeque};

use wakeai_units::{Bytes, Duration, Instant, Rate};

use crate::{PeerView, StationView};

/// A total or solo rate holds this long after it was last reached.
const WINDOW: Duration = Duration::from_secs(10);

/// Ticks that an announced rate is the mean of.
const MEAN_TICKS: usize = 4;

/// The largest value of a sliding window, one candidate per tick.
#[derive(Clone, Debug, Default)]
pub(crate) struct WindowedMax {
    /// Falling values with their times: the front is the maximum.
    falling: VecDeque<(Instant, Rate)>,
}

impl WindowedMax {
    pub(crate) fn push(&mut self, now: Instant, value: Rate) {
        while self.falling.back().is_some_and(|(_, last)| *last <= value) {
            self.falling.pop_back();
        }
        self.falling.push_back((now, value));
        while self.falling.front().is_some_and(|(at, _)| now.saturating_since(*at) > WINDOW) {
            self.falling.pop_front();
        }
    }

    pub(crate) fn get(&self) -> Rate {
        self.falling.front().map_or(Rate::ZERO, |(_, value)| *value)
    }
}

/// A station measures what it reaches alone after it has been alone, with a queue, for so long.
const ALONE_FOR: Duration = Duration::from_secs(10);
/// This much RTT growth shows that the air, and not the sender, was the limit.
const QUEUE: Duration = Duration::from_millis(10);

/// Measures rates from tick to tick.
#[derive(Clone, Debug)]
pub(crate) struct RateWatch {
    configured_max: Option<Rate>,
    /// The PHY rate that the configured one goes with: the first that was told.
    configured_at: Option<Rate>,
    last_tick: Option<Instant>,
    /// Segments delivered as of the last tick, by connection.
    delivered: BTreeMap<u64, u64>,
    /// Bytes delivered in the last ticks, and their lengths.
    recent: VecDeque<(Bytes, Duration)>,
    rate: Rate,
    total: WindowedMax,
    /// Since when no peer has been sending and a queue of ours has stood.
    alone_since: Option<Instant>,
    alone: WindowedMax,
    /// The PHY rate at which `alone` was measured.
    alone_at: Option<Rate>,
}

impl RateWatch {
    pub(crate) fn new(configured_max: Option<Rate>) -> Self {
        Self {
            configured_max,
            configured_at: None,
            last_tick: None,
            delivered: BTreeMap::new(),
            recent: VecDeque::new(),
            rate: Rate::ZERO,
            total: WindowedMax::default(),
            alone_since: None,
            alone: WindowedMax::default(),
            alone_at: None,
        }
    }

    pub(crate) fn on_tick(
        &mut self,
        now: Instant,
        own: &StationView,
        peers: &[PeerView],
        growth: Duration,
    ) {
        let bytes = self.take_delivered(own);
        let elapsed = self.last_tick.map_or(Duration::ZERO, |last| now.saturating_since(last));
        self.last_tick = Some(now);
        self.rate = Rate::of(bytes, elapsed);
        if self.recent.len() == MEAN_TICKS {
            self.recent.pop_front();
        }
        self.recent.push_back((bytes, elapsed));
        let sending = || peers.iter().filter(|peer| peer.sending);
        let announced: Rate = sending().map(|peer| peer.delivery_rate).sum();
        self.total.push(now, announced.saturating_add(self.mean()));
        self.measure_alone(now, own.link_rate, sending().next().is_none() && growth >= QUEUE);
    }

    fn take_delivered(&mut self, own: &StationView) -> Bytes {
        let mut bytes = Bytes::ZERO;
        for connection in &own.connections {
            let earlier = self.delivered.get(&connection.id);
            let earlier = earlier.copied().unwrap_or(connection.delivered);
            let segments = connection.delivered.saturating_sub(earlier);
            bytes = bytes
                .checked_add(Bytes::new(connection.mss.get().saturating_mul(segments)))
                .unwrap_or(bytes);
        }
        self.delivered = own.connections.iter().map(|c| (c.id, c.delivered)).collect();
        bytes
    }

    fn measure_alone(&mut self, now: Instant, link_rate: Option<Rate>, alone: bool) {
        self.configured_at = self.configured_at.or(link_rate.filter(|rate| *rate > Rate::ZERO));
        if self.alone_at != link_rate {
            self.alone = WindowedMax::default(); // measured under another PHY rate
            self.alone_at = link_rate;
            self.alone_since = None;
        }
        if !alone {
            self.alone_since = None;
            return;
        }
        let since = *self.alone_since.get_or_insert(now);
        if now.saturating_since(since) >= ALONE_FOR {
            self.alone.push(now, self.mean());
        }
    }

    /// What was delivered since the tick before.
    pub(crate) fn delivered(&self) -> Rate {
        self.rate
    }

    /// The mean over some ticks: aggregates make a single tick a matter of luck.
    pub(crate) fn mean(&self) -> Rate {
        let sum = |(bytes, span): (Bytes, Duration), (more, longer): &(Bytes, Duration)| {
            (bytes.checked_add(*more).unwrap_or(bytes), span.saturating_add(*longer))
        };
        let (bytes, span) = self.recent.iter().fold((Bytes::ZERO, Duration::ZERO), sum);
        Rate::of(bytes, span)
    }

    /// What the air carries in total.
    pub(crate) fn total(&self) -> Rate {
        self.total.get()
    }

    /// What was configured goes with the PHY rate: a link that has become slower reaches as much less.
    fn configured(&self) -> Option<Rate> {
        let (max, then) = (self.configured_max?, self.configured_at);
        let scaled = then
            .zip(self.alone_at)
            .and_then(|(then, now)| max.mul_div(now.bits_per_second(), then.bits_per_second()));
        Some(scaled.unwrap_or(max))
    }

    /// What this station reaches alone: as configured, else as last measured.
    pub(crate) fn alone(&self) -> Option<Rate> {
        self.configured().or_else(|| Some(self.alone.get()).filter(|rate| *rate > Rate::ZERO))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StationId;
    use crate::observation::example;

    fn at(half_seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(500) * half_seconds
    }

    /// `segments` delivered so far by one connection.
    fn own(segments: u64) -> StationView {
        let connection = crate::ConnectionView { delivered: segments, ..example() };
        StationView { link_rate: None, connections: vec![connection] }
    }

    fn peer(sending: bool, mbps: u64) -> PeerView {
        PeerView {
            station: StationId(2),
            interval: Duration::from_secs(1),
            sending,
            delivery_rate: Rate::from_mbps(mbps),
            max_rate: None,
            link_rate: None,
            min_rtt: None,
            growth: Duration::ZERO,
            reservation: None,
            age: Duration::ZERO,
        }
    }

    #[test]
    fn segments_from_before_the_first_tick_are_not_counted() {
        let mut watch = RateWatch::new(None);
        watch.on_tick(at(0), &own(1_000_000), &[], Duration::ZERO);
        assert_eq!(watch.delivered(), Rate::ZERO);
        watch.on_tick(at(1), &own(1_000_500), &[], Duration::ZERO);
        assert_eq!(watch.delivered(), Rate::from_bps(500 * 1448 * 8 * 2));
    }

    #[test]
    fn the_total_is_a_maximum_of_ten_seconds() {
        let mut watch = RateWatch::new(None);
        watch.on_tick(at(0), &own(0), &[peer(true, 40)], Duration::ZERO);
        for tick in 1..=20 {
            watch.on_tick(at(tick), &own(0), &[peer(true, 5)], Duration::ZERO);
            assert_eq!(watch.total(), Rate::from_mbps(40));
        }
        watch.on_tick(at(21), &own(0), &[peer(true, 5)], Duration::ZERO);
        assert_eq!(watch.total(), Rate::from_mbps(5));
    }

    #[test]
    fn what_a_station_reaches_alone_is_measured_only_alone_and_with_a_queue() {
        let queue = Duration::from_millis(30);
        let run = |ticks: u64, peers: &[PeerView], growth| {
            let mut watch = RateWatch::new(None);
            for tick in 0..ticks {
                watch.on_tick(at(tick), &own(tick * 1000), peers, growth);
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
}
