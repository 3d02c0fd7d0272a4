//! Decides whether others hold a longer queue than the target. A station with a short window would
//! get little beside them, so it holds the longest target too, until that queue is gone.

use wakeai_units::{Duration, Instant, Rate};

use super::Situation;

/// A contest begins where the count of ticks (one every 0.5 s) in which the queue is long and the
/// stations are behind reaches this number. Each other tick subtracts one.
const WITHIN: u32 = 3;
/// The first ticks of sending do not count, because the rates are still rising.
const SETTLED_TICKS: u32 = 3;
/// A station is behind where it delivers less than this percentage of its share.
const BEHIND_PERCENT: u64 = 70;
/// The other stations with agents are behind where the median of them has less than this percentage.
/// A station that alone is behind has another reason than the queue of strangers.
const OTHERS_BEHIND_PERCENT: u64 = 80;
/// The duration of the first contest. Each further one lasts twice as long, up to `LONGEST`.
const FIRST: Duration = Duration::from_secs(60);
const LONGEST: Duration = Duration::from_secs(600);

/// Decides whether a contest is under way: other stations, without agents or with agents that do not
/// obey, hold a longer queue than the target, and all that obey lose their share.
#[derive(Clone, Debug, Default)]
pub(super) struct Contest {
    ticks: u32,
    until: Option<Instant>,
    lasts: Duration,
}

impl Contest {
    /// Whether a contest is under way at this tick, the `tick`th since the station began to send.
    /// `median` is the rate at which this station would use the median of its peers' parts of the
    /// air; zero where that is not known. `path_is_checked` says whether the station has looked if its
    /// path has become longer, which it does where only it is behind.
    pub(super) fn on_tick(
        &mut self,
        now: Instant,
        tick: u32,
        situation: &Situation,
        median: Rate,
        path_is_checked: bool,
    ) -> bool {
        let long = situation.queue_is_long();
        if let Some(until) = self.until {
            if now < until && long {
                return true;
            }
            *self = Self { lasts: self.lasts, ..Self::default() };
        }
        let below = |rate: Rate, percent| {
            situation.share.mul_div(percent, 100).is_some_and(|limit| rate < limit)
        };
        let alone_behind = if median > Rate::ZERO {
            !below(median, OTHERS_BEHIND_PERCENT)
        } else {
            !path_is_checked
        };
        let lost = long && below(situation.rate, BEHIND_PERCENT) && !alone_behind;
        self.ticks = if lost && tick > SETTLED_TICKS {
            self.ticks + 1
        } else {
            self.ticks.saturating_sub(1)
        };
        if self.ticks < WITHIN || situation.senders == 1 {
            return false;
        }
        self.lasts = (self.lasts * 2).clamp(FIRST, LONGEST);
        self.until = Some(now + self.lasts);
        true
    }
}

#[cfg(test)]
mod tests {
    use wakeai_units::Segments;

    use super::super::path::Path;
    use super::*;

    /// A station with a share of 10 Mbit/s, a path of 40 ms and a target of 10 ms.
    fn situation(mbps: u64, growth_ms: u64) -> Situation {
        let (min, growth) = (Duration::from_millis(40), Duration::from_millis(growth_ms));
        Situation {
            path: Path { min, growth, current: min + growth, common: growth },
            share: Rate::from_mbps(10),
            target: Duration::from_millis(10),
            queue_max: Duration::from_millis(75),
            rate: Rate::from_mbps(mbps),
            window: Segments::new(100),
            connections: 1,
            senders: 8,
            phy_rate_known: true,
            trouble: false,
        }
    }

    /// The first tick of a contest among twenty ticks of this situation. `median` is the rate of the
    /// others, Mbit/s.
    fn begins(situation: &Situation, median: u64, path_is_checked: bool) -> Option<u32> {
        let mut contest = Contest::default();
        (1..=20).find(|tick| {
            let now = Instant::ZERO + super::super::TICK * u64::from(*tick);
            contest.on_tick(now, *tick, situation, Rate::from_mbps(median), path_is_checked)
        })
    }

    #[test]
    fn a_long_queue_in_which_all_lose_their_share_is_a_contest() {
        assert_eq!(begins(&situation(3, 100), 3, false), Some(6));
        assert_eq!(begins(&situation(3, 47), 3, false), None, "37.5 ms and a quarter of the path");
        assert_eq!(begins(&situation(7, 100), 3, false), None, "it has its share");
        assert_eq!(begins(&situation(3, 100), 8, false), None, "the others have theirs");
    }

    #[test]
    fn without_a_median_the_path_is_checked_first() {
        assert_eq!(begins(&situation(3, 100), 0, false), None);
        assert_eq!(begins(&situation(3, 100), 0, true), Some(6));
    }

    #[test]
    fn a_station_alone_has_no_contest() {
        assert_eq!(begins(&Situation { senders: 1, ..situation(3, 100) }, 0, true), None);
    }

    #[test]
    fn a_contest_ends_with_its_queue_or_after_60_s_then_120_s() {
        let mut contest = Contest::default();
        let mut tick = 0;
        let mut next = |growth| {
            tick += 1;
            let now = Instant::ZERO + super::super::TICK * tick;
            contest.on_tick(now, tick as u32, &situation(3, growth), Rate::from_mbps(3), false)
        };
        assert!((0..6).any(|_| next(100)));
        assert!(!next(20), "the queue is gone");
        for seconds in [120, 240, 480, 600, 600] {
            assert!((0..3).any(|_| next(100)));
            assert_eq!((1..9_999).find(|_| !next(100)), Some(seconds * 2));
        }
    }
}
