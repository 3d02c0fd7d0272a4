//! Decides by a trial whether stations without agents take the air that short windows leave.
//!
//! A station that always has a packet ready takes each turn that is free (802.11 DCF). Beside it the stations with agents,
//! whose windows are short, deliver less than is expected. That alone does not show strangers: another access point on the
//! channel takes air as well, and there the windows are right as they are.
//!
//! So all stations hold half of their usual windows for some seconds, at the same wall-clock time. Strangers take what that leaves, and
//! the stations together deliver much less. Stations with agents at other access points hold less at the same time, and each
//! fleet delivers what it did before. The stations of all fleets need clocks that agree to within about half a second, as with NTP.
//!
//! Where the stations deliver less than is expected, they first remember what they deliver with the usual windows ([`Reference`]). From then
//! on the windows follow what the channel leaves ([`super::channel`]), so that no queue is long while the stations wait for the trial. Such windows soon are too short
//! for half of them to tell anything, so the first trial is one of half of the usual windows. Where it shows no strangers, the windows go on following. A later trial is one of half of
//! the present windows, and is compared with the mean of the rates before and after it, because these may rise or fall meanwhile by themselves.
//!
//! One trial is not enough where it shows little. What several of them miss adds up. Where the queue stays long in a trial, less is enough,
//! or the queue alone: half of the windows of all fleets would have shortened it. The station that
//! delivers most does not count, because one that obeys no window takes what the others leave, and announces it.

use std::collections::VecDeque;

use wakeai_units::{Duration, Segments};

use super::share::AirtimeShare;
use super::{BEHIND_PERCENT, KNOWN_TICKS, SETTLED_TICKS, Situation};
use crate::observation::Side;

/// A trial begins when the wall clock reaches a multiple of this time.
const GRID: Duration = Duration::from_secs(4);
/// The number of these times from a trial to the next, at least and at most. Each is a multiple of the shorter ones, so that
/// the trials of all fleets coincide.
const FIRST_PAUSE: u64 = 4;
const LONGEST_PAUSE: u64 = 32;
/// A trial lasts for this many ticks (decisions, one every 0.5 s), and the mean of the last ones counts. It is compared with that of at most as many before it.
const TRIAL_TICKS: u32 = 11;
const MEAN: usize = 6;
/// The window during a trial, percent of that of the share.
const TRIAL_PERCENT: u64 = 50;
/// A trial tells nothing with a window of more than this percentage of that of the share.
const SHORTER_PERCENT: u64 = 75;
/// What all deliver in a trial, percent of what they delivered before. Where it is less, strangers took the rest: a fleet alone
/// loses some percent, because its aggregates are smaller.
const KEPT_PERCENT: u64 = 86;
/// Strangers are found where the trials together missed [`KEPT_PERCENT`] by this much. A trial that kept more reduces the sum.
const MISSED_PERCENT: u64 = 20;
/// The same where the queue stayed long in the last trial: half of the windows of all fleets on a channel end it, those of strangers do not.
/// Where it stayed longer than windows of agents make it, what was kept does not count.
const MISSED_BESIDE_A_QUEUE_PERCENT: u64 = 8;
/// The queue stayed long where it was longer than the target this many times in most of the ticks of a trial that count.
const LONG_QUEUE: u64 = 2;
/// The same for the target of the windows that a trial is half of. The target rises while the windows follow what the channel leaves, because a round of turns takes longer.
const LONG_QUEUE_OF_THE_USUAL: u64 = 4;

/// For so many ticks after the number of senders has changed, or a trial has ended, stations announce rates (means of two seconds) that they had before, and
/// so the sum is too large, or too small. These ticks do not count, and a trial in which the number changes tells nothing.
const STALE_TICKS: usize = 5;
/// Where the windows follow what the channel leaves, the rates of this tick after a trial count as well.
const AFTER_TICKS: usize = STALE_TICKS + 1;
/// At least so many ticks count before a trial.
const LEAST_MEAN: usize = 3;
/// What a trial is compared with is measured anew after so many ticks. The first trial begins within [`FIRST_PAUSE`].
const LONGEST_AGE: usize = 40;

/// A trial begins where the queue was too long within so many ticks. The trials of all fleets have to coincide, and their queues swing.
const SHORT_TICKS: u32 = 8;

/// Peers that a trial has released show it within this many ticks after it.
const FOLLOWED_TICKS: usize = 4 * STALE_TICKS;
/// Where peers were released, most deliver more than this percentage of what they did before the trial.
const GAINED_PERCENT: u64 = 110;
/// A peer that has more than this percentage of its share, besides the one that has most, holds no window any more.
const AHEAD_PERCENT: u64 = 200;

/// Decides about trials of uploads.
#[derive(Clone, Debug, Default)]
pub(super) struct UploadTrial {
    /// What most delivered in the last ticks ([`AirtimeShare::recent_by_most`]).
    used: VecDeque<Option<u64>>,
    /// The number of the present time of the grid.
    at: Option<u64>,
    running: Option<Running>,
    /// The last trial, until the rates after it are known.
    ended: Option<Ended>,
    /// The number of ticks since the last trial.
    since: usize,
    /// What the next trial is compared with. From then until the trial the windows follow what the channel leaves.
    reference: Option<Reference>,
    /// The number of consecutive ticks with the usual windows in which the stations delivered less than expected, or in which that was not known.
    usual: usize,
    senders: Senders,
    /// The number of times of the grid from one trial to the next.
    pause: u64,
    /// The percentage by which the trials missed [`KEPT_PERCENT`].
    missed: u64,
    /// What the last trial was compared with, where it kept less than [`KEPT_PERCENT`] of that, and found no strangers yet.
    close: Option<u64>,
    /// Whether others on the channel take what is missing: the last trial has shown no strangers, or none is possible.
    cleared: bool,
    /// The number of consecutive ticks without another sender.
    alone: u32,
    /// The number of ticks since the queue was longer than the target allows.
    short: u32,
    /// The number of consecutive ticks in which the peers delivered more than this station.
    less: u32,
}

/// For how long there have been about as many senders.
#[derive(Clone, Copy, Debug, Default)]
struct Senders {
    count: u32,
    ticks: usize,
}

impl Senders {
    /// Takes the number of senders at the `tick`th tick of this station. Up to a quarter more or fewer are about as many. Before the first such
    /// tick the stations that began together have found each other, and whom a station finds in its first ticks began when it did.
    fn on_tick(&mut self, count: u32, tick: u32) {
        if self.count == 0 {
            *self = Self { count, ticks: STALE_TICKS + MEAN };
        } else if self.count.abs_diff(count) * 4 > self.count {
            let ticks = if tick <= KNOWN_TICKS { STALE_TICKS } else { 0 };
            *self = Self { count, ticks };
        }
        self.ticks = self.ticks.saturating_add(1);
    }

    /// Whether others came or went at this tick, whose rates are not announced yet.
    fn have_changed(self) -> bool {
        self.ticks == 1
    }
}

/// What a trial is compared with.
#[derive(Clone, Copy, Debug)]
struct Reference {
    /// What most delivered.
    used: u64,
    /// The window of the trial: half of the one at that time.
    window: Segments,
    /// The target queueing delay at that time.
    target: Duration,
    /// The number of ticks since then.
    age: usize,
}

#[derive(Clone, Copy, Debug)]
struct Running {
    /// The number of further ticks.
    left: u32,
    reference: Reference,
    queues: Queues,
}

/// In how many of the ticks of a trial that count the queue stayed long.
#[derive(Clone, Copy, Debug, Default)]
struct Queues {
    /// It was longer than [`LONG_QUEUE`] times the target, or [`LONG_QUEUE_OF_THE_USUAL`] times the one of the windows before.
    long: usize,
    /// It was longer than the windows of stations with agents make it ([`Situation::queue_is_long_for`]), with the lower one of both targets.
    too_long: usize,
}

impl Queues {
    /// Takes a tick of a trial. `usual` is the target of the windows that the trial is half of.
    fn on_tick(&mut self, situation: &Situation, usual: Duration) {
        let long = (situation.target * LONG_QUEUE).min(usual * LONG_QUEUE_OF_THE_USUAL);
        self.long += usize::from(situation.path.growth > long);
        self.too_long += usize::from(situation.queue_is_long_for(usual.min(situation.target)));
    }

    /// What the trials must have missed to show strangers, percent.
    fn limit(self) -> u64 {
        let is_most = |ticks: usize| ticks * 2 > MEAN;
        if is_most(self.too_long) {
            0
        } else if is_most(self.long) {
            MISSED_BESIDE_A_QUEUE_PERCENT
        } else {
            MISSED_PERCENT
        }
    }
}

/// A trial that waits for the rates after it.
#[derive(Clone, Copy, Debug)]
struct Ended {
    /// The number of further ticks.
    left: usize,
    /// What most delivered before the trial, and in it.
    before: u64,
    during: u64,
    /// What the trials must have missed to show strangers, percent.
    limit: u64,
}

/// What a tick of [`UploadTrial`] says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tried {
    /// The station holds the window of its share.
    Nothing,
    /// The station holds this window.
    Less(Segments),
    /// Strangers were found.
    Strangers,
}

impl UploadTrial {
    /// `tick` is the number of ticks since the station began, and `may_begin` says whether the station holds a window at
    /// all.
    pub(super) fn on_tick(
        &mut self,
        tick: u32,
        seen: Side<'_>,
        situation: &Situation,
        share: &AirtimeShare,
        may_begin: bool,
    ) -> Tried {
        let at = seen.seen.unix_time.map(|time| time.as_micros() / GRID.as_micros());
        let last = std::mem::replace(&mut self.at, at);
        if let Some(reference) = &mut self.reference {
            reference.age += 1;
        }
        let now = at.filter(|at| last.is_some_and(|last| last != *at));
        self.alone = if situation.senders > 1 { 0 } else { self.alone.saturating_add(1) };
        let used = share.used_by_most.filter(|_| situation.senders > 1);
        let is_idle = self.running.is_none() && self.ended.is_none();
        let is_usual = is_idle && may_begin && !self.cleared && self.reference.is_none();
        self.usual = if is_usual { self.usual.saturating_add(1) } else { 0 };
        if used.is_none() && is_idle {
            self.cleared &= !self.is_alone();
            // What comes before a gap says nothing of what comes after it.
            self.used.clear();
            if self.is_alone() {
                (self.reference, self.usual) = (None, 0);
            }
            return Tried::Nothing;
        }
        if self.used.len() == MEAN {
            self.used.pop_front();
        }
        // A peer whose messages were lost may be unknown for a moment. The others go on with a trial meanwhile.
        if used.is_some() {
            self.senders.on_tick(situation.senders, tick);
        }
        if self.senders.have_changed() {
            self.reference = None;
        }
        // What peers announce may be anything.
        let recent = share.recent_by_most.filter(|_| used.is_some());
        self.used.push_back(recent.map(|used| used.min(u64::from(u32::MAX))));
        if let Some(running) = &mut self.running {
            running.left -= 1;
            if (running.left as usize) < MEAN {
                running.queues.on_tick(situation, running.reference.target);
            }
            if running.left > 0 && may_begin {
                return Tried::Less(running.reference.window);
            }
            let Running { left, reference: Reference { used: before, .. }, queues } = *running;
            (self.running, self.since, self.reference) = (None, 0, None);
            let tells = left == 0 && self.senders.ticks > TRIAL_TICKS as usize;
            // A first trial may tell nothing, because others have just begun. A later one costs as much as one that tells something.
            self.pause = self.pause.max(if tells || self.pause > 0 { FIRST_PAUSE } else { 1 });
            let limit = queues.limit();
            if let Some(during) = self.mean(MEAN).filter(|_| left == 0) {
                if self.cleared {
                    self.ended = Some(Ended { left: AFTER_TICKS, before, during, limit });
                } else if tells && self.shows_strangers(during, before, limit) {
                    return Tried::Strangers;
                }
            }
        } else if let Some(ended) = &mut self.ended {
            ended.left -= 1;
            if ended.left == 0 {
                let Ended { before, during, limit, .. } = *ended;
                self.ended = None;
                let are_same = self.senders.ticks > TRIAL_TICKS as usize + AFTER_TICKS;
                let after = self.mean(1).filter(|_| are_same && may_begin);
                if after.is_some_and(|after| {
                    self.shows_strangers(during, before.midpoint(after), limit)
                }) {
                    return Tried::Strangers;
                }
            }
        }
        let Some(used) = used else { return Tried::Nothing };
        if self.peers_were_released(share) && may_begin {
            return Tried::Strangers;
        }
        self.short =
            if situation.queue_exceeds_the_target() { 0 } else { self.short.saturating_add(1) };
        let was_long = self.short < SHORT_TICKS || share.channel.leaves_less_than(BEHIND_PERCENT);
        // A station that alone is behind has another reason than strangers.
        let less = |part: u64| part < BEHIND_PERCENT * 10_000;
        let behind = less(used) && share.peer.is_none_or(less) && was_long;
        // Nothing is missing any more. Whoever comes next may be a stranger.
        let missing = behind || share.channel.leaves_less_than(100);
        self.cleared &= missing;
        let pause = if self.cleared { self.pause } else { self.pause.min(FIRST_PAUSE) };
        let due = now.is_some_and(|at| at.is_multiple_of(pause.max(1)));
        // In the first ticks the rates rise.
        if !(less(used) && share.peer.is_none_or(less)) && tick > KNOWN_TICKS {
            self.usual = 0;
        }
        // The windows that follow the channel change, and so does what a later trial is compared with.
        let is_old = self.reference.is_some_and(|reference| reference.age > LONGEST_AGE);
        if self.cleared || !missing || !may_begin || is_old {
            self.reference = None;
        }
        if self.reference.is_none() && behind && may_begin && tick > KNOWN_TICKS {
            self.refer(seen, situation, share);
        }
        let tries = due && behind && may_begin && self.ended.is_none();
        let Some(reference) = self.reference.filter(|_| tries) else { return Tried::Nothing };
        self.running = Some(Running { left: TRIAL_TICKS, reference, queues: Queues::default() });
        Tried::Less(reference.window)
    }

    /// Keeps what most deliver as [`Self::reference`], where their rates are those of the present windows. Where no trial is
    /// possible, the windows follow the channel without one.
    fn refer(&mut self, seen: Side<'_>, situation: &Situation, share: &AirtimeShare) {
        let held = if self.cleared { usize::MAX } else { self.usual };
        let settled = self.senders.ticks.min(held).saturating_sub(STALE_TICKS).min(MEAN);
        let Some(used) = self.mean(settled).filter(|_| settled >= LEAST_MEAN) else { return };
        let target = situation.target;
        self.reference = shorter(seen, situation, share).map(|window| Reference {
            used,
            window,
            target,
            age: 0,
        });
        self.cleared |= self.reference.is_none();
    }

    /// Whether a trial is under way.
    pub(super) fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// Whether the windows may follow what the channel leaves. Without a clock there is no trial before.
    pub(super) fn may_follow(&self, has_clock: bool) -> bool {
        (self.cleared || self.reference.is_some() || !has_clock) && !self.is_alone()
    }

    /// Whether no other station sends. Where messages are lost, a peer may be unknown for a moment.
    fn is_alone(&self) -> bool {
        self.alone >= KNOWN_TICKS
    }

    /// The mean of the last `ticks` ticks; `None` where it is known in fewer than half of them.
    fn mean(&self, ticks: usize) -> Option<u64> {
        let known = self.used.iter().rev().take(ticks).flatten();
        let (count, sum) = (known.clone().count(), known.sum::<u64>());
        sum.checked_div(count as u64).filter(|_| count * 2 >= ticks)
    }

    /// Takes the result of a trial in which the stations delivered `during` instead of `usual`. Strangers are found where the trials have missed
    /// `limit`, percent. A trial that shows something is soon followed by
    /// the next; otherwise the time to the next doubles, because a trial costs goodput.
    fn shows_strangers(&mut self, during: u64, usual: u64, limit: u64) -> bool {
        let kept = during.saturating_mul(100) / usual.max(1);
        let shows = kept < KEPT_PERCENT;
        self.missed = (self.missed + KEPT_PERCENT).saturating_sub(kept);
        let found = self.missed >= limit;
        self.close = (shows && !found).then_some(usual);
        self.cleared = !found;
        let pause = if shows { FIRST_PAUSE } else { self.pause.max(FIRST_PAUSE) * 2 };
        self.pause = pause.min(LONGEST_PAUSE);
        if found {
            self.missed = 0;
        }
        found
    }

    /// Whether peers have found strangers in the trial that nearly showed them to this station. They deliver more than it does then, and than
    /// before the trial, or one of them much more than its share. The rates of the trial itself do not count.
    fn peers_were_released(&mut self, share: &AirtimeShare) -> bool {
        self.since = self.since.saturating_add(1);
        let ahead = share.second.is_some_and(|second| second > AHEAD_PERCENT * 10_000);
        let is_known = (STALE_TICKS + 1..=FOLLOWED_TICKS).contains(&self.since);
        let behind = share.own < share.peers.times(BEHIND_PERCENT, 100);
        let gained =
            |usual: u64| share.used_by_most.is_some_and(|used| used > usual * GAINED_PERCENT / 100);
        let less = self.close.is_some_and(|usual| is_known && (ahead || behind && gained(usual)));
        self.less = if less { self.less + 1 } else { 0 };
        let released = self.less >= SETTLED_TICKS;
        if released {
            (self.less, self.close) = (0, None);
        }
        released
    }
}

/// The window of a trial; `None` where it could not be much shorter than that of the share. It is enough for the
/// rate that the station has, a quarter more than the measured minimum RTT, and half of the target, so that a queue remains
/// where nobody takes what it leaves.
fn shorter(seen: Side<'_>, situation: &Situation, share: &AirtimeShare) -> Option<Segments> {
    let (target, mss) = (situation.target, seen.own().mss());
    let held = Segments::in_flight(situation.windowed, situation.path.min + target, mss).get();
    let part = |percent| u64::from(held) * percent / 100;
    let min = seen.own().rtt?.min;
    let needed = Segments::in_flight(share.own, min * 5 / 4 + target / 2, mss).get();
    // An odd window waits for a delayed ACK.
    let window = u32::try_from(part(TRIAL_PERCENT)).unwrap_or(u32::MAX).max(needed) & !1;
    let least = situation.least_window().get() * 2;
    let is_shorter = u64::from(window) <= part(SHORTER_PERCENT);
    (is_shorter && window >= least).then(|| Segments::new(window))
}

#[cfg(test)]
mod tests {
    use wakeai_connection::Direction;
    use wakeai_units::Rate;

    use super::super::{Airtime, AirtimeKnobs};
    use super::*;
    use crate::observation::{example, peer, traffic, uploads};
    use crate::{Basis, Law, Observation, OwnTraffic, Phase, RttView, Traffic};

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// A station among eight with a path of 20 ms, a target of 10 ms and a queueing delay of 20 ms. Its share is 10 Mbit/s:
    /// windows of 25 segments.
    fn situation() -> Situation {
        Situation { senders: 8, target: ms(10), ..Situation::example(20, 20) }
    }

    /// Most stations use `used` percent of the expected sum, this one delivers `own` Mbit/s and a peer `peers`.
    fn share(used: u64, own: u64, peers: u64) -> AirtimeShare {
        let mut share = AirtimeShare::default();
        share.used_by_most = Some(used * 10_000);
        share.recent_by_most = share.used_by_most;
        share.peer = Some(peers * 100_000);
        (share.own, share.peers) = (Rate::from_mbps(own), Rate::from_mbps(peers));
        share
    }

    /// Consecutive ticks from a Unix time of 1000 s on.
    #[derive(Default)]
    struct Ticks {
        trial: UploadTrial,
        count: u32,
        has_no_clock: bool,
        is_released: bool,
    }

    impl Ticks {
        fn tick_in(&mut self, situation: &Situation, share: &AirtimeShare) -> Tried {
            self.count += 1;
            let time = Duration::from_secs(1000) + ms(500) * u64::from(self.count);
            let rtt = Some(RttView { current: ms(50), min: ms(20), growth: ms(30) });
            let seen = Observation {
                unix_time: (!self.has_no_clock).then_some(time),
                up: OwnTraffic { rtt, ..OwnTraffic::default() },
                ..Observation::default()
            };
            let holds = !self.is_released;
            self.trial.on_tick(self.count, seen.side(Direction::Up), situation, share, holds)
        }

        fn tick(&mut self, used: u64) -> Tried {
            self.tick_in(&situation(), &share(used, 3, 3))
        }

        /// The second of the wall clock, counted from the first tick, in which a trial begins, and its window.
        fn begins(&mut self) -> Option<(u32, u32)> {
            (0..1_000).find_map(|_| match self.tick(50) {
                Tried::Less(window) => Some((self.count / 2, window.get())),
                _ => None,
            })
        }

        /// Whether strangers are found by the present trial, in which most use `used` percent.
        fn ends(&mut self, used: u64) -> bool {
            self.ends_before(used, 50)
        }

        /// The same where most use `after` percent after it.
        fn ends_before(&mut self, used: u64, after: u64) -> bool {
            let waits = self.trial.cleared;
            for _ in 1..TRIAL_TICKS {
                assert_eq!(self.tick(used), Tried::Less(Segments::new(12)));
            }
            let mut tried = self.tick(used);
            for _ in 0..if waits { AFTER_TICKS } else { 0 } {
                assert_eq!(tried, Tried::Nothing);
                tried = self.tick(after);
            }
            tried == Tried::Strangers
        }
    }

    #[test]
    fn half_of_the_window_is_held_from_a_multiple_of_four_seconds_on() {
        assert_eq!(Ticks::default().begins(), Some((8, 12)));
        assert_eq!(Ticks { has_no_clock: true, ..Ticks::default() }.begins(), None);
    }

    #[test]
    fn nothing_is_tried_without_a_reason() {
        let none = |situation: Situation, share: AirtimeShare| {
            let mut ticks = Ticks::default();
            assert!((0..99).all(|_| ticks.tick_in(&situation, &share) == Tried::Nothing));
        };
        let usual = || share(50, 3, 3);
        none(situation(), share(80, 3, 3));
        let mut unknown = usual();
        unknown.used_by_most = None;
        none(situation(), unknown);
        none(Situation { senders: 1, ..situation() }, usual());
        none(Situation { target: ms(28), ..situation() }, usual());
        // Four segments per connection are 28, and more than half of the window.
        none(Situation { connections: 7, ..situation() }, usual());
        // A rate of 8 Mbit/s over a path that may have 25 ms needs 20 of 25 segments.
        none(situation(), share(50, 8, 3));
    }

    /// Ticks in which the messages of peers are lost: the rates of too few are known, or nobody else. What is left of them
    /// shows 90 percent.
    fn lost() -> [(Situation, AirtimeShare); 2] {
        let mut unknown = share(90, 3, 3);
        unknown.used_by_most = None;
        [(situation(), unknown), (Situation { senders: 1, ..situation() }, share(90, 3, 3))]
    }

    #[test]
    fn a_trial_goes_on_while_the_messages_of_peers_are_lost() {
        for (then, lost) in lost() {
            let mut ticks = Ticks::default();
            ticks.begins().expect("a trial");
            for tick in 1..TRIAL_TICKS {
                let is_lost = (6..9).contains(&tick);
                let tried = if is_lost { ticks.tick_in(&then, &lost) } else { ticks.tick(20) };
                assert_eq!(tried, Tried::Less(Segments::new(12)), "{tick}");
            }
            assert_eq!(ticks.tick(20), Tried::Strangers, "lost ticks do not count");
        }
    }

    #[test]
    fn a_trial_that_ended_waits_for_the_rates_after_it_while_messages_are_lost() {
        for (then, lost) in lost() {
            let mut ticks = Ticks::default();
            ticks.begins();
            assert!(!ticks.ends(50));
            ticks.begins();
            for _ in 0..TRIAL_TICKS {
                ticks.tick(30);
            }
            ticks.tick_in(&then, &lost);
            let tried: Vec<_> = (1..AFTER_TICKS).map(|_| ticks.tick(50)).collect();
            assert_eq!(tried.last(), Some(&Tried::Strangers), "{tried:?}");
        }
    }

    /// A tick among this many senders, in which most use `used` percent.
    fn among(ticks: &mut Ticks, senders: u32, used: u64) -> Tried {
        ticks.tick_in(&Situation { senders, ..situation() }, &share(used, 3, 3))
    }

    #[test]
    fn a_trial_in_which_the_number_of_senders_changes_tells_nothing() {
        for (senders, finds) in [(8, true), (10, true), (11, false), (5, false)] {
            let mut ticks = Ticks::default();
            ticks.begins().expect("a trial");
            let tried: Vec<_> = (0..TRIAL_TICKS).map(|_| among(&mut ticks, senders, 20)).collect();
            assert_eq!(tried.contains(&Tried::Strangers), finds, "{senders} senders instead of 8");
        }
    }

    #[test]
    fn a_first_trial_in_which_others_begin_is_repeated_once_without_a_pause() {
        let mut ticks = Ticks::default();
        let mut begins = |senders: u32| {
            let begun = (0..99).any(|_| among(&mut ticks, senders, 50) != Tried::Nothing);
            let second = ticks.count / 2;
            (1..=TRIAL_TICKS).for_each(|_| {
                among(&mut ticks, senders * 2, 50);
            });
            begun.then_some(second)
        };
        // The rates are known four seconds after a trial, in the 18th and 30th second. The third trial waits for a multiple of 16 s.
        assert_eq!([8, 16, 32].map(&mut begins), [Some(8), Some(20), Some(40)]);
    }

    #[test]
    fn a_trial_needs_recent_announcements_before_it_and_in_half_of_its_last_ticks() {
        let unknown = || {
            let mut share = share(20, 3, 3);
            share.recent_by_most = None;
            share
        };
        let mut ticks = Ticks::default();
        assert!((0..99).all(|_| ticks.tick_in(&situation(), &unknown()) == Tried::Nothing));
        for (known, finds) in [(3, true), (2, false), (0, false)] {
            let mut ticks = Ticks::default();
            ticks.begins().expect("a trial");
            let tried: Vec<_> = (1..=TRIAL_TICKS)
                .map(|tick| {
                    let is_known = tick > TRIAL_TICKS - known;
                    let share = if is_known { share(20, 3, 3) } else { unknown() };
                    ticks.tick_in(&situation(), &share)
                })
                .collect();
            assert_eq!(tried.contains(&Tried::Strangers), finds, "{known} of {MEAN} ticks");
            if !finds {
                // The first one began in the eighth second. The next one does not come four seconds after its end.
                assert_eq!(ticks.begins(), Some((24, 12)), "{known} of {MEAN} ticks");
            }
        }
    }

    #[test]
    fn what_was_announced_before_others_came_does_not_count_in_the_next_trial() {
        let mut ticks = Ticks::default();
        (0..8).for_each(|_| assert_eq!(ticks.tick(40), Tried::Nothing));
        // While the old rates are announced, the sum is too large. A trial begins 3.5 s after the others came.
        let stale = [(); STALE_TICKS].map(|()| among(&mut ticks, 16, 79));
        let then: Vec<_> = (0..99).map(|_| among(&mut ticks, 16, 40)).collect();
        assert_eq!(stale, [Tried::Nothing; STALE_TICKS]);
        assert!(matches!(then[2], Tried::Less(_)) && !then.contains(&Tried::Strangers), "{then:?}");
    }

    #[test]
    fn one_clear_loss_or_several_small_ones_show_strangers() {
        // Of 50 percent at least 43 are kept where nobody takes them.
        for (used, trials) in
            [(33, Some(1)), (34, Some(2)), (38, Some(2)), (39, Some(3)), (41, Some(5)), (43, None)]
        {
            let mut ticks = Ticks::default();
            let found = (1..9).find(|_| {
                ticks.begins().expect("a trial");
                ticks.ends(used)
            });
            assert_eq!(found, trials, "{used}");
        }
    }

    /// Whether a first trial that keeps `kept` percent shows strangers. The queueing delay is `growth` ms in the ticks with so many further ones that
    /// `is_long` says, and 20 ms in the others.
    fn shows(kept: u64, growth: u64, is_long: impl Fn(u32) -> bool) -> bool {
        let mut ticks = Ticks::default();
        ticks.begins();
        let mut tried = Tried::Nothing;
        for left in (0..TRIAL_TICKS).rev() {
            let growth = if is_long(left) { growth } else { 20 };
            let situation =
                Situation { senders: 8, target: ms(10), ..Situation::example(20, growth) };
            tried = ticks.tick_in(&situation, &share(kept / 2, 3, 3));
        }
        tried == Tried::Strangers
    }

    #[test]
    fn beside_a_queue_that_stays_long_a_small_loss_shows_strangers() {
        assert_eq!([66, 68].map(|kept| shows(kept, 20, |_| true)), [true, false]);
        assert_eq!([78, 80].map(|kept| shows(kept, 21, |_| true)), [true, false]);
        // Of the six ticks that count, four have a long queue.
        assert_eq!([3, 4].map(|long| shows(78, 21, |left| left < long)), [false, true]);
        // Above half of the longest target and a quarter of the path the queue is that of strangers.
        assert_eq!([42, 43].map(|growth| shows(100, growth, |_| true)), [false, true]);
        assert_eq!([3, 4].map(|long| shows(100, 43, |left| left < long)), [false, true]);
        assert!(
            !shows(100, 43, |left| left >= 6),
            "the queue of the usual windows is still leaving"
        );
    }

    #[test]
    fn where_the_target_has_risen_the_usual_one_counts_as_well() {
        // Of the usual 50 percent 78 in a hundred are kept, or all.
        for (used, growth, finds) in
            [(39, 40, false), (39, 41, true), (50, 42, false), (50, 43, true)]
        {
            let mut ticks = Ticks::default();
            ticks.begins();
            let risen = Situation { senders: 8, target: ms(30), ..Situation::example(20, growth) };
            let tried =
                [(); TRIAL_TICKS as usize].map(|()| ticks.tick_in(&risen, &share(used, 3, 3)));
            assert_eq!(tried.contains(&Tried::Strangers), finds, "{used} %, {growth} ms");
        }
    }

    #[test]
    fn a_later_trial_is_judged_by_the_queue_in_it_too() {
        for (growth, finds) in [(42, false), (43, true)] {
            let mut ticks = Ticks::default();
            ticks.begins();
            assert!(!ticks.ends(50));
            ticks.begins();
            let beside = Situation { senders: 8, target: ms(10), ..Situation::example(20, growth) };
            for _ in 0..TRIAL_TICKS {
                assert_ne!(ticks.tick_in(&beside, &share(50, 3, 3)), Tried::Strangers);
            }
            // The rates after it are awaited, with the usual queue.
            let after = [(); AFTER_TICKS].map(|()| ticks.tick(50));
            assert_eq!(after.contains(&Tried::Strangers), finds, "{growth} ms");
        }
    }

    #[test]
    fn a_trial_without_a_loss_makes_others_count_less() {
        let mut ticks = Ticks::default();
        for used in [38, 48, 38] {
            ticks.begins();
            assert!(!ticks.ends(used), "{used}");
        }
    }

    #[test]
    fn the_time_between_trials_that_show_nothing_doubles_on_a_grid_that_all_share() {
        let mut ticks = Ticks::default();
        let began: Vec<u32> = (0..6)
            .map(|_| {
                let (second, _) = ticks.begins().expect("a trial");
                ticks.ends(50);
                second
            })
            .collect();
        let unix: Vec<u32> = began.iter().map(|second| (1000 + second) % 128).collect();
        assert_eq!(unix[3..], [0, 0, 0], "{began:?}");
        let between: Vec<u32> = began.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert_eq!(between, [16, 64, 64, 128, 128]);
    }

    #[test]
    fn peers_that_were_released_are_followed_after_a_trial_that_nearly_showed_strangers() {
        let follows_with = |most, used, is_released, peers, second| {
            let mut ticks = Ticks::default();
            ticks.begins();
            ticks.ends(used);
            ticks.is_released = is_released;
            let mut share = share(most, 3, peers);
            share.second = Some(second);
            (0..20).any(|_| ticks.tick_in(&situation(), &share) == Tried::Strangers)
        };
        let follows =
            |used, is_released, peers, second| follows_with(80, used, is_released, peers, second);
        let shares = |tenths: u64| tenths * 100_000;
        assert!(!follows_with(55, 42, false, 4, shares(8)), "most have what they had, 50 percent");
        assert!(follows_with(56, 42, false, 4, shares(8)));
        assert!(
            follows_with(50, 42, false, 3, shares(21)),
            "one delivers twice its share and more"
        );
        assert!(follows(42, false, 4, shares(8)), "most deliver more");
        assert!(follows(42, false, 3, shares(21)), "one delivers twice its share and more");
        assert!(!follows(42, false, 3, shares(20)));
        assert!(!follows(43, false, 4, shares(21)), "nothing was missing");
        assert!(!follows(42, true, 4, shares(21)), "its own release goes on");
    }

    #[test]
    fn peers_that_deliver_more_while_the_rates_of_the_trial_are_announced_were_not_released() {
        let mut ticks = Ticks::default();
        ticks.begins();
        assert!(!ticks.ends(42));
        let mut tick = |peers| ticks.tick_in(&situation(), &share(80, 3, peers));
        assert!((0..STALE_TICKS).all(|_| tick(9) == Tried::Nothing));
        assert!((0..9).all(|_| tick(3) == Tried::Nothing));
    }

    #[test]
    fn peers_that_deliver_more_long_after_a_trial_were_not_released_by_it() {
        let released = |wait: usize| {
            let mut ticks = Ticks::default();
            ticks.begins();
            assert!(!ticks.ends(42));
            let mut tick = |peers| ticks.tick_in(&situation(), &share(80, 3, peers));
            (0..wait).for_each(|_| assert_eq!(tick(3), Tried::Nothing));
            (0..9).any(|_| tick(9) == Tried::Strangers)
        };
        // The tick in which the trial ends counts, too.
        let latest = FOLLOWED_TICKS - 1 - SETTLED_TICKS as usize;
        assert_eq!((released(latest), released(latest + 1)), (true, false));
    }

    #[test]
    fn where_the_windows_follow_what_falls_by_itself_shows_no_strangers() {
        // In the second trial 30 of 50 percent, and then as many as this.
        for (after, found) in [(50, true), (40, true), (39, false), (20, false)] {
            let mut ticks = Ticks::default();
            ticks.begins();
            assert!(!ticks.ends(50));
            ticks.begins();
            assert_eq!(ticks.ends_before(30, after), found, "{after}");
        }
    }

    #[test]
    fn the_windows_follow_after_a_trial_without_strangers_until_nothing_is_missing() {
        let mut ticks = Ticks::default();
        assert!(ticks.trial.may_follow(false), "without a clock there is no trial");
        ticks.begins();
        ticks.ends(34);
        assert!(ticks.trial.may_follow(true), "it was not clear");
        ticks.tick(80);
        assert!(!ticks.trial.may_follow(true));
        ticks.begins();
        ticks.ends(33);
        assert!(!ticks.trial.may_follow(true), "strangers");
    }

    #[test]
    fn the_windows_follow_as_soon_as_what_the_usual_ones_deliver_is_known() {
        let mut ticks = Ticks::default();
        let after = (1..20).find(|_| {
            ticks.tick(50);
            ticks.trial.may_follow(true)
        });
        assert_eq!(after, Some(KNOWN_TICKS + 1));
        // They deliver less than before now. The trial is compared with what the usual windows delivered, and its window is half of theirs.
        let begins = |ticks: &mut Ticks| {
            let then = (Situation { windowed: Rate::from_mbps(6), ..situation() }, share(40, 2, 2));
            (0..99).find_map(|_| match ticks.tick_in(&then.0, &then.1) {
                Tried::Less(window) => Some(window.get()),
                _ => None,
            })
        };
        assert_eq!(begins(&mut ticks), Some(12));
        assert!(ticks.trial.is_running() && ticks.trial.may_follow(true));
        assert!(ticks.ends(33), "33 of 50, although 33 of 40 would be too much");
    }

    #[test]
    fn what_the_usual_windows_delivered_is_measured_anew_after_a_trial_that_tells_nothing() {
        let mut ticks = Ticks::default();
        ticks.begins();
        let unknown = || {
            let mut share = share(20, 3, 3);
            share.recent_by_most = None;
            share
        };
        (0..TRIAL_TICKS).for_each(|_| {
            ticks.tick_in(&situation(), &unknown());
        });
        let after = (1..30).find(|_| {
            ticks.tick(50);
            ticks.trial.may_follow(true)
        });
        // The rates are those of the trial for five ticks, and three have to be known.
        assert_eq!(after, Some(STALE_TICKS as u32 + LEAST_MEAN as u32));
    }

    #[test]
    fn the_windows_stop_following_where_others_come_or_nothing_is_missing() {
        let follows = |then: &dyn Fn(&mut Ticks)| {
            let mut ticks = Ticks::default();
            (0..=KNOWN_TICKS).for_each(|_| {
                ticks.tick(50);
            });
            assert!(ticks.trial.may_follow(true));
            then(&mut ticks);
            ticks.trial.may_follow(true)
        };
        assert!(follows(&|ticks| {
            ticks.tick(50);
        }));
        assert!(!follows(&|ticks| {
            ticks.tick(80);
        }));
        assert!(!follows(&|ticks| {
            among(ticks, 12, 50);
        }));
        assert!(!follows(&|ticks| {
            ticks.is_released = true;
            ticks.tick(50);
        }));
    }

    #[test]
    fn whom_a_station_finds_in_its_first_ticks_began_when_it_did() {
        let ready_after = |alone_ticks: u32| {
            let mut ticks = Ticks::default();
            (0..alone_ticks).for_each(|_| {
                among(&mut ticks, 2, 50);
            });
            (1..40).find(|_| {
                among(&mut ticks, 8, 50);
                ticks.trial.may_follow(true)
            })
        };
        // Three ticks have to be known, and the rates of those that came later are settled after five.
        assert_eq!((ready_after(KNOWN_TICKS - 2), ready_after(KNOWN_TICKS)), (Some(3), Some(8)));
    }

    /// The number of ticks until the windows follow, in which most use 50 percent.
    fn until_it_follows(ticks: &mut Ticks) -> Option<usize> {
        (1..99).find(|_| {
            ticks.tick(50);
            ticks.trial.may_follow(true)
        })
    }

    #[test]
    fn rates_from_before_something_was_missing_do_not_count() {
        let mut ticks = Ticks::default();
        (0..30).for_each(|_| assert_eq!(ticks.tick(85), Tried::Nothing));
        assert_eq!(until_it_follows(&mut ticks), Some(STALE_TICKS + LEAST_MEAN));
        assert_eq!(ticks.trial.reference.expect("it follows").used, 500_000);
    }

    #[test]
    fn rates_from_before_a_gap_do_not_count() {
        let mut ticks = Ticks::default();
        (0..6).for_each(|_| assert_eq!(ticks.tick(70), Tried::Nothing));
        let mut unknown = share(50, 3, 3);
        unknown.used_by_most = None;
        (0..6).for_each(|_| assert_eq!(ticks.tick_in(&situation(), &unknown), Tried::Nothing));
        // Half of six have to be known.
        assert_eq!(until_it_follows(&mut ticks), Some(3));
        assert_eq!(ticks.trial.reference.expect("it follows").used, 500_000);
    }

    #[test]
    fn after_a_release_the_usual_windows_are_measured_first() {
        let mut ticks = Ticks { is_released: true, ..Ticks::default() };
        (0..30).for_each(|_| assert_eq!(ticks.tick(50), Tried::Nothing));
        ticks.is_released = false;
        assert_eq!(until_it_follows(&mut ticks), Some(STALE_TICKS + LEAST_MEAN));
    }

    #[test]
    fn what_a_trial_would_be_compared_with_does_not_get_old() {
        let mut ticks = Ticks { has_no_clock: true, ..Ticks::default() };
        let follows: Vec<bool> = (0..70)
            .map(|_| {
                ticks.tick(50);
                ticks.trial.may_follow(true)
            })
            .collect();
        let first = follows.iter().position(|follows| *follows).expect("it follows");
        let end = follows[first..].iter().position(|follows| !*follows).expect("an end");
        assert_eq!((first, end), (KNOWN_TICKS as usize, LONGEST_AGE + 1));
        let again = follows[first + end..].iter().position(|follows| *follows);
        assert_eq!(again, Some(STALE_TICKS + LEAST_MEAN));
    }

    #[test]
    fn a_station_that_is_alone_does_not_follow() {
        let mut ticks = Ticks { has_no_clock: true, ..Ticks::default() };
        until_it_follows(&mut ticks);
        let alone = Situation { senders: 1, ..situation() };
        (0..KNOWN_TICKS).for_each(|_| {
            ticks.tick_in(&alone, &share(50, 3, 0));
        });
        assert!(!ticks.trial.may_follow(true));
        ticks.tick(50);
        assert!(!ticks.trial.may_follow(true), "another one comes, and its rate is not known");
    }

    #[test]
    fn where_no_trial_is_possible_the_windows_follow() {
        let mut ticks = Ticks::default();
        let situation = Situation { connections: 7, ..situation() };
        for _ in 0..20 {
            ticks.tick_in(&situation, &share(50, 3, 3));
        }
        assert!(ticks.trial.may_follow(true));
        let alone = Situation { senders: 1, ..situation };
        for _ in 0..KNOWN_TICKS {
            assert!(ticks.trial.may_follow(true), "the messages of a peer may be lost");
            ticks.tick_in(&alone, &share(50, 3, 0));
        }
        assert!(!ticks.trial.may_follow(true) && !ticks.trial.may_follow(false), "nobody sends");
        ticks.tick(50);
        assert!(!ticks.trial.may_follow(true), "another one comes, and it tries again");
        assert!(ticks.trial.may_follow(false));
    }

    #[test]
    fn a_station_that_alone_is_behind_makes_no_trial() {
        let tries = |peers| {
            let mut ticks = Ticks::default();
            (0..40).any(|_| ticks.tick_in(&situation(), &share(50, 3, peers)) != Tried::Nothing)
        };
        assert!(tries(7) && !tries(8), "a peer has 80 % of its share");
    }

    #[test]
    fn a_queue_that_was_too_long_within_four_seconds_is_a_reason() {
        let tried = |short: u32| {
            let mut ticks = Ticks::default();
            let within = Situation { target: ms(28), ..situation() };
            for tick in 0..15 {
                let now = if tick < 15 - short { &situation() } else { &within };
                ticks.tick_in(now, &share(50, 3, 3));
            }
            ticks.tick_in(&within, &share(50, 3, 3))
        };
        assert!(matches!(tried(SHORT_TICKS - 2), Tried::Less(_)));
        assert_eq!(tried(SHORT_TICKS), Tried::Nothing);
    }

    /// Whether the law releases a station of eight, each with a share of 5 Mbit/s of which it delivers 2, and 1.3 in a trial if
    /// strangers send.
    fn is_released(strangers: bool, clock: bool) -> bool {
        let max_rate = Some(Rate::from_mbps(40));
        let mut law = Airtime::new(AirtimeKnobs::default());
        let mut in_trial = 0;
        (1..200).any(|tick| {
            let now = wakeai_units::Instant::ZERO + ms(500) * tick;
            // A rate is a mean of four ticks.
            let rate = if strangers && in_trial > 3 { 1_300_000 } else { 2_000_000 };
            let mean_rate = Rate::from_bps(rate);
            let rtt = Some(RttView { current: ms(50), min: ms(20), growth: ms(30) });
            let connections = vec![example()];
            let up = OwnTraffic { connections, rtt, mean_rate, max_rate, ..OwnTraffic::default() };
            let theirs = Traffic { rate: mean_rate, max_rate, growth: ms(30), ..traffic(2) };
            let seen = Observation {
                unix_time: clock.then_some(ms(500) * tick),
                up,
                senders: 8,
                peers: (1..8).map(|station| peer(station, uploads(theirs))).collect(),
                ..Observation::default()
            };
            let Basis::Airtime { up: Some(state), .. } = law.on_tick(now, &seen).1 else {
                panic!("it sends")
            };
            in_trial = if state.phase == Phase::Draining { in_trial + 1 } else { 0 };
            state.phase == Phase::Released
        })
    }

    #[test]
    fn in_a_trial_the_law_keeps_what_the_channel_left_before() {
        let max_rate = Some(Rate::from_mbps(40));
        let mut law = Airtime::new(AirtimeKnobs::default());
        let mut tick = |tick: u64| {
            // In the trial, from tick 16 on, the queue is short.
            let growth = if tick < 16 { ms(50) } else { ms(1) };
            let rtt = Some(RttView { current: ms(20) + growth, min: ms(20), growth });
            let (mean_rate, connections) = (Rate::from_mbps(2), vec![example()]);
            let up = OwnTraffic { connections, rtt, mean_rate, max_rate, ..OwnTraffic::default() };
            let theirs = Traffic { max_rate, growth, ..traffic(2) };
            let seen = Observation {
                unix_time: Some(ms(500) * tick),
                up,
                senders: 8,
                peers: (1..8).map(|station| peer(station, uploads(theirs))).collect(),
                ..Observation::default()
            };
            law.on_tick(wakeai_units::Instant::ZERO + ms(500) * tick, &seen);
            law.up.share.channel.left()
        };
        let left: Vec<_> = (1..=29).map(&mut tick).collect();
        let at = |tick: usize| left[tick - 1];
        assert!(at(9).is_none() && at(16).is_some(), "{left:?}");
        assert!((17..=27).all(|tick| at(tick) == at(16)), "{left:?}");
        assert!(at(29) > at(16), "after it: {left:?}");
    }

    #[test]
    fn a_check_of_the_path_keeps_its_shorter_window_in_a_trial() {
        let max_rate = Some(Rate::from_mbps(40));
        let mut law = Airtime::new(AirtimeKnobs::default());
        let mut window = |tick: u64| {
            // All are behind, so that the windows follow. Then the peers are not, and from tick 18 on the station alone is behind, which starts a
            // check. From tick 24 on, the twelfth second, the peers are behind again, too.
            let own = if tick < 18 { 2 } else { 1 };
            let theirs = if (12..24).contains(&tick) { 5 } else { 2 };
            let growth = ms(50);
            let rtt = Some(RttView { current: ms(20) + growth, min: ms(20), growth });
            let (mean_rate, connections) = (Rate::from_mbps(own), vec![example()]);
            let up = OwnTraffic { connections, rtt, mean_rate, max_rate, ..OwnTraffic::default() };
            let theirs = Traffic { max_rate, growth: ms(1), ..traffic(theirs) };
            let seen = Observation {
                unix_time: Some(ms(500) * tick),
                up,
                senders: 8,
                peers: (1..8).map(|station| peer(station, uploads(theirs))).collect(),
                ..Observation::default()
            };
            let (bounds, basis) = law.on_tick(wakeai_units::Instant::ZERO + ms(500) * tick, &seen);
            let Basis::Airtime { up: Some(state), .. } = basis else { panic!("it sends") };
            (state.phase, bounds.ceiling)
        };
        let windows: Vec<_> = (1..=30).map(&mut window).collect();
        let at = |tick: usize| windows[tick - 1];
        assert!((23..=30).all(|tick| at(tick).0 == Phase::Draining), "{windows:?}");
        assert_eq!(at(22).0, Phase::Steady);
        assert!(at(25).1 < at(30).1, "the check, and then the trial: {windows:?}");
    }

    #[test]
    fn the_law_releases_a_station_whose_trial_shows_strangers() {
        assert!(is_released(true, true));
        assert!(!is_released(false, true), "nothing is missing in the trial");
        assert!(!is_released(true, false), "without a clock there is no trial in common");
    }
}
