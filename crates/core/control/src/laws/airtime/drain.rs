//! Decides when a station drains: it holds a smaller window for some ticks (decisions, one every
//! 0.5 s), to measure the RTT of its path without queues.

use wakeai_units::{Bytes, Duration, Instant, Rate, Segments};

use super::backoff::Backoff;
use super::{BEHIND_PERCENT, Situation, TICK};
use crate::rtt::ENOUGH;

/// The tick at which a station may begin to drain together with others, counted from its first tick
/// of sending. By then the stations that began together know each other. After as many consecutive
/// doubtful ticks the station checks whether its path has become longer. At a doubtful tick the station
/// sees a longer queueing delay than the others, and alone delivers less than its share.
const KNOWN_TICKS: u32 = 6;
/// The window of a station that drains with others, percent of its share times the measured minimum
/// RTT. The usual window adds the target queueing delay to this RTT.
const TOGETHER_PERCENT: u64 = 70;
/// Draining continues while each tick lowers the minimum RTT by more than 1/`STILL_FALLING` of it.
const STILL_FALLING: u64 = 32;
/// During a check the window is divided by this number.
const CHECK_DIVISOR: u32 = 5;
/// A check lasts for the tick that starts it and this many further ticks. Two round trips come in
/// addition, in whole ticks, at most 20.
const CHECK_TICKS: u32 = 3;

/// Decides whether a station holds less than the window of its share, and how much.
///
/// There are two reasons to hold less.
///
/// The first reason: several stations began to send together. Each of them measured the queues of
/// the others as a part of its path, so its minimum RTT is too high, and the queueing delay that it
/// sees is too short. A station corrects its minimum where it sees a shorter delay than the others.
/// Here all of them see the same short delay, and none is corrected. Therefore they drain together.
///
/// The second reason: the station's own path may have become longer. The station then permanently
/// sees a longer queueing delay than the others. It checks the cause with a small window: where the
/// RTT does not fall with the window, the cause is a longer path, and not a queue
/// ([`crate::rtt::RttWatch`]). Where the others are behind their shares as well, their common reason is another one.
#[derive(Clone, Debug, Default)]
pub(super) struct Drain {
    /// Whether the station drains together with others.
    together: bool,
    last_min: Duration,
    /// The number of senders when this station began to send.
    senders_then: u32,
    doubt: u32,
    /// The number of further ticks of the current check; zero where there is none.
    check: u32,
    next_check: Option<Instant>,
    /// By how much the queueing delay exceeded that of the others at the last check.
    excess: Duration,
    /// The time from one check to the next.
    pauses: Backoff,
}

impl Drain {
    /// The window for this tick; `None` where the station holds the whole window of its share.
    /// `ticks` is the number of ticks since the station began to send.
    pub(super) fn on_tick(
        &mut self,
        now: Instant,
        ticks: u32,
        situation: &Situation,
        mss: Bytes,
    ) -> Option<Segments> {
        let path = situation.path;
        let together = self.together(ticks, situation);
        if self.checks(now, situation) {
            let held = Segments::in_flight(situation.windowed, path.min + situation.target, mss);
            return Some(Segments::new(held.get() / CHECK_DIVISOR));
        }
        let part = situation.windowed.times(TOGETHER_PERCENT, 100);
        together.then(|| Segments::in_flight(part, path.min, mss))
    }

    /// Whether the station has checked its path since it began to send.
    pub(super) fn has_checked(&self) -> bool {
        self.next_check.is_some() && self.check == 0
    }

    fn together(&mut self, ticks: u32, situation: &Situation) -> bool {
        let (min, senders) = (situation.path.min, situation.senders);
        let falls = min + min / STILL_FALLING < self.last_min;
        self.last_min = min;
        if ticks == 1 {
            self.senders_then = senders;
        }
        self.together = match ticks {
            // Among few senders, one at least measures the RTT of its path without the queue.
            KNOWN_TICKS => senders as usize > ENOUGH && senders / 2 >= self.senders_then,
            // The next tick comes too early to show the effect of the first draining tick.
            ticks => self.together && (falls || ticks == KNOWN_TICKS + 1),
        };
        self.together
    }

    fn checks(&mut self, now: Instant, situation: &Situation) -> bool {
        if self.check > 0 {
            self.check -= 1;
            return true;
        }
        let own = situation.path.growth.saturating_sub(situation.path.common);
        let least = situation.share.mul_div(BEHIND_PERCENT, 100).unwrap_or(Rate::ZERO);
        let peers_are_behind = situation.peers > Rate::ZERO && situation.peers < least;
        let alone = situation.rate < least && !peers_are_behind;
        let doubtful = alone && own > situation.target.max(situation.path.min / 4);
        self.doubt = if doubtful { self.doubt + 1 } else { 0 };
        // Where the excess is more than twice as long as at the last check, something has changed since.
        let waits = self.next_check.is_some_and(|next| now < next) && own <= self.excess * 2;
        if self.doubt < KNOWN_TICKS || waits {
            return false;
        }
        self.excess = own;
        self.next_check = Some(now + self.pauses.next());
        self.doubt = 0;
        let round_trips = situation.path.current.as_micros() * 2 / TICK.as_micros();
        self.check = CHECK_TICKS + u32::try_from(round_trips).unwrap_or(CHECK_TICKS).min(20);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: Bytes = Bytes::new(1448);

    /// A situation with this number of senders, this minimum RTT, a share of 10 Mbit/s, and a
    /// target of 50 ms.
    fn situation(senders: u32, min_ms: u64) -> Situation {
        Situation { senders, ..Situation::example(min_ms, 50) }
    }

    /// The ticks in which a station drains. `at` gives the situation of each tick.
    fn drained(ticks: u32, at: impl Fn(u32) -> Situation) -> Vec<u32> {
        let mut drain = Drain::default();
        let when = |tick: &u32| Instant::ZERO + TICK * u64::from(*tick);
        (1..=ticks)
            .filter(|tick| drain.on_tick(when(tick), *tick, &at(*tick), MSS).is_some())
            .collect()
    }

    #[test]
    fn stations_that_began_together_drain_while_the_rtt_falls() {
        // The station knows one sender until tick 3, then 20. The minimum RTT falls until tick 9.
        let together = |tick: u32| {
            situation(if tick < 4 { 1 } else { 20 }, 200 - 20 * u64::from(tick.clamp(6, 9) - 6))
        };
        assert_eq!(drained(30, together), [6, 7, 8, 9]);
        assert_eq!(drained(30, |tick| situation(if tick < 4 { 1 } else { 20 }, 200)), [6, 7]);
    }

    #[test]
    fn a_newcomer_among_senders_and_few_stations_do_not_drain() {
        assert_eq!(drained(30, |_| situation(20, 200)), [0_u32; 0]);
        assert_eq!(drained(30, |tick| situation(if tick < 4 { 1 } else { 3 }, 200)), [0_u32; 0]);
    }

    #[test]
    fn extreme_numbers_of_senders_do_not_overflow() {
        let fewer = |tick: u32| situation(if tick < 4 { u32::MAX } else { u32::MAX - 1 }, 200);
        assert_eq!(drained(30, fewer), [0_u32; 0]);
        assert_eq!(drained(30, |tick| situation(if tick < 4 { 1 } else { u32::MAX }, 200)), [6, 7]);
    }

    #[test]
    fn a_drained_window_is_less_than_the_share_on_the_path_alone() {
        let mut drain = Drain::default();
        drain.on_tick(Instant::ZERO, 1, &situation(1, 200), MSS);
        let window = drain.on_tick(Instant::ZERO + TICK * 6, 6, &situation(20, 200), MSS);
        assert_eq!(
            window,
            Some(Segments::in_flight(Rate::from_mbps(7), Duration::from_millis(200), MSS))
        );
    }

    /// A station that delivers less than its share. Its queueing delay is 150 ms above the median
    /// of all stations.
    fn grown_alone() -> Situation {
        let mut situation = situation(8, 40);
        situation.path.growth = Duration::from_millis(200);
        situation.path.current = Duration::from_millis(240);
        situation.rate = Rate::from_mbps(4);
        situation
    }

    #[test]
    fn a_delay_more_than_twice_as_long_as_at_the_last_check_does_not_wait_for_the_next() {
        // The path becomes longer 20 s after a check, which found a queue. The delay was 150 ms above the median.
        let began = |excess_ms: u64| {
            let ticks = drained(100, |tick| {
                let mut situation = grown_alone();
                if tick > 40 {
                    situation.path.growth = Duration::from_millis(50 + excess_ms);
                }
                situation
            });
            ticks.into_iter().find(|tick| *tick > 40)
        };
        assert_eq!(began(300), None);
        assert_eq!(began(301), Some(41));
    }

    #[test]
    fn a_queueing_delay_of_its_own_and_a_low_rate_start_a_check() {
        let ticks = drained(40, |_| grown_alone());
        assert_eq!(
            ticks,
            [6, 7, 8, 9],
            "240 ms twice are no whole tick; the next check is 60 s later"
        );
        let ahead = |_| Situation { rate: Rate::from_mbps(9), ..grown_alone() };
        assert_eq!(drained(40, ahead), [0_u32; 0]);
        let common = |_| {
            let mut all = grown_alone();
            all.path.common = all.path.growth;
            all
        };
        assert_eq!(drained(40, common), [0_u32; 0], "all see it, so it is a queue");
        let all_behind = |_| Situation { peers: Rate::from_mbps(7), ..grown_alone() };
        assert_eq!(drained(40, all_behind), [0_u32; 0], "its path is not the reason");
        let often = drained(10 + 120 + 240, |_| grown_alone());
        assert_eq!(often.len(), 3 * 4, "after 60 s and 120 s: {often:?}");
    }

    #[test]
    fn the_window_during_a_check_is_a_fifth_of_the_share() {
        let mut drain = Drain::default();
        let windows = (1..=6).map(|tick| {
            drain.on_tick(Instant::ZERO + TICK * tick, tick as u32, &grown_alone(), MSS)
        });
        let share = Segments::in_flight(Rate::from_mbps(10), Duration::from_millis(90), MSS);
        assert_eq!(windows.last(), Some(Some(Segments::new(share.get() / 5))));
    }
}
