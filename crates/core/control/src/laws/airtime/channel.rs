//! Follows what the channel leaves to the uploads of this access point.
//!
//! Stations of other access points, hidden stations and radios of another kind take air on the channel. Windows for the whole
//! air then fill the queues of the stations, and nobody tells how many others there are. So where its queue is too long, a station
//! holds the window for the sum that the stations of its access point deliver, and for [`ADDED`] more of each of them.
//!
//! This makes the stations of all access points equal. A station that delivers `x` with the window `(x + a)·(R + q)` sees by
//! Little's law the queueing delay `D` with `x·(R + D) = (x + a)·(R + q)`, so `x = a·(R + q)/(D - q)`. Stations that contend for one channel
//! see about the same delay, and the part `a` of the air is the same for all of them. So their rates are about the same, however many stations
//! each access point has (the fairness of FAST TCP: Wei, Jin, Low and Hegde, 2006).
//!
//! Downloads wait in the queue of the access point, which strangers may share ([`super::neighbours`]).

use super::share::{LEAST_PERCENT, WHOLE};

/// What each station has above what it delivers: 1 % of the air.
const ADDED: u64 = WHOLE / 100;
/// By so much for each station the sum rises in each tick (a decision, one every 0.5 s) with a queue within its target.
const RISE: u64 = WHOLE / 1000;
/// After this many such ticks in a row it rises twice as fast, because others on the channel may have gone. After twice as many it
/// doubles again, and so on.
const DOUBLING_TICKS: u32 = 8;
/// It doubles at most this many times.
const MOST_DOUBLINGS: u32 = 3;
/// The least sum that is followed.
const LEAST: u64 = WHOLE / 20;

/// Whether the queue is longer than it should be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queue {
    /// That of all senders is longer than its target.
    pub(super) exceeds_the_target: bool,
    /// That of this station is longer than its target and a part of the path
    /// ([`super::Situation::queue_exceeds_the_target`]).
    pub(super) is_too_long: bool,
}

impl Queue {
    /// In a trial the windows are others than those for the share, and their queue says nothing about it.
    pub(super) const OF_OTHER_WINDOWS: Self = Self { exceeds_the_target: true, is_too_long: false };
}

/// The figures of a tick.
#[derive(Clone, Copy, Debug)]
pub(super) struct Figures {
    /// The sum of the parts of all senders, and their number.
    pub(super) sum: u64,
    pub(super) senders: u64,
    /// The part of a peer: the median, or the mean of fewer than three.
    pub(super) peer: u64,
    pub(super) queue: Queue,
}

/// The sum of the parts of the air that the channel leaves to this access point's stations.
#[derive(Clone, Debug)]
pub(super) struct Channel {
    left: u64,
    /// The number of consecutive ticks with a queue within its target.
    short: u32,
}

impl Default for Channel {
    fn default() -> Self {
        Self { left: WHOLE, short: 0 }
    }
}

impl Channel {
    /// Takes the figures of a tick. Returns [`Self::left`].
    ///
    /// The sum falls only where a peer delivers less than the present one gives it, too. Otherwise the station's own path has
    /// become longer.
    pub(super) fn on_tick(&mut self, figures: Figures) -> Option<u64> {
        let Figures { sum, senders, peer, queue } = figures;
        let given = self.left * LEAST_PERCENT / 100;
        self.short = if queue.exceeds_the_target { 0 } else { self.short.saturating_add(1) };
        let left = if queue.is_too_long && peer.saturating_mul(senders) < given {
            sum.saturating_add(senders * ADDED)
        } else if queue.exceeds_the_target {
            self.left
        } else {
            self.left + senders * (RISE << (self.short / DOUBLING_TICKS).min(MOST_DOUBLINGS))
        };
        self.left = left.clamp(LEAST, WHOLE);
        self.left()
    }

    /// The sum that the stations share; `None` where the channel leaves them about all of the air.
    pub(super) fn left(&self) -> Option<u64> {
        self.leaves_less_than(LEAST_PERCENT).then_some(self.left)
    }

    /// Whether the channel leaves less than this percentage of the air.
    pub(super) fn leaves_less_than(&self, percent: u64) -> bool {
        self.left < WHOLE * percent / 100
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Queue = Queue { exceeds_the_target: false, is_too_long: false };
    const BETWEEN: Queue = Queue { exceeds_the_target: true, is_too_long: false };
    const TOO_LONG: Queue = Queue { exceeds_the_target: true, is_too_long: true };

    /// What four stations that each deliver `percent` of the air may share after a tick with this queue, in thousandths of the air.
    fn tick(channel: &mut Channel, percent: u64, queue: Queue) -> Option<u64> {
        let peer = WHOLE * percent / 100;
        let figures = Figures { sum: peer * 4, senders: 4, peer, queue };
        channel.on_tick(figures).map(|left| left * 1000 / WHOLE)
    }

    #[test]
    fn a_queue_that_is_too_long_shortens_the_windows_to_what_is_delivered_and_one_percent_for_each()
    {
        let mut channel = Channel::default();
        assert_eq!(tick(&mut channel, 15, TOO_LONG), Some(640));
        assert_eq!(tick(&mut channel, 10, BETWEEN), Some(640), "the queue is not too long");
        assert_eq!(tick(&mut channel, 10, TOO_LONG), Some(440));
        assert_eq!(tick(&mut channel, 0, TOO_LONG), Some(50), "the least");
    }

    #[test]
    fn with_a_queue_within_the_target_the_windows_rise_to_those_of_the_whole_air() {
        let mut channel = Channel::default();
        tick(&mut channel, 15, TOO_LONG);
        let rises: Vec<_> = (0..40).map(|_| tick(&mut channel, 15, SHORT)).collect();
        // By .4 % in each of seven ticks, by .8 % in each of the next eight, then by 1.6 and 3.2 %.
        let after = |ticks: usize| rises[ticks - 1];
        assert_eq!((after(1), after(7), after(8)), (Some(644), Some(668), Some(676)));
        assert_eq!((after(15), after(16), after(23)), (Some(732), Some(748), Some(860)));
        assert_eq!((after(25), after(26), after(40)), (Some(924), None, None));
        assert_eq!(channel.left, WHOLE);
    }

    #[test]
    fn the_rise_doubles_three_times() {
        let mut channel = Channel::default();
        tick(&mut channel, 0, TOO_LONG);
        let rises: Vec<_> = (0..600).map(|_| tick(&mut channel, 0, SHORT)).collect();
        assert_eq!(rises[22..32].iter().flatten().last(), Some(&558), "by 3.2 % from the 24th on");
        assert_eq!(rises[599], None);
    }

    #[test]
    fn in_a_trial_what_is_left_stays() {
        let mut channel = Channel::default();
        let held = tick(&mut channel, 10, TOO_LONG);
        for percent in [5, 20] {
            assert_eq!(tick(&mut channel, percent, Queue::OF_OTHER_WINDOWS), held);
        }
    }

    #[test]
    fn after_a_queue_above_the_target_the_windows_rise_slowly_again() {
        let mut channel = Channel::default();
        tick(&mut channel, 10, TOO_LONG);
        (0..20).for_each(|_| {
            tick(&mut channel, 10, SHORT);
        });
        let held = tick(&mut channel, 10, BETWEEN);
        assert_eq!(tick(&mut channel, 10, SHORT), held.map(|left| left + 4));
    }

    #[test]
    fn where_a_peer_has_what_it_is_given_the_own_path_is_longer() {
        let mut channel = Channel::default();
        let mut with = |peer| {
            let figures = Figures { sum: 500_000, senders: 2, peer, queue: TOO_LONG };
            channel.on_tick(figures)
        };
        assert_eq!(with(465_000), None, "93 percent of a half");
        assert_eq!(with(464_999), Some(520_000));
    }

    #[test]
    fn announcements_of_any_size_are_followed_to_the_whole_air_at_most() {
        let mut channel = Channel::default();
        let figures = Figures { sum: u64::MAX, senders: 1000, peer: 0, queue: TOO_LONG };
        assert_eq!(channel.on_tick(figures), None);
        assert_eq!(channel.on_tick(Figures { peer: u64::MAX, ..figures }), None);
    }

    /// Two access points on one channel, of two and of eight stations, whose rates follow by Little's law from windows and the delay
    /// that all of them see.
    #[test]
    fn stations_of_fleets_of_different_size_come_to_equal_rates() {
        let (path, target) = (30.0, 10.0);
        let mut fleets = [(Channel::default(), 2.0), (Channel::default(), 8.0)];
        let mut rates = [0.35, 0.02];
        for _ in 0..400 {
            let shares = [0, 1].map(|fleet| fleets[fleet].0.left as f64 / fleets[fleet].1);
            let windows = shares.map(|share| share / WHOLE as f64 * (path + target));
            // The channel carries all of the air at most.
            let wanted: f64 = windows.iter().zip(&fleets).map(|(w, (_, n))| w * n).sum();
            let delay = (wanted - path).max(0.0);
            rates = windows.map(|window| window / (path + delay));
            for ((channel, count), rate) in fleets.iter_mut().zip(rates) {
                let part = |of: f64| (of * WHOLE as f64) as u64;
                let queue = Queue {
                    exceeds_the_target: delay > target,
                    is_too_long: delay > target + path / 8.0,
                };
                let (sum, peer) = (part(rate * *count), part(rate));
                channel.on_tick(Figures { sum, senders: *count as u64, peer, queue });
            }
        }
        assert!((rates[0] / rates[1] - 1.0).abs() < 0.1, "{rates:?}");
    }
}
