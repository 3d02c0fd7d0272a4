//! Tells senders that only share the channel from strangers in the same queue, for downloads.
//!
//! Another access point on the channel, hidden stations and radios of another kind take air. Then the stations of this
//! access point together receive less than was expected, and the windows for the expected rate fill its
//! queue. Shorter windows make this queue shorter, and cost nothing. Strangers in the queue (stations of this
//! access point without agents) take what shorter windows leave, and the queue stays. Uploads do not share a queue with strangers, and
//! have a trial of their own ([`super::upload_trial`]).
//!
//! No figure of a tick distinguishes the two, because by Little's law a rate is always a window divided by an RTT. So the
//! stations try it: all hold less for some seconds. Where the RTT falls with the windows, the share may follow what the
//! stations deliver.

use wakeai_units::{Bytes, Duration, Instant, Rate, Segments};

use super::share::{AirtimeShare, Follows};
use super::strangers::FOREIGN_BELOW;
use super::{BEHIND_PERCENT, SETTLED_TICKS, Situation, TICK};

/// A trial begins after this many ticks in a row that look like a contest, one before a contest could begin, and
/// after so many with a queue that is only somewhat too long: while stations begin, and do not know each other, they deliver
/// less than is expected of all.
const LOOKS_LIKE_CONTEST_TICKS: u32 = SETTLED_TICKS - 2;
pub(super) const SUSPICIOUS_TICKS: u32 = 8;
/// A station follows its peers after this many ticks in a row in which it delivered more than they did.
const MORE_TICKS: u32 = 3 * SETTLED_TICKS;
/// The window during a trial, percent of that of the share.
const TRIAL_PERCENT: u64 = 60;
/// A trial lasts for this many ticks, because the peers begin it within two seconds of each other. Two round trips come in
/// addition.
const TRIAL_TICKS: u32 = 6;
/// The time from a trial that failed to the next. It doubles with each one, since beside strangers in the queue a trial
/// costs goodput.
const FIRST_PAUSE: Duration = Duration::from_secs(30);
const LONGEST_PAUSE: Duration = Duration::from_secs(600);
/// From what a trial has found, the share may fall to this part, percent. A further fall needs a further
/// trial, so that strangers in the queue that come later cannot drive it down without an end.
const FURTHER_PERCENT: u64 = 70;

/// Decides about trials, and keeps what they found.
#[derive(Clone, Debug, Default)]
pub(super) struct Neighbours {
    /// The numbers of ticks in a row with a queue that is too long, and with one that looks like a contest.
    suspicious: u32,
    contested: u32,
    trial: Option<Trial>,
    next_trial: Option<Instant>,
    pause: Duration,
    /// The number of consecutive ticks in which this station delivered more than its peers.
    more: u32,
    /// The queueing delay when the share began to follow, and the number of consecutive ticks since then in which it
    /// was nearly as long.
    before: Duration,
    in_vain: u32,
    /// The least sum of the parts that counts, percent of the expected sum; `None` until a trial has succeeded.
    least: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Trial {
    /// The number of further ticks.
    left: u32,
    /// The RTT at the beginning.
    before: Duration,
    /// The shortest RTT since then. The peers do not end their trials at the same tick.
    shortest: Duration,
    window: Segments,
}

impl Trial {
    fn new(situation: &Situation, mss: Bytes) -> Self {
        let path = situation.path;
        let rate = situation.windowed.times(TRIAL_PERCENT, 100);
        let round_trips = path.current.as_micros() * 2 / TICK.as_micros();
        Self {
            left: TRIAL_TICKS + u32::try_from(round_trips).unwrap_or(TRIAL_TICKS),
            before: path.current,
            shortest: path.current,
            window: Segments::in_flight(rate, path.min + situation.target, mss),
        }
    }

    /// Whether the RTT fell by at least half of what these windows make it fall where all that waits is theirs.
    fn has_succeeded(&self) -> bool {
        let fell = self.before.saturating_sub(self.shortest);
        fell * 2 >= self.before * (100 - TRIAL_PERCENT) / 100
    }
}

impl Neighbours {
    /// The window of this tick, where a trial is under way. `tick` is the number of ticks since the station began,
    /// and `may_begin` says whether a trial may begin at this tick.
    pub(super) fn on_tick(
        &mut self,
        now: Instant,
        tick: u32,
        situation: &Situation,
        share: &mut AirtimeShare,
        mss: Bytes,
        may_begin: bool,
    ) -> Option<Segments> {
        if let Some(trial) = &mut self.trial {
            trial.shortest = trial.shortest.min(situation.path.current);
            trial.left -= 1;
            if trial.left > 0 {
                return Some(trial.window);
            }
            let trial = *trial;
            self.trial = None;
            if trial.has_succeeded() {
                self.next_trial = None;
                self.follow(share, trial.before.saturating_sub(situation.path.min));
            }
        }
        let below = |limit| {
            let least = limit * self.least.unwrap_or(100) / 100;
            share.used.is_some_and(|used| used < least)
        };
        let trial = Trial::new(situation, mss);
        // A window that cannot be shorter tells nothing.
        let shorter = trial.window > situation.least_window();
        let known = tick > SETTLED_TICKS && situation.senders > 1;
        let suspicious = known && shorter && !situation.queue_is_far_too_long();
        let (behind, foreign) = (below(BEHIND_PERCENT * 10_000), below(FOREIGN_BELOW));
        let suspicious = suspicious && situation.queue_exceeds_the_target();
        self.undo_what_is_in_vain(now, suspicious, situation, share);
        let comparable = suspicious && behind && self.next_trial.is_none_or(|next| now >= next);
        self.compare_with_peers(comparable, situation, share);
        let part = situation.share.times(BEHIND_PERCENT, 100);
        let all_behind = behind && situation.rate < part && share.peers < part;
        let too_long = suspicious && (foreign || all_behind);
        let contested = suspicious && all_behind && situation.queue_is_long();
        self.suspicious = if too_long { self.suspicious + 1 } else { 0 };
        self.contested = if contested { self.contested + 1 } else { 0 };
        let due = self.contested >= LOOKS_LIKE_CONTEST_TICKS || self.suspicious >= SUSPICIOUS_TICKS;
        if !due || !may_begin || self.next_trial.is_some_and(|next| now < next) {
            return None;
        }
        (self.suspicious, self.contested) = (0, 0);
        self.wait(now);
        self.trial = Some(trial);
        Some(trial.window)
    }

    /// Whether the last trial has failed, was in vain, or ended in a release: strangers fill the queue.
    pub(super) fn has_tried_in_vain(&self) -> bool {
        self.trial.is_none() && self.next_trial.is_some() && self.least.is_none()
    }

    /// What the share follows.
    pub(super) fn follows(&self) -> Follows {
        self.least.map_or(Follows::Expected, |least_percent| Follows::Sum { least_percent })
    }

    /// Ends a trial without a result.
    pub(super) fn give_up(&mut self) {
        self.trial = None;
    }

    /// Lets the share follow what the stations deliver.
    fn follow(&mut self, share: &mut AirtimeShare, before: Duration) {
        (self.before, self.in_vain) = (before, 0);
        // The sum contains what peers announce, and so it may be far above what is expected.
        let part = |used: u64| used.saturating_mul(FURTHER_PERCENT) / 1_000_000;
        self.least = share.used.map(|used| part(used).min(100));
        share.forget();
    }

    /// Follows peers that have found out. They deliver less than their shares, and this station more than
    /// they do. Otherwise a station that comes later, or whose trial failed, would keep a longer window than its peers.
    fn compare_with_peers(
        &mut self,
        suspicious: bool,
        situation: &Situation,
        share: &mut AirtimeShare,
    ) {
        let part = |rate: Rate| rate.times(BEHIND_PERCENT, 100);
        let (peers, least) = (share.peers, situation.share.min(share.own));
        let more = suspicious && peers > Rate::ZERO && peers < part(least);
        self.more = if more { self.more + 1 } else { 0 };
        if self.more >= MORE_TICKS {
            self.more = 0;
            self.follow(share, situation.path.growth);
        }
    }

    /// Ends what a trial has found, where the queue stayed although the share followed. Strangers fill it, whose queue swings
    /// by itself where the buffer is short, so that a trial can succeed by chance.
    fn undo_what_is_in_vain(
        &mut self,
        now: Instant,
        suspicious: bool,
        situation: &Situation,
        share: &mut AirtimeShare,
    ) {
        let stayed = suspicious && situation.path.growth * 3 > self.before * 2; // two thirds of it
        self.in_vain = if stayed && self.least.is_some() { self.in_vain + 1 } else { 0 };
        if self.in_vain < SETTLED_TICKS {
            return;
        }
        (self.in_vain, self.suspicious, self.contested, self.more) = (0, 0, 0, 0);
        self.least = None;
        share.forget();
        self.wait(now);
    }

    /// Begins the time until the next trial.
    fn wait(&mut self, now: Instant) {
        self.pause = (self.pause * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE);
        self.next_trial = Some(now + self.pause);
    }
}

#[cfg(test)]
mod tests {
    use wakeai_connection::Direction;

    use super::*;

    const MSS: Bytes = Bytes::new(1448);
    /// Ticks until a trial may begin: the rates of the first ones are not settled.
    const BEFORE: u32 = SETTLED_TICKS + LOOKS_LIKE_CONTEST_TICKS - 1;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// A station among eight, with a path of 40 ms, a target of 10 ms, and a share of 10 Mbit/s of which it delivers 5.
    fn among_eight(growth_ms: u64) -> Situation {
        let rate = Rate::from_mbps(5);
        let direction = Direction::Down;
        Situation {
            direction,
            senders: 8,
            target: ms(10),
            rate,
            ..Situation::example(40, growth_ms)
        }
    }

    /// All stations use `used` millionths of the expected sum, this one `own` Mbit/s and a peer `peers`.
    fn share(used: Option<u64>, own: u64, peers: u64) -> AirtimeShare {
        let mut share = AirtimeShare::default();
        (share.used, share.own) = (used, Rate::from_mbps(own));
        share.peers = Rate::from_mbps(peers);
        share
    }

    /// All stations use half of the expected sum, this one as its peers do.
    fn half_used() -> AirtimeShare {
        share(Some(500_000), 5, 5)
    }

    /// Consecutive ticks.
    #[derive(Default)]
    struct Ticks {
        neighbours: Neighbours,
        count: u32,
    }

    impl Ticks {
        fn tick(&mut self, situation: &Situation, share: &AirtimeShare) -> Option<Segments> {
            self.count += 1;
            let now = Instant::ZERO + TICK * u64::from(self.count);
            let mut share = share.clone();
            self.neighbours.on_tick(now, self.count, situation, &mut share, MSS, true)
        }

        /// The window of the trial that begins with these situations, and the number of ticks before it.
        fn until_trial(&mut self, situation: &Situation) -> (u32, Segments) {
            (0..2_000)
                .find_map(|tick| Some((tick, self.tick(situation, &half_used())?)))
                .expect("a trial")
        }

        /// Ticks until the trial has ended, in which the queueing delay is this one. Returns their number.
        fn until_end(&mut self, growth_ms: u64) -> u32 {
            let situation = among_eight(growth_ms);
            (1..99).find(|_| self.tick(&situation, &half_used()).is_none()).expect("an end")
        }
    }

    #[test]
    fn a_queue_without_the_expected_rate_begins_a_trial_with_less() {
        let mut ticks = Ticks::default();
        let (before, window) = ticks.until_trial(&among_eight(60));
        assert_eq!(before, BEFORE);
        assert_eq!(window, Segments::in_flight(Rate::from_mbps(6), ms(50), MSS));
        assert_eq!(ticks.until_end(60), TRIAL_TICKS);
    }

    #[test]
    fn a_queue_that_is_only_somewhat_too_long_has_to_last() {
        // 37.5 ms and a quarter of the path are a long queue, 10 ms and an eighth of it too long a queue.
        let before = |growth_ms| Ticks::default().until_trial(&among_eight(growth_ms)).0;
        assert_eq!([before(48), before(47), before(16)], [BEFORE, 11, 11]);
    }

    #[test]
    fn nothing_is_tried_without_a_reason() {
        let none = |situation: Situation, share: &AirtimeShare| {
            let mut ticks = Ticks::default();
            assert!((0..60).all(|_| ticks.tick(&situation, share).is_none()), "{share:?}");
        };
        none(among_eight(15), &half_used());
        none(Situation { senders: 1, ..among_eight(60) }, &half_used());
        none(among_eight(161), &half_used());
        none(among_eight(60), &share(Some(800_000), 8, 8));
        none(among_eight(60), &share(None, 5, 5));
        none(among_eight(20), &share(Some(FOREIGN_BELOW), 5, 8));
        // 60 % of the window are 26 segments.
        none(Situation { connections: 13, ..among_eight(60) }, &half_used());
    }

    #[test]
    fn where_the_rtt_falls_with_the_windows_the_share_may_follow() {
        // Windows of 60 % would make 100 ms to 60 ms, and half of this difference is enough.
        for (growth_ms, least) in [(40, Some(35)), (41, None)] {
            let mut ticks = Ticks::default();
            ticks.until_trial(&among_eight(60));
            ticks.until_end(growth_ms);
            assert_eq!(ticks.neighbours.least, least, "{growth_ms} ms");
        }
    }

    #[test]
    fn the_shortest_rtt_of_a_trial_counts() {
        let mut ticks = Ticks::default();
        ticks.until_trial(&among_eight(60));
        ticks.tick(&among_eight(30), &half_used());
        ticks.until_end(60);
        assert_eq!(ticks.neighbours.least, Some(35));
    }

    #[test]
    fn what_was_found_is_given_up_where_the_queue_stays() {
        // The queueing delay was 60 ms. What is at most 40 ms has become shorter.
        for (growth_ms, given_up) in [(41, true), (40, false)] {
            let mut ticks = Ticks::default();
            ticks.until_trial(&among_eight(60));
            ticks.until_end(40);
            assert_eq!(ticks.neighbours.least, Some(35));
            for _ in 0..SETTLED_TICKS - 1 {
                ticks.tick(&among_eight(growth_ms), &share(Some(500_000), 5, 5));
            }
            assert_eq!(ticks.neighbours.least, Some(35));
            ticks.tick(&among_eight(growth_ms), &share(Some(500_000), 5, 5));
            assert_eq!(ticks.neighbours.least.is_none(), given_up, "{growth_ms} ms");
            if given_up {
                let (before, _) = ticks.until_trial(&among_eight(60));
                let pause = (FIRST_PAUSE.as_micros() / TICK.as_micros()) as u32;
                assert_eq!(before, 2 * pause - 1, "twice the first time");
            }
        }
    }

    #[test]
    fn a_peer_that_announces_too_much_raises_nothing() {
        let mut ticks = Ticks::default();
        ticks.until_trial(&among_eight(60));
        for used in [900_000_000, u64::MAX] {
            ticks.neighbours.follow(&mut share(Some(used), 5, 5), ms(60));
            assert_eq!(ticks.neighbours.least, Some(100));
        }
    }

    #[test]
    fn a_further_fall_needs_a_further_trial() {
        let mut ticks = Ticks::default();
        ticks.until_trial(&among_eight(60));
        ticks.until_end(20);
        // 80 % of the 35 % that count at least, and a queue that is shorter but still too long.
        let used = |used| share(Some(used), 5, 5);
        assert!((0..99).all(|_| ticks.tick(&among_eight(40), &used(280_000)).is_none()));
        assert!((0..99).any(|_| ticks.tick(&among_eight(40), &used(279_999)).is_some()));
    }

    #[test]
    fn the_time_between_trials_that_fail_doubles() {
        let mut ticks = Ticks::default();
        let mut began = || {
            ticks.until_trial(&among_eight(60));
            let at = ticks.count;
            ticks.until_end(60);
            at
        };
        let at: Vec<u32> = (0..4).map(|_| began()).collect();
        let between: Vec<u32> = at.windows(2).map(|pair| (pair[1] - pair[0]) / 2).collect();
        assert_eq!(between, [30, 60, 120]);
    }

    #[test]
    fn a_trial_that_is_given_up_has_no_result() {
        let mut ticks = Ticks::default();
        ticks.until_trial(&among_eight(60));
        ticks.tick(&among_eight(10), &half_used());
        ticks.neighbours.give_up();
        assert_eq!(ticks.tick(&among_eight(10), &half_used()), None);
        assert_eq!(ticks.neighbours.least, None);
    }

    #[test]
    fn a_station_that_delivers_more_than_its_peers_follows_them() {
        let least = |own: u64, peers| {
            let mut ticks = Ticks::default();
            let situation = Situation { rate: Rate::from_mbps(8), ..among_eight(20) };
            let share = share(Some(650_000), own, peers);
            for _ in 0..SETTLED_TICKS + MORE_TICKS {
                ticks.tick(&situation, &share);
            }
            ticks.neighbours.least
        };
        assert_eq!(least(8, 6), Some(45));
        assert_eq!(least(7, 6), None, "it has about what they have");
        assert_eq!(least(12, 8), None, "they have their shares");
        assert_eq!(least(8, 0), None, "nobody has announced a rate");
    }

    #[test]
    fn a_trial_that_failed_or_was_in_vain_has_shown_strangers() {
        let after = |trial_ms, later_ms| {
            let mut ticks = Ticks::default();
            assert!(!ticks.neighbours.has_tried_in_vain(), "no trial yet");
            ticks.until_trial(&among_eight(60));
            assert!(!ticks.neighbours.has_tried_in_vain(), "it is under way");
            ticks.until_end(trial_ms);
            for _ in 0..SETTLED_TICKS {
                ticks.tick(&among_eight(later_ms), &half_used());
            }
            ticks.neighbours.has_tried_in_vain()
        };
        assert!(after(60, 10), "it failed");
        assert!(!after(10, 10), "it succeeded");
        assert!(after(30, 60), "it succeeded, and was in vain");
    }

    #[test]
    fn stations_that_are_all_behind_try_although_not_much_is_missing() {
        // A queue above the target, and not long. Of the expected sum 70 % are used.
        let is_tried = |own, peers| {
            let situation = Situation { rate: Rate::from_mbps(own), ..among_eight(30) };
            let mut ticks = Ticks::default();
            (0..60).any(|_| ticks.tick(&situation, &share(Some(700_000), own, peers)).is_some())
        };
        assert!(is_tried(7, 7));
        assert!(!is_tried(7, 8), "the peers have their shares");
    }
}
