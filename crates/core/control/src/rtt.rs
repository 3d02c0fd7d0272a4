//! The queueing delay, which is the RTT minus the minimum RTT. Shimada et al. call it "RTT growth"
//! (§3.2 steps 3 and 4).

use std::collections::VecDeque;

use hashbrown::hash_table::Entry;
use wakeai_connection::{Direction, Figures};
use wakeai_units::{Duration, Instant, Rate, Segments};

use crate::places::ById;
use crate::{ConnectionView, PeerView, RttView, Traffic};

/// The largest number of samples that are kept of a connection. Each tick (0.5 s) adds at most one
/// sample.
const HISTORY: usize = 32;
/// The smallest number of stations for which the median of their figures is useful.
pub(crate) const ENOUGH: usize = 3;

/// Watches the current and the minimum RTT of a station's connections in one direction.
///
/// The minimum falls with any lower sample, including a lower minimum that the kernel reports. It
/// rises only where the path has become longer.
///
/// The RTT may be high for two reasons: the path is longer, or packets of this station wait in a
/// queue. The reasons can be told apart when the station sends less: a queue becomes shorter and
/// the RTT falls, but a longer path keeps its RTT. So the minimum is measured anew where the window
/// has fallen to a quarter and the delivery rate has fallen with the window, but the RTT has not
/// fallen. A queue that never empties does not raise the minimum.
///
/// Order of calls: [`RttWatch::on_tick`] once per tick.
#[derive(Clone, Debug, Default)]
pub struct RttWatch {
    connections: ById<Track>,
    ticks: u64,
}

#[derive(Clone, Debug)]
struct Track {
    /// The tick at which the connection last existed.
    seen: u64,
    min: Duration,
    /// The lowest minimum that the kernel has reported. The kernel keeps a minimum for minutes, so
    /// it may belong to an earlier path. Therefore the kernel's minimum lowers `min` only when it
    /// falls below this value.
    kernel_min: Option<Duration>,
    /// The samples since the last one near the minimum.
    grown: VecDeque<Sample>,
    /// No window of these samples is larger.
    widest: Segments,
}

#[derive(Clone, Copy, Debug)]
struct Sample {
    at: Instant,
    rtt: Duration,
    /// The queueing delay that the senders announced then.
    queue: Duration,
    window: Segments,
}

impl RttWatch {
    /// Takes the connections of one tick in one direction and returns the station's RTT: the mean over
    /// the active connections, weighted by their windows. `None` while no active connection has a sample.
    ///
    /// `queue` is the queueing delay that the senders announce ([`announced_queue`]). Where the path has
    /// become longer, the new minimum is the RTT of the small window minus `queue`.
    pub fn on_tick(
        &mut self,
        now: Instant,
        connections: &[ConnectionView],
        queue: Duration,
    ) -> Option<RttView> {
        self.ticks += 1;
        let mut sum = WeightedSum::default();
        for connection in connections {
            let Some(track) = self.track(now, connection, queue) else { continue };
            if let (true, Some(rtt)) = (connection.active, connection.figures.smoothed_rtt) {
                sum.add(connection.figures.cwnd, rtt, track.min);
            }
        }
        let ticks = self.ticks;
        self.connections.retain(|track| track.seen == ticks);
        sum.mean()
    }

    /// Updates the track of a connection. `None` where the connection has not had a sample yet.
    fn track(
        &mut self,
        now: Instant,
        connection: &ConnectionView,
        queue: Duration,
    ) -> Option<&Track> {
        let figures = &connection.figures;
        let track = match (self.connections.entry(connection.id), figures.smoothed_rtt) {
            (Entry::Occupied(known), rtt) => {
                let (_, track) = known.into_mut();
                if let Some(rtt) = rtt {
                    track.update(now, figures, rtt, queue);
                }
                track
            }
            (Entry::Vacant(new), Some(rtt)) => {
                &mut new.insert((connection.id, Track::new(figures, rtt))).into_mut().1
            }
            (Entry::Vacant(_), None) => return None,
        };
        track.seen = self.ticks;
        Some(track)
    }
}

#[derive(Default)]
struct WeightedSum {
    weight: u128,
    current: u128,
    min: u128,
}

impl WeightedSum {
    fn add(&mut self, cwnd: Segments, rtt: Duration, min: Duration) {
        let weight = u128::from(cwnd.get().max(1));
        self.weight += weight;
        self.current += weight * u128::from(rtt.as_nanos());
        self.min += weight * u128::from(min.as_nanos());
    }

    fn mean(&self) -> Option<RttView> {
        let mean = |sum: u128| {
            let nanos = u64::try_from(sum.checked_div(self.weight)?).ok()?;
            Some(Duration::from_nanos(nanos))
        };
        let (current, min) = (mean(self.current)?, mean(self.min)?);
        debug_assert!(min <= current, "a minimum of {min} above the RTT of {current}");
        Some(RttView { current, min, growth: current.saturating_sub(min) })
    }
}

impl Track {
    fn new(figures: &Figures, rtt: Duration) -> Self {
        let samples = [figures.latest_rtt, figures.min_rtt].into_iter().flatten();
        let min = samples.fold(rtt, Duration::min);
        Self {
            seen: 0,
            min,
            kernel_min: figures.min_rtt,
            grown: VecDeque::new(),
            widest: Segments::ZERO,
        }
    }

    fn update(&mut self, now: Instant, figures: &Figures, rtt: Duration, queue: Duration) {
        if let Some(kernel) = figures.min_rtt
            && self.kernel_min.is_none_or(|before| kernel < before)
        {
            self.kernel_min = Some(kernel);
            self.min = self.min.min(kernel);
        }
        self.min = figures.latest_rtt.into_iter().fold(self.min.min(rtt), Duration::min);
        let sample = Sample { at: now, rtt, queue, window: figures.cwnd };
        // Noise alone may raise the RTT from the minimum up to this threshold.
        let doubtful = self.min + self.min / 8 + Duration::from_millis(10);
        if sample.rtt < doubtful {
            self.forget();
            return;
        }
        if self.grown.len() == HISTORY {
            self.grown.pop_front();
        }
        self.widest = self.widest.max(sample.window);
        self.grown.push_back(sample);
        debug_assert!(self.grown.len() <= HISTORY);
        if let Some(path) = self.longer_path().filter(|path| *path >= doubtful) {
            self.min = path;
            self.forget();
        }
    }

    fn forget(&mut self) {
        self.grown.clear();
        self.widest = Segments::ZERO;
    }

    /// The lowest RTT since the window fell to a quarter, without the queueing delay that the
    /// senders announced at that time; `None` unless the delivery rate has fallen with the window.
    fn longer_path(&mut self) -> Option<Duration> {
        let last = self.grown.back()?;
        // Most stations have nearly the same window all the time, and their samples need not be read.
        if last.window.get() > self.widest.get() / 4 {
            return None;
        }
        let before = self.grown.iter().max_by_key(|sample| sample.window)?;
        self.widest = before.window;
        let low = |sample: &&Sample| sample.window.get() <= before.window.get() / 4;
        // The RTT now depends on the window one round trip ago.
        let since = self.grown.iter().rev().take_while(low).last()?;
        let settled = last.at.saturating_since(since.at) >= last.rtt;
        // The delivery rate is window / RTT. If this station had a queue, the queue would shorten
        // while the window falls, and the rate would stay the same. Without a queue the rate falls
        // with the window.
        let rate = |sample: &Sample, other: &Sample| {
            u128::from(sample.window.get()) * u128::from(other.rtt.as_nanos())
        };
        let followed = rate(before, last) * 2 >= rate(last, before) * 5;
        let lowest = self.grown.iter().rev().take_while(low);
        let lowest = lowest.map(|sample| sample.rtt.saturating_sub(sample.queue)).min()?;
        (settled && followed).then_some(lowest)
    }
}

/// The queueing delay that the peers announce in one direction: the upper quartile; zero where fewer than
/// three are known. Among many stations most have measured a part of the queue as a part of their paths, so
/// the median is too short; a station that subtracts it from its RTT takes the rest of the queue for a longer path.
pub(crate) fn announced_queue(peers: &[PeerView], direction: Direction) -> Duration {
    quantile(&mut common_delays(peers, direction, None), 3).unwrap_or(Duration::ZERO)
}

/// The queueing delays of all stations that move data in one direction, this station's `own`
/// included.
pub(crate) fn common_delays(
    peers: &[PeerView],
    direction: Direction,
    own: Option<Duration>,
) -> Vec<Duration> {
    let has_delay = |traffic: &&Traffic| {
        traffic.active && traffic.min_rtt.is_some() && traffic.rate > Rate::ZERO
    };
    let peers = peers.iter().map(|peer| peer.announced.of(direction));
    peers.filter(has_delay).map(|traffic| traffic.growth).chain(own).collect()
}

/// The value below which `quarters` quarters of the values are; `None` where fewer than three are
/// known.
pub(crate) fn quantile<T: Copy + Ord>(values: &mut [T], quarters: usize) -> Option<T> {
    let at = values.len() * quarters / 4;
    (values.len() >= ENOUGH).then(|| *values.select_nth_unstable(at).1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::{example, peer, traffic, uploads};

    /// A path with one connection. The minimum that the kernel reports never rises.
    struct Path {
        watch: RttWatch,
        tick: u64,
        kernel_min: u64,
        /// The queueing delay that the senders announce, ms.
        queue_ms: u64,
    }

    impl Path {
        fn new() -> Self {
            Self { watch: RttWatch::default(), tick: 0, kernel_min: u64::MAX, queue_ms: 0 }
        }

        /// The minimum RTT and the queueing delay, ms, after a tick at this RTT and window.
        fn tick(&mut self, rtt_ms: u64, window: u32) -> (u64, u64) {
            self.kernel_min = self.kernel_min.min(rtt_ms);
            let figures = Figures {
                cwnd: Segments::new(window),
                smoothed_rtt: Some(Duration::from_millis(rtt_ms)),
                latest_rtt: Some(Duration::from_millis(rtt_ms)),
                min_rtt: Some(Duration::from_millis(self.kernel_min)),
                ..example().figures
            };
            let connection = ConnectionView { figures, ..example() };
            self.tick += 1;
            let now = Instant::ZERO + crate::TICK * self.tick;
            let view = self
                .watch
                .on_tick(now, &[connection], Duration::from_millis(self.queue_ms))
                .unwrap();
            (view.min.as_millis(), view.growth.as_millis())
        }
    }

    #[test]
    fn the_queueing_delay_is_the_rtt_above_its_lowest_sample() {
        let mut path = Path::new();
        assert_eq!(path.tick(512, 100), (512, 0));
        assert_eq!(path.tick(600, 100), (512, 88));
        assert_eq!(path.tick(500, 100), (500, 0));
    }

    #[test]
    fn a_minimum_that_only_the_kernel_saw_counts() {
        let mut path = Path::new();
        path.tick(600, 100);
        path.kernel_min = 512;
        assert_eq!(path.tick(600, 100), (512, 88));
    }

    #[test]
    fn a_queue_that_never_empties_does_not_raise_the_minimum() {
        // The bottleneck delivers 800 segments/s, and the path is 100 ms long. The window rises and
        // falls by the factor that the watch looks for, and the RTT follows the window.
        let mut path = Path::new();
        path.tick(100, 80);
        for tick in 0..2_000 {
            let window: u64 = [1_600, 800, 400, 200, 100, 400][tick % 6];
            let (min, growth) = path.tick((window * 1000 / 800).max(100), window as u32);
            assert_eq!((min, growth), (100, (window * 1000 / 800).max(100) - 100));
        }
        for _ in 0..2_000 {
            assert_eq!(
                path.tick(180, 144),
                (100, 80),
                "a constant queue does not raise the minimum"
            );
        }
    }

    #[test]
    fn a_longer_path_is_found_once_sending_less_does_not_help() {
        let mut path = Path::new();
        for _ in 0..10 {
            path.tick(2, 60);
        }
        for window in [60, 60, 30, 30, 15] {
            assert_eq!(path.tick(512, window), (2, 510));
        }
        path.tick(512, 15); // a queue would be shorter one round trip after the window fell
        assert_eq!(path.tick(512, 15), (512, 0));
    }

    #[test]
    fn the_delay_that_all_announce_is_no_part_of_a_longer_path() {
        let learnt = |queue_ms| {
            let mut path = Path { queue_ms, ..Path::new() };
            for (rtt, window) in [(2, 60), (512, 60), (512, 15), (512, 15), (512, 15)] {
                path.tick(rtt, window);
            }
            path.tick(512, 15)
        };
        assert_eq!(learnt(0), (512, 0));
        assert_eq!(learnt(80), (432, 80));
        assert_eq!(learnt(9_999), (2, 510), "a longer delay changes nothing");
    }

    #[test]
    fn a_queue_that_all_drain_together_is_no_longer_path() {
        // The window falls to a quarter and the RTT follows late, because the others' packets still
        // wait. What the others announce is that queue; after a while some of them announce less.
        let mut path = Path::new();
        path.tick(20, 16);
        for (rtt, window, queue) in
            [(140, 16, 110), (110, 16, 97), (107, 2, 97), (81, 2, 72), (51, 2, 30), (48, 2, 7)]
        {
            path.queue_ms = queue;
            assert_eq!(path.tick(rtt, window).0, 20, "{rtt} ms");
        }
    }

    #[test]
    fn a_shorter_path_is_found_at_once() {
        let mut path = Path::new();
        path.tick(512, 400);
        assert_eq!(path.tick(2, 400), (2, 0));
    }

    #[test]
    fn the_station_s_rtt_is_the_mean_of_its_senders_by_window() {
        let view = |id, window, rtt_ms, active| {
            let figures = Figures {
                cwnd: Segments::new(window),
                smoothed_rtt: Some(Duration::from_millis(rtt_ms)),
                latest_rtt: Some(Duration::from_millis(rtt_ms)),
                min_rtt: Some(Duration::from_millis(rtt_ms - 10)),
                ..example().figures
            };
            ConnectionView { id, figures, active, ..example() }
        };
        let connections =
            vec![view(1, 300, 100, true), view(2, 100, 20, true), view(3, 9, 999, false)];
        let rtt = RttWatch::default().on_tick(Instant::ZERO, &connections, Duration::ZERO).unwrap();
        assert_eq!(rtt.current, Duration::from_millis(80));
        assert_eq!(rtt.growth, Duration::from_millis(10));
        let idle = [view(3, 9, 999, false)];
        assert_eq!(RttWatch::default().on_tick(Instant::ZERO, &idle, Duration::ZERO), None);
    }

    #[test]
    fn the_announced_queue_is_the_upper_quartile_of_at_least_three() {
        let queue = |growths: &[u64], direction| {
            let peers: Vec<_> = (1..)
                .zip(growths)
                .map(|(id, growth)| {
                    let growth = Duration::from_millis(*growth);
                    peer(id, uploads(Traffic { min_rtt: Some(growth), growth, ..traffic(10) }))
                })
                .collect();
            announced_queue(&peers, direction).as_millis()
        };
        assert_eq!(queue(&[10, 20], Direction::Up), 0);
        assert_eq!(queue(&[30, 10, 20], Direction::Up), 30);
        assert_eq!(queue(&[10, 10, 10, 10, 10, 10, 60, 9_999], Direction::Up), 60);
        assert_eq!(queue(&[30, 10, 20], Direction::Down), 0);
    }
}
