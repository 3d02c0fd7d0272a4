//! Decides when a release begins and ends. The law begins a release when stations without agents
//! fill the access point's queue. In a release it sets no bounds, except a floor for at most the
//! first five seconds.

use wakeai_units::{Duration, Instant};

#[cfg(doc)]
use super::AirtimeKnobs;
use super::Situation;

/// A release begins when the count `Release::disobeyed` reaches this number of ticks (decisions,
/// one every 0.5 s).
const OBEY_WITHIN: u32 = 4;
/// The same number for a station without sending peers. It is smaller because the window of a
/// single station does not build a long queue. So a long queue shows after fewer ticks that
/// stations without agents are sending.
const OBEY_WITHIN_ALONE: u32 = 2;
/// The same number for a station without sending peers whose PHY rate is unknown. Its interface may
/// be cellular. In a cellular network each station has a queue of its own. The law takes the
/// highest rates of the last ten seconds. Where the rates were high just after the station began to
/// send, they keep its window large, and so this queue long, until they are ten seconds old. Then
/// the queue shortens without a release.
const OBEY_WITHIN_ALONE_WITHOUT_PHY_RATE: u32 = 24;
/// `OBEY_WITHIN` rises by one tick per this many senders. Many senders need longer to know each
/// other. Until then the law must not take them for stations without agents.
const SENDERS_PER_TICK: u32 = 2;
/// A station's part of the air is its rate divided by the rate that it reaches alone, or by its PHY
/// rate. Where the parts of the stations with agents together are less than this part, millionths,
/// of the sum that is expected of a fully used air ([`super::share::Share::used`]), the law assumes
/// that stations without agents are sending.
const FOREIGN_BELOW: u64 = 650_000;
/// Where they are together at least this part of the expected sum, millionths, the law assumes that
/// no station without agent sends any more.
const OURS_FROM: u64 = 800_000;
/// The duration of the first release. Each further release lasts twice as long, up to `LONGEST`.
const FIRST: Duration = Duration::from_secs(60);
const LONGEST: Duration = Duration::from_secs(600);

/// Decides whether a release is under way.
///
/// Stations without agents may fill the access point's queue. This queue makes all RTTs long, so a
/// station with a short window gets nearly nothing. The law assumes that stations without agents
/// cause the queue under two conditions: the queue stays long although the stations with agents
/// hold their windows, and the stations with agents deliver less than the air carries.
#[derive(Clone, Debug, Default)]
pub(super) struct Release {
    /// A count of the ticks in which the queue is long and the stations with agents deliver too
    /// little. Each such tick adds one, and each other tick subtracts one, down to zero. A queue is
    /// long where the queueing delay is above twice the longest target ([`AirtimeKnobs::queue_max`])
    /// and a quarter of the minimum RTT. A station without sending peers counts a queue as long from
    /// half of the longest target on, because its own window does not build such a queue.
    disobeyed: u32,
    until: Option<Instant>,
    /// The start of the last release.
    pub(super) began: Instant,
    lasts: Duration,
}

impl Release {
    /// Whether a release is under way at this tick. `used` is the part of the expected rate that
    /// all stations with agents deliver together, millionths; `None` where it is not known.
    pub(super) fn on_tick(
        &mut self,
        now: Instant,
        situation: &Situation,
        used: Option<u64>,
    ) -> bool {
        if let Some(until) = self.until {
            if now < until && used.is_none_or(|used| used < OURS_FROM) {
                return true;
            }
            self.until = None;
            self.disobeyed = 0;
        }
        let far_too_long = match situation.senders {
            1 => situation.queue_is_long(),
            _ => situation.path.growth > situation.queue_max * 2 + situation.path.min / 4,
        };
        if far_too_long && used.is_some_and(|used| used < FOREIGN_BELOW) {
            self.disobeyed += 1;
        } else {
            self.disobeyed = self.disobeyed.saturating_sub(1);
        }
        let obey_within = match situation.senders {
            1 if situation.phy_rate_known => OBEY_WITHIN_ALONE,
            1 => OBEY_WITHIN_ALONE_WITHOUT_PHY_RATE,
            senders => OBEY_WITHIN + senders / SENDERS_PER_TICK,
        };
        if self.disobeyed < obey_within {
            return false;
        }
        self.lasts = (self.lasts * 2).clamp(FIRST, LONGEST);
        self.until = Some(now + self.lasts);
        self.began = now;
        true
    }
}

#[cfg(test)]
mod tests {
    use wakeai_units::{Rate, Segments};

    use super::super::path::Path;
    use super::*;

    const HIGH: u64 = 500;
    const USED_BY_OTHERS: Option<u64> = Some(300_000);
    const ALL_USED: Option<u64> = Some(900_000);

    /// A situation with this number of senders, this queueing delay, a minimum RTT of 40 ms, a
    /// target of 50 ms, and a longest target of 75 ms.
    fn situation(senders: u32, growth_ms: u64) -> Situation {
        let (min, growth) = (Duration::from_millis(40), Duration::from_millis(growth_ms));
        Situation {
            path: Path { min, growth, current: min + growth, common: growth },
            share: Rate::from_mbps(10),
            target: Duration::from_millis(50),
            queue_max: Duration::from_millis(75),
            rate: Rate::from_mbps(10),
            window: Segments::new(100),
            connections: 1,
            senders,
            phy_rate_known: true,
            trouble: false,
        }
    }

    /// Consecutive ticks.
    struct Ticks {
        release: Release,
        count: u64,
        phy_rate_known: bool,
    }

    impl Ticks {
        fn new() -> Self {
            Self { release: Release::default(), count: 0, phy_rate_known: true }
        }

        fn tick(&mut self, senders: u32, growth_ms: u64, used: Option<u64>) -> bool {
            self.count += 1;
            let now = Instant::ZERO + Duration::from_millis(500) * self.count;
            let phy_rate_known = self.phy_rate_known;
            let situation = Situation { phy_rate_known, ..situation(senders, growth_ms) };
            self.release.on_tick(now, &situation, used)
        }

        /// The number of ticks until the release begins, while stations without agents fill the
        /// queue; at most 1000.
        fn until_released(&mut self, senders: u32) -> usize {
            (1..1_000).find(|_| self.tick(senders, HIGH, USED_BY_OTHERS)).unwrap_or(1_000)
        }

        /// The number of ticks until the release has ended, the last tick included. The
        /// queueing delay is zero at each of these ticks.
        fn until_bound(&mut self, used: Option<u64>) -> usize {
            (1..5_000).find(|_| !self.tick(1, 0, used)).unwrap_or(5_000)
        }
    }

    #[test]
    fn a_lasting_queue_releases_and_more_senders_wait_longer() {
        for (senders, ticks) in [(1, 2), (2, 5), (3, 5), (6, 7), (40, 24)] {
            assert_eq!(Ticks::new().until_released(senders), ticks, "{senders} senders");
        }
    }

    #[test]
    fn a_station_alone_without_a_phy_rate_waits_until_the_rates_of_the_start_are_forgotten() {
        let mut ticks = Ticks { phy_rate_known: false, ..Ticks::new() };
        assert_eq!(ticks.until_released(1), 24);
        let mut ticks = Ticks { phy_rate_known: false, ..Ticks::new() };
        assert_eq!(ticks.until_released(2), 5, "peers show that the air is shared");
    }

    #[test]
    fn no_release_while_the_air_is_used_or_its_use_is_unknown() {
        for used in [ALL_USED, Some(FOREIGN_BELOW), None] {
            let mut ticks = Ticks::new();
            assert!((0..200).all(|_| !ticks.tick(1, HIGH, used)), "{used:?}");
        }
    }

    #[test]
    fn twice_the_longest_target_and_a_quarter_of_the_path_are_tolerated() {
        let mut ticks = Ticks::new();
        assert!((0..200).all(|_| !ticks.tick(2, 160, USED_BY_OTHERS)));
        assert!((0..5).any(|_| ticks.tick(2, 161, USED_BY_OTHERS)));
        let mut alone = Ticks::new();
        assert!((0..200).all(|_| !alone.tick(1, 110, USED_BY_OTHERS)), "twice the target");
        assert!((0..2).any(|_| alone.tick(1, 111, USED_BY_OTHERS)));
    }

    #[test]
    fn high_ticks_among_low_ones_release_nothing() {
        let mut ticks = Ticks::new();
        assert!((0..4).all(|_| !ticks.tick(2, HIGH, USED_BY_OTHERS)));
        assert!((0..4).all(|_| !ticks.tick(2, 20, USED_BY_OTHERS)));
        for _ in 0..100 {
            assert!(!ticks.tick(2, HIGH, USED_BY_OTHERS), "a single tick with a long queue");
            assert!(!ticks.tick(2, 20, USED_BY_OTHERS));
        }
    }

    #[test]
    fn a_release_lasts_60_s_then_120_s_and_600_s_at_most() {
        let mut ticks = Ticks::new();
        for seconds in [60, 120, 240, 480, 600, 600] {
            assert_eq!(ticks.until_released(1), 2, "two new ticks with a long queue");
            assert_eq!(ticks.until_bound(USED_BY_OTHERS), seconds * 2, "{seconds} s");
        }
    }

    #[test]
    fn a_release_ends_when_agents_deliver_the_expected_rate() {
        let mut ticks = Ticks::new();
        ticks.until_released(1);
        for used in [None, USED_BY_OTHERS, Some(OURS_FROM - 1)] {
            assert!(ticks.tick(1, 0, used), "{used:?}");
        }
        assert!(!ticks.tick(1, HIGH, Some(OURS_FROM)));
        assert!(!ticks.tick(1, HIGH, USED_BY_OTHERS), "the count begins anew");
    }

    #[test]
    fn the_begin_of_a_release_is_known() {
        let mut ticks = Ticks::new();
        ticks.until_released(1);
        let began = Instant::ZERO + Duration::from_millis(500) * ticks.count;
        ticks.tick(1, HIGH, USED_BY_OTHERS);
        assert_eq!(ticks.release.began, began);
    }
}
