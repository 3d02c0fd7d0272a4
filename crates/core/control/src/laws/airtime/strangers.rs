//! Decides whether stations without agents, or with agents that do not obey, hold a longer queue than
//! the target. A station with a short window gets little beside them. There are two answers.
//!
//! In a *contest* of downloads the station holds the longest target, or that of the present queue where it is longer. Each
//! station can see that it and the others with agents have lost their share. Uploads wait in their own stations, and have no contest.
//!
//! In a *release* the law sets no bounds, except a floor for at most the first five seconds. Strangers
//! fill the queue so far that no target gets the share back, or a trial of uploads has shown them
//! ([`super::upload_trial`]).

use wakeai_connection::Direction;
use wakeai_units::{Duration, Instant, Rate};

#[cfg(doc)]
use super::AirtimeKnobs;
use super::backoff::Backoff;
use super::neighbours::SUSPICIOUS_TICKS;
use super::{BEHIND_PERCENT, SETTLED_TICKS, Situation, TICK};
use crate::windowed::WINDOW;

/// A release begins when the count of suspicious ticks (decisions, one every 0.5 s) reaches
/// [`SETTLED_TICKS`], and one more per this many senders. Many senders need longer to know each other.
/// Until then the law must not take them for strangers.
const SENDERS_PER_TICK: u32 = 2;
/// The number for the release of a station without sending peers. It is smaller because the window of
/// a single station does not build a long queue. So a long queue shows after fewer ticks that
/// strangers are sending. It holds for downloads as well: no floor gives a receiver its rate back, and
/// its sender's window is what it was only until losses have reduced it.
const OBEY_WITHIN_ALONE: u32 = 2;
/// The number for the release of a station without sending peers whose PHY rate is unknown. Its
/// interface may be cellular. In a cellular network each station has a queue of its own. The law takes
/// the highest rates of the last ten seconds. Where the rates were high just after the station began
/// to send, they keep its window large, and so this queue long, until they are ten seconds old. Then
/// the queue shortens without a release.
const OBEY_WITHIN_ALONE_WITHOUT_PHY_RATE: u32 =
    (WINDOW.as_micros() / TICK.as_micros()) as u32 + SETTLED_TICKS;
/// A station's part of the air is its rate divided by the rate that it reaches alone, or by its PHY
/// rate. Where the parts of the stations with agents together are less than this part, millionths,
/// of the sum that is expected of a fully used air ([`super::share::AirtimeShare::used`]), the law assumes
/// that strangers are sending.
pub(super) const FOREIGN_BELOW: u64 = 650_000;

/// A release ends where within this time after its begin more stations are heard of than before, and all that are known use their
/// part of the air, or there are more than so many times as many: they were taken for strangers, because their messages were lost in the
/// queue for which the release was begun.
const HEARD_WITHIN: Duration = WINDOW;
const HEARD_TIMES: u32 = 2;

/// A contest of downloads lasts while the peers have less than this percentage of their share, so that it does
/// not end as soon as it has an effect. A release ends where most have it of what is expected of them,
/// in [`SETTLED_TICKS`] ticks in a row for uploads, and in one for downloads.
const REGAINED_PERCENT: u64 = 90;

/// A state that begins after enough suspicious ticks, and lasts until its cause is gone or its time is
/// over.
#[derive(Clone, Debug, Default)]
struct Episode {
    /// Each suspicious tick adds one, and each other tick subtracts one, down to zero.
    suspicious: u32,
    began: Instant,
    until: Option<Instant>,
    lasts: Backoff,
}

impl Episode {
    /// Whether the episode is under way at this tick. It begins when the count of suspicious ticks
    /// reaches `within`, and ends early where `has_cause` does not hold.
    fn on_tick(&mut self, now: Instant, suspicious: bool, within: u32, has_cause: bool) -> bool {
        if let Some(until) = self.until {
            if now < until && has_cause {
                return true;
            }
            (self.until, self.suspicious) = (None, 0);
        }
        self.suspicious =
            if suspicious { self.suspicious + 1 } else { self.suspicious.saturating_sub(1) };
        if self.suspicious < within {
            return false;
        }
        self.begin(now);
        true
    }

    fn begin(&mut self, now: Instant) {
        (self.began, self.until) = (now, Some(now + self.lasts.next()));
    }
}

/// Decides whether a contest is under way: the queue is longer than the windows of stations with
/// agents make it, and all that obey lose their share.
///
/// Downloads and strangers wait in one queue, the access point's, so windows for that queue get most of the
/// share back. It swings with the strangers' windows, and may stay below what counts as a long queue. So there, after a
/// trial has shown strangers, a queue above the target is enough if it lasts ([`SUSPICIOUS_TICKS`]), and the contest
/// goes on while the queue is shorter for a moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Contest(Episode);

impl Contest {
    /// Whether a contest is under way at this tick, the `tick`th since the station began to send.
    /// `peers` is the rate at which this station would use the median of its peers' parts of the
    /// air; zero where that is not known. `path_is_checked` says whether the station has looked if its
    /// path has become longer, which it does where only it is behind. `tried_in_vain` says whether a trial has shown
    /// strangers.
    pub(super) fn on_tick(
        &mut self,
        now: Instant,
        tick: u32,
        situation: &Situation,
        peers: Rate,
        path_is_checked: bool,
        tried_in_vain: bool,
    ) -> bool {
        let part = |percent| situation.share.mul_div(percent, 100).unwrap_or(Rate::ZERO);
        let limit = part(BEHIND_PERCENT);
        // A station that alone is behind has another reason than the queue of strangers.
        let all_behind = if peers > Rate::ZERO { peers < limit } else { path_is_checked };
        let is_long = situation.queue_is_long();
        let too_long = if tried_in_vain { situation.queue_exceeds_the_target() } else { is_long };
        let lost = too_long && all_behind && situation.rate < limit && situation.senders > 1;
        let within = if is_long || !tried_in_vain { SETTLED_TICKS - 1 } else { SUSPICIOUS_TICKS };
        let known = if peers > Rate::ZERO { peers } else { situation.rate };
        let has_cause = too_long || tried_in_vain && known < part(REGAINED_PERCENT);
        self.0.on_tick(now, lost && tick > SETTLED_TICKS, within, has_cause)
    }
}

/// Decides whether a release is under way: the queue is far too long although the stations with agents
/// hold their windows, and they deliver less than the air carries.
#[derive(Clone, Debug, Default)]
pub(super) struct Release {
    episode: Episode,
    /// The number of consecutive ticks in which most stations had what is expected of them.
    regained: u32,
    /// The number of senders at the last tick, and the number of ticks since it grew last.
    senders: u32,
    grew: Option<u32>,
    /// The number of senders when it began.
    senders_at_begin: u32,
}

impl Release {
    /// Whether a release is under way at this tick. `used` is the part of the expected rate that
    /// most stations with agents deliver ([`super::share::AirtimeShare::used_by_most`]), millionths; `None` where it is not known.
    ///
    /// A queue is far too long where the queueing delay is above twice the longest target
    /// ([`AirtimeKnobs::queue_max`]) and a quarter of the minimum RTT. A station without sending peers
    /// counts a queue as far too long where it is a long one, because its own window does not build
    /// such a queue.
    pub(super) fn on_tick(
        &mut self,
        now: Instant,
        situation: &Situation,
        used: Option<u64>,
    ) -> bool {
        let far_too_long = match situation.senders {
            1 => situation.queue_is_long(),
            _ => situation.queue_is_far_too_long(),
        };
        let within = match situation.senders {
            1 if situation.phy_rate_known => OBEY_WITHIN_ALONE,
            2.. if situation.direction == Direction::Down => OBEY_WITHIN_ALONE,
            1 => OBEY_WITHIN_ALONE_WITHOUT_PHY_RATE,
            senders => SETTLED_TICKS + senders / SENDERS_PER_TICK,
        };
        let before = std::mem::replace(&mut self.senders, situation.senders);
        let grows = before > 0 && situation.senders > before;
        self.grew = if grows { Some(0) } else { self.grew.map(|ticks| ticks.saturating_add(1)) };
        // Downloads are released after few ticks, so these must not be those in which the stations find each other.
        let are_known = situation.direction == Direction::Up
            || self.grew.is_none_or(|ticks| ticks >= SETTLED_TICKS);
        let is_low = used.is_some_and(|used| used < FOREIGN_BELOW);
        let suspicious = far_too_long && is_low && are_known;
        // Where they have what is expected of them, no stranger sends any more.
        let regained = used.is_some_and(|used| used >= REGAINED_PERCENT * 10_000);
        self.regained = if regained { self.regained + 1 } else { 0 };
        let lasting = match situation.direction {
            Direction::Up => SETTLED_TICKS,
            Direction::Down => 1,
        };
        let has_cause = self.regained < lasting && !self.has_heard_more(now, used);
        let was_released = self.episode.until.is_some();
        let is_released = self.episode.on_tick(now, suspicious, within, has_cause);
        if is_released && !was_released {
            self.senders_at_begin = self.senders;
        }
        is_released
    }

    /// Whether the stations that were taken for strangers have been heard of.
    fn has_heard_more(&self, now: Instant, used: Option<u64>) -> bool {
        let (before, known) = (self.senders_at_begin, self.senders);
        let use_their_part = used.is_some_and(|used| used >= FOREIGN_BELOW);
        self.lasts_for(now) <= HEARD_WITHIN
            && known > before
            && (use_their_part || known > before.saturating_mul(HEARD_TIMES))
    }

    /// Begins a release, because a trial has shown strangers.
    pub(super) fn begin(&mut self, now: Instant) {
        (self.regained, self.senders_at_begin) = (0, self.senders);
        self.episode.begin(now);
    }

    /// The time since the last release began.
    pub(super) fn lasts_for(&self, now: Instant) -> Duration {
        now.saturating_since(self.episode.began)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Airtime, AirtimeKnobs};
    use super::*;
    use crate::observation::{example, peer, traffic};
    use crate::{
        AirtimeState, Announcement, Basis, Law, Observation, OwnTraffic, Phase, RttView, Traffic,
    };

    const HIGH: u64 = 500;
    const USED_BY_OTHERS: Option<u64> = Some(300_000);
    const ALL_USED: Option<u64> = Some(900_000);

    /// A situation with this number of senders, this queueing delay, a minimum RTT of 40 ms, a
    /// target of 50 ms, and a longest target of 75 ms.
    fn situation(senders: u32, growth_ms: u64) -> Situation {
        Situation { senders, ..Situation::example(40, growth_ms) }
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
    fn downloads_are_released_as_early_as_a_station_alone() {
        let mut release = Release::default();
        let down = Situation { direction: Direction::Down, ..situation(40, HIGH) };
        let now = |tick: u64| Instant::ZERO + TICK * tick;
        assert!(!release.on_tick(now(1), &down, USED_BY_OTHERS));
        assert!(release.on_tick(now(2), &down, USED_BY_OTHERS));
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
        for used in [None, USED_BY_OTHERS, Some(899_999)] {
            assert!(ticks.tick(1, 0, used), "{used:?}");
        }
        let regained = Some(900_000);
        for used in [regained, regained, regained, USED_BY_OTHERS, regained, regained, regained] {
            assert!(ticks.tick(1, HIGH, used), "the rates swing");
        }
        assert!(!ticks.tick(1, HIGH, regained), "four ticks in a row");
        assert!(!ticks.tick(1, HIGH, USED_BY_OTHERS), "the count begins anew");
    }

    #[test]
    fn a_release_of_downloads_ends_at_the_first_tick_with_the_expected_rate() {
        let mut release = Release::default();
        let down = Situation { direction: Direction::Down, ..situation(2, HIGH) };
        let mut tick = 0;
        let mut released = |used| {
            tick += 1;
            release.on_tick(Instant::ZERO + TICK * tick, &down, used)
        };
        assert_eq!([USED_BY_OTHERS; 3].map(&mut released), [false, true, true]);
        assert!(!released(Some(900_000)));
    }

    #[test]
    fn downloads_are_not_released_while_the_stations_find_each_other() {
        let mut release = Release::default();
        let mut tick = 0;
        let mut released = |senders| {
            tick += 1;
            let down = Situation { direction: Direction::Down, ..situation(senders, HIGH) };
            release.on_tick(Instant::ZERO + TICK * tick, &down, USED_BY_OTHERS)
        };
        assert!(!released(3) && !released(7));
        // Two seconds after the last one was heard of, and the second suspicious tick after that.
        assert_eq!([7; 5].map(&mut released), [false, false, false, false, true]);
    }

    #[test]
    fn a_release_ends_when_its_strangers_turn_out_to_have_agents() {
        let barely = Some(FOREIGN_BELOW);
        let ends = |senders: u32, used, later| {
            let mut ticks = Ticks::new();
            ticks.until_released(2);
            ticks.count += later;
            !ticks.tick(senders, HIGH, used)
        };
        assert!(ends(3, barely, 0), "all that are known use their part");
        assert!(ends(5, USED_BY_OTHERS, 0), "more than twice as many are heard of");
        assert!(!ends(2, barely, 0) && !ends(4, USED_BY_OTHERS, 0));
        assert!(ends(3, barely, 19) && !ends(3, barely, 20), "within ten seconds");
    }

    #[test]
    fn the_begin_of_a_release_is_known() {
        let mut ticks = Ticks::new();
        ticks.until_released(1);
        let began = Instant::ZERO + Duration::from_millis(500) * ticks.count;
        ticks.tick(1, HIGH, USED_BY_OTHERS);
        let later = began + Duration::from_secs(3);
        assert_eq!(ticks.release.lasts_for(later), Duration::from_secs(3));
    }

    /// A station with a share of 10 Mbit/s, a path of 40 ms and a target of 10 ms.
    fn beside(mbps: u64, growth_ms: u64) -> Situation {
        let (target, rate) = (Duration::from_millis(10), Rate::from_mbps(mbps));
        let direction = Direction::Down;
        Situation { direction, target, rate, senders: 8, ..Situation::example(40, growth_ms) }
    }

    /// The first tick of a contest among twenty ticks of this situation. `peers` is the rate of the
    /// others, Mbit/s.
    fn begins(situation: &Situation, peers: u64, path_is_checked: bool) -> Option<u32> {
        begins_after(false, situation, peers, path_is_checked)
    }

    /// The same after a trial that was in vain, or without one.
    fn begins_after(
        tried: bool,
        situation: &Situation,
        peers: u64,
        path_is_checked: bool,
    ) -> Option<u32> {
        let mut contest = Contest::default();
        (1..=20).find(|tick| {
            let now = Instant::ZERO + TICK * u64::from(*tick);
            contest.on_tick(now, *tick, situation, Rate::from_mbps(peers), path_is_checked, tried)
        })
    }

    #[test]
    fn a_long_queue_in_which_all_lose_their_share_is_a_contest() {
        assert_eq!(begins(&beside(3, 100), 3, false), Some(7));
        assert_eq!(begins(&beside(3, 47), 3, false), None, "37.5 ms and a quarter of the path");
        assert_eq!(begins(&beside(8, 100), 3, false), None, "it is not behind");
        assert_eq!(begins(&beside(3, 100), 8, false), None, "the others have theirs");
    }

    #[test]
    fn where_the_peers_are_not_known_the_path_is_checked_first() {
        assert_eq!(begins(&beside(3, 100), 0, false), None);
        assert_eq!(begins(&beside(3, 100), 0, true), Some(7));
    }

    #[test]
    fn after_a_trial_a_queue_above_the_target_is_enough_if_it_lasts() {
        let begins_after = |growth, peers| begins_after(true, &beside(3, growth), peers, false);
        assert_eq!(begins_after(100, 3), Some(7), "a long queue");
        assert_eq!(begins_after(16, 3), Some(12), "10 ms and an eighth of the path");
        assert_eq!(begins_after(15, 3), None);
        assert_eq!(begins(&beside(3, 16), 3, false), None, "strangers are not shown");
        assert_eq!(begins_after(16, 8), None, "the others have their share");
    }

    #[test]
    fn after_a_trial_a_contest_ends_when_the_share_is_regained() {
        let mut contest = Contest::default();
        let mut tick = 0;
        let mut next = |growth, peers| {
            tick += 1;
            let now = Instant::ZERO + TICK * tick;
            contest.on_tick(
                now,
                tick as u32,
                &beside(3, growth),
                Rate::from_mbps(peers),
                false,
                true,
            )
        };
        assert!((0..7).any(|_| next(100, 3)));
        assert!(next(5, 8), "the queue swings, and 90 % are not regained");
        assert!(next(16, 9), "the queue is above the target");
        assert!(!next(15, 9));
    }

    #[test]
    fn a_station_alone_has_no_contest() {
        assert_eq!(begins(&Situation { senders: 1, ..beside(3, 100) }, 0, true), None);
    }

    #[test]
    fn a_contest_ends_with_its_queue_or_after_60_s_then_120_s() {
        let mut contest = Contest::default();
        let mut tick = 0;
        let mut next = |growth| {
            tick += 1;
            let now = Instant::ZERO + TICK * tick;
            contest.on_tick(now, tick as u32, &beside(3, growth), Rate::from_mbps(3), false, false)
        };
        assert!((0..7).any(|_| next(100)));
        assert!(!next(20), "the queue is gone");
        for seconds in [120, 240, 480, 600, 600] {
            assert!((0..3).any(|_| next(100)));
            assert_eq!((1..9_999).find(|_| !next(100)), Some(seconds * 2));
        }
    }

    /// The state of the law after 60 ticks in a direction in which eight stations, each with a share of 5 Mbit/s, deliver 2
    /// each, with a queueing delay of 90 ms that never changes.
    fn settled(direction: Direction) -> AirtimeState {
        let max_rate = Some(Rate::from_mbps(40));
        let [min, growth, current] = [50, 90, 140].map(Duration::from_millis);
        let rtt = RttView { current, min, growth };
        let own = OwnTraffic {
            connections: vec![example()],
            rtt: Some(rtt),
            mean_rate: Rate::from_mbps(2),
            max_rate,
            ..OwnTraffic::default()
        };
        let theirs = Traffic { max_rate, ..traffic(2) };
        // A clock that stands still makes no trial of uploads.
        let unix_time = Some(Duration::from_secs(1000));
        let mut seen = Observation { unix_time, senders: 8, ..Observation::default() };
        let mut announced = Announcement::default();
        match direction {
            Direction::Up => (seen.up, announced.up) = (own, theirs),
            Direction::Down => (seen.down, announced.down) = (own, theirs),
        }
        seen.peers = (1..8).map(|station| peer(station, announced)).collect();
        let mut law = Airtime::new(AirtimeKnobs::default());
        let mut tick = |tick| law.on_tick(Instant::ZERO + TICK * tick, &seen).1;
        (1..60).for_each(|before| {
            tick(before);
        });
        match tick(60) {
            Basis::Airtime { up, down } => up.or(down).expect("a state"),
            basis => panic!("{basis:?}"),
        }
    }

    #[test]
    fn in_a_contest_of_downloads_the_target_is_the_queue_of_the_strangers() {
        let [up, down] = Direction::BOTH.map(settled);
        assert_eq!((down.phase, down.target), (Phase::Steady, down.growth));
        let longest = AirtimeKnobs::default().queue_max;
        assert!(up.target < longest, "uploads have no contest: {up:?}");
    }
}
