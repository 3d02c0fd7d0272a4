//! Challenges. By repeating the challenge of another station, a station proves that its message is
//! new and not a recording.
//!
//! A message carries the boot id of its station. The boot id is drawn at the start of the
//! controller, and names one incarnation of the station. Sequence numbers detect the replay of
//! messages that were received before. They do not detect recorded messages of an incarnation from
//! which nothing was received before. So each station sends a challenge, a number that is
//! unpredictable without the key. Another incarnation counts as live only after one of its messages
//! has repeated a recent challenge. A message with this repetition cannot have been recorded before
//! the challenge was first sent.

use std::collections::VecDeque;
use std::hint::black_box;

use wakeai_units::{Duration, Instant};

use super::marks::Mark;
use super::received::{Head, Received};
use super::{BootId, Challenge};
use crate::places::Places;

/// The largest number of challenges that are valid at one time.
const KEPT: usize = 32;
/// A challenge is replaced after this time, or after eight intervals of this station's messages
/// where that is longer.
const ROTATE_AFTER: Duration = Duration::from_secs(60);

struct Epoch {
    challenge: Challenge,
    since: Instant,
    /// The incarnation that was dropped at the end of this epoch. To prove that it is live, this
    /// incarnation has to answer the challenge of a later epoch.
    closed_by: Option<BootId>,
}

/// This station's own challenges.
///
/// Each challenge has its epoch, the time in which this station sends it. A challenge is replaced
/// after some time, and also when an incarnation is dropped, so that no old message makes that
/// incarnation live again. At most 32 challenges are kept.
pub(crate) struct Challenges {
    key: [u8; 32],
    boot: BootId,
    count: u64,
    epochs: VecDeque<Epoch>,
    /// The marks of the challenges of all epochs, and of some that ended.
    marks: Vec<Mark>,
}

impl Challenges {
    /// The challenges of this station's incarnation `boot`. They are unpredictable without the
    /// group key.
    pub(crate) fn new(now: Instant, group_key: &[u8; 32], boot: BootId) -> Self {
        let key = blake3::derive_key("Wakeai presence v2 challenge", group_key);
        let mut this = Self { key, boot, count: 0, epochs: VecDeque::new(), marks: Vec::new() };
        this.open(now);
        this
    }

    /// The challenge to send now. `interval` is the time between this station's messages.
    pub(crate) fn current(&mut self, now: Instant, interval: Duration) -> Challenge {
        let lifetime = ROTATE_AFTER.max(interval.saturating_mul(8));
        let newest = self.epochs.back().expect("one epoch is always open");
        if now.saturating_since(newest.since) >= lifetime {
            self.open(now);
        }
        let oldest_good = lifetime.saturating_mul(2);
        while self.epochs.len() > 1
            && self.epochs.get(1).is_some_and(|e| now.saturating_since(e.since) >= oldest_good)
        {
            self.epochs.pop_front();
        }
        self.epochs.back().expect("one epoch is always open").challenge
    }

    /// Drops the incarnation `boot` of another station. Only an answer to a later challenge proves
    /// that this incarnation is live again.
    pub(crate) fn retire(&mut self, now: Instant, boot: BootId) {
        self.epochs.back_mut().expect("one epoch is always open").closed_by = Some(boot);
        self.open(now);
    }

    /// Whether `boot` was dropped at the end of an epoch that is still kept.
    pub(crate) fn retired(&self, boot: BootId) -> bool {
        self.epochs.iter().any(|epoch| epoch.closed_by == Some(boot))
    }

    /// Whether a message proves by its answers that its incarnation is live. The marks of the answers
    /// show for most messages that they do not.
    pub(super) fn prove(&self, received: &Received) -> bool {
        let Received { head: Head { boot, marks, .. }, message } = received;
        let later = || self.epochs.iter().rev().take_while(|epoch| epoch.closed_by != Some(*boot));
        self.marks.iter().any(|own| marks.contain(*own))
            && later().any(|epoch| message.answers.contains(&epoch.challenge))
    }

    fn open(&mut self, now: Instant) {
        let challenge = Challenge::new(&self.key, self.boot, self.count);
        self.count += 1;
        if self.epochs.len() == KEPT {
            self.epochs.pop_front();
        }
        self.epochs.push_back(Epoch { challenge, since: now, closed_by: None });
        self.marks = self.epochs.iter().map(|epoch| Mark::of(epoch.challenge)).collect();
    }
}

/// The number of times that a challenge is answered. Broadcasts are not acknowledged, so some
/// answers are lost.
const REPEATS: usize = 4;

#[derive(Clone, Copy)]
struct Owed {
    boot: BootId,
    challenge: Challenge,
    /// The highest sequence number that was received from the sender of the challenge.
    sequence: u64,
    heard: Instant,
    /// The number of the challenge, by arrival.
    number: u32,
    answered: u8,
}

/// The challenges of other stations, which this station answers.
///
/// Anyone can replay messages of incarnations that ended long ago. The challenges in these messages
/// need no answer, but this station cannot tell them from others. So it answers the challenges
/// first that it has answered least often, and among these the ones that arrived first. A newcomer
/// then waits at most until each challenge that arrived before its own has been answered once.
///
/// The list has the challenges of at most `limit` incarnations. A full list drops one incarnation
/// for a new one. It first drops incarnations whose challenge was answered, and among equals the
/// one that was heard least recently.
pub(crate) struct Answers {
    limit: usize,
    owed: Vec<Owed>,
    places: Places,
    /// The challenges that were answered as often as the queue's place says, in the order of their
    /// arrival: a challenge leaves one queue at its front for the end of the next. An entry has the place
    /// and the number of a challenge, and counts while the place has this number.
    queues: [VecDeque<(u32, u32)>; REPEATS],
    arrived: u32,
}

impl Answers {
    /// An empty list for at most `limit` incarnations.
    pub(crate) fn new(limit: usize) -> Self {
        let queues = std::array::from_fn(|_| VecDeque::new());
        Self { limit, owed: Vec::new(), places: Places::default(), queues, arrived: 0 }
    }

    /// Reads the records of all incarnations and their places, one after another.
    pub(crate) fn read_ahead(&self) {
        black_box(self.owed.iter().fold(0, |all, owed| all ^ owed.sequence));
        self.places.read_ahead();
    }

    /// Takes `challenge`, which the incarnation `boot` sent in the message with the number
    /// `sequence`. Where this message or a later one was received before, the call changes nothing
    /// and returns false.
    pub(crate) fn hear(
        &mut self,
        now: Instant,
        boot: BootId,
        sequence: u64,
        challenge: Challenge,
    ) -> bool {
        let place = self.places.find(boot, |place| self.owed[place].boot);
        if let Some(owed) = place.map(|place| &mut self.owed[place]) {
            if sequence <= owed.sequence {
                return false;
            }
            (owed.sequence, owed.heard) = (sequence, now);
            if owed.challenge == challenge {
                return true;
            }
        }
        self.arrived = self.arrived.wrapping_add(1);
        let number = self.arrived;
        let owed = Owed { boot, challenge, sequence, heard: now, number, answered: 0 };
        let place = if let Some(place) = place {
            self.owed[place] = owed;
            place
        } else {
            self.add(owed)
        };
        self.queue(0, place as u32, number);
        true
    }

    /// The number of challenges that the next message would answer if it had room for all.
    pub(crate) fn waiting(&self) -> usize {
        self.owed.iter().filter(|owed| usize::from(owed.answered) < REPEATS).count()
    }

    /// Adds the challenge of an incarnation that has no place. Returns its place.
    fn add(&mut self, new: Owed) -> usize {
        let is_full = self.owed.len() >= self.limit;
        let order = |(_, owed): &(usize, &Owed)| (owed.answered == 0, owed.heard, owed.boot);
        let dropped = self.owed.iter().enumerate().filter(|_| is_full).min_by_key(order);
        let place = if let Some((place, Owed { boot, .. })) = dropped {
            self.places.remove(*boot, place);
            self.owed[place] = new;
            place
        } else {
            self.owed.push(new);
            self.owed.len() - 1
        };
        self.places.add(new.boot, place, |place| self.owed[place].boot);
        place
    }

    /// Puts a challenge at the end of a queue. Entries that no longer count are removed where they
    /// are more than half of the queue.
    fn queue(&mut self, answered: usize, place: u32, number: u32) {
        let Self { owed, queues, .. } = self;
        let queue = &mut queues[answered];
        if queue.len() > 2 * owed.len() {
            queue.retain(|(place, number)| owed[*place as usize].number == *number);
        }
        queue.push_back((place, number));
    }

    /// The answers of the next message, at most `slots`. Challenges that were answered less often
    /// come first. Of two that were answered equally often, the one that arrived earlier comes
    /// first.
    pub(crate) fn take(&mut self, slots: usize) -> Vec<Challenge> {
        let mut taken = Vec::with_capacity(slots);
        let mut answers = Vec::with_capacity(slots);
        for queue in &mut self.queues {
            while answers.len() < slots
                && let Some((place, number)) = queue.pop_front()
            {
                let owed = &mut self.owed[place as usize];
                if owed.number != number {
                    continue;
                }
                owed.answered += 1;
                answers.push(owed.challenge);
                taken.push((usize::from(owed.answered), place, number));
            }
        }
        for (answered, place, number) in taken {
            if answered < REPEATS {
                self.queue(answered, place, number);
            }
        }
        debug_assert!(answers.len() <= slots);
        answers
    }
}

#[cfg(test)]
mod tests {
    use super::super::codec::ANSWER_SLOTS;
    use super::*;
    use crate::presence::Presence;
    use crate::{Announcement, StationId};

    const US: BootId = BootId([1; 16]);
    const THEM: BootId = BootId([2; 16]);
    const OTHERS: BootId = BootId([3; 16]);

    fn at(secs: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(secs)
    }

    fn hear(
        answers: &mut Answers,
        now: Instant,
        boot: BootId,
        sequence: u64,
        challenge: Challenge,
    ) -> bool {
        answers.hear(now, boot, sequence, challenge)
    }

    /// Whether a message of `boot` with these answers proves that `boot` is live.
    fn proves(ours: &Challenges, boot: BootId, answers: &[Challenge]) -> bool {
        ours.prove(&Received::new(Presence {
            bssid: [0; 6],
            station: StationId(1),
            boot,
            sequence: 1,
            interval: Duration::from_secs(1),
            announced: Announcement::default(),
            unix_time: None,
            challenge: Challenge(1),
            law: None,
            answers: answers.to_vec(),
        }))
    }

    fn challenges() -> Challenges {
        Challenges::new(at(0), &[7; 32], US)
    }

    #[test]
    fn an_answer_to_each_kept_challenge_proves_in_each_slot() {
        let mut ours = challenges();
        let mut kept = vec![ours.current(at(0), Duration::ZERO)];
        for number in 1..KEPT as u8 {
            ours.retire(at(0), BootId([100 + number; 16]));
            kept.push(ours.current(at(0), Duration::ZERO));
        }
        // It has the mark of the challenge, and is another one.
        let alike = |Challenge(number)| Challenge(number ^ 1 << 40);
        for challenge in kept {
            for slot in 0..ANSWER_SLOTS {
                let mut answers = [alike(challenge); ANSWER_SLOTS];
                assert!(!proves(&ours, THEM, &answers), "{challenge:?} in {slot}");
                answers[slot] = challenge;
                assert!(proves(&ours, THEM, &answers), "{challenge:?} in {slot}");
                assert!(proves(&ours, THEM, &answers[..=slot]), "{challenge:?} in {slot}");
            }
        }
    }

    #[test]
    fn only_an_answer_to_our_own_challenge_proves() {
        let mut ours = challenges();
        let challenge = ours.current(at(0), Duration::ZERO);
        assert!(proves(&ours, THEM, &[Challenge(5), challenge]));
        assert!(!proves(&ours, THEM, &[Challenge(5)]));
        assert!(!proves(&ours, THEM, &[]));
        let after_reboot = Challenges::new(at(0), &[7; 32], BootId([9; 16]));
        assert!(!proves(&after_reboot, THEM, &[challenge]), "recorded before our start");
    }

    #[test]
    fn a_challenge_is_replaced_and_later_void() {
        let mut ours = challenges();
        let first = ours.current(at(0), Duration::ZERO);
        assert_eq!(ours.current(at(59), Duration::ZERO), first);
        let second = ours.current(at(60), Duration::ZERO);
        assert_ne!(second, first);
        assert!(proves(&ours, THEM, &[first]), "an answer may be on its way");
        ours.current(at(120), Duration::ZERO);
        ours.current(at(180), Duration::ZERO);
        assert!(!proves(&ours, THEM, &[first]));
    }

    #[test]
    fn only_a_dropped_incarnation_has_to_answer_again() {
        let mut ours = challenges();
        let before = ours.current(at(0), Duration::ZERO);
        ours.retire(at(1), THEM);
        assert!(ours.retired(THEM));
        assert!(!proves(&ours, THEM, &[before]), "its earlier answers are void");
        assert!(proves(&ours, OTHERS, &[before]));
        let after = ours.current(at(2), Duration::ZERO);
        assert!(proves(&ours, THEM, &[after]));
    }

    #[test]
    fn many_departures_keep_the_memory_bounded() {
        let mut ours = challenges();
        let first = ours.current(at(0), Duration::ZERO);
        for count in 0..1_000_u16 {
            ours.retire(at(1), BootId([count.to_be_bytes()[0] ^ count.to_be_bytes()[1]; 16]));
            assert!(ours.epochs.len() <= KEPT);
        }
        assert!(!proves(&ours, OTHERS, &[first]));
    }

    #[test]
    fn each_challenge_is_answered_four_times_new_ones_first() {
        let mut answers = Answers::new(100);
        hear(&mut answers, at(0), THEM, 1, Challenge(5));
        assert_eq!(
            [answers.take(ANSWER_SLOTS), answers.take(ANSWER_SLOTS)],
            [[Challenge(5)], [Challenge(5)]]
        );
        hear(&mut answers, at(1), OTHERS, 1, Challenge(6));
        assert_eq!(answers.take(ANSWER_SLOTS), [Challenge(6), Challenge(5)]);
        answers.take(ANSWER_SLOTS);
        assert_eq!(answers.take(ANSWER_SLOTS), [Challenge(6)]);
        answers.take(ANSWER_SLOTS);
        assert!(answers.take(ANSWER_SLOTS).is_empty());
        hear(&mut answers, at(2), THEM, 2, Challenge(7));
        assert_eq!(answers.take(ANSWER_SLOTS), [Challenge(7)]);
    }

    #[test]
    fn a_message_counts_once() {
        let mut answers = Answers::new(10);
        assert!(hear(&mut answers, at(0), THEM, 7, Challenge(5)));
        for (sequence, challenge) in [(7, 5), (7, 6), (1, 6)] {
            assert!(!hear(&mut answers, at(1), THEM, sequence, Challenge(challenge)));
        }
        assert_eq!(answers.take(ANSWER_SLOTS), [Challenge(5)]);
    }

    #[test]
    fn changing_challenges_do_not_delay_one_that_waits() {
        let mut answers = Answers::new(100);
        let hear = |answers: &mut Answers, boot, sequence, challenge| {
            hear(answers, at(0), BootId([boot; 16]), sequence, Challenge(challenge))
        };
        for round in 1..100 {
            for boot in 0..40 {
                assert!(hear(&mut answers, boot, round, round * 100 + u64::from(boot)));
            }
            if round == 50 {
                hear(&mut answers, 99, 1, 7);
            }
            if answers.take(ANSWER_SLOTS).contains(&Challenge(7)) {
                assert!(
                    (50..=53).contains(&round),
                    "{round}: the answers to 40 others fill three messages"
                );
                return;
            }
        }
        panic!("never answered");
    }

    #[test]
    fn answered_incarnations_are_dropped_first() {
        let mut answers = Answers::new(20);
        let hear = |answers: &mut Answers, boot, secs| {
            hear(answers, at(secs), BootId([boot; 16]), 1, Challenge(u64::from(boot) + 1))
        };
        for boot in 0..20 {
            hear(&mut answers, boot, 0);
        }
        answers.take(ANSWER_SLOTS);
        for boot in 20..36 {
            hear(&mut answers, boot, 1);
        }
        let left: Vec<u64> =
            answers.take(ANSWER_SLOTS).iter().map(|challenge| challenge.0 - 1).collect();
        assert_eq!(left[..4], [16, 17, 18, 19], "16 were answered and made room");
    }

    #[test]
    fn sixteen_are_answered_at_a_time_and_the_oldest_make_room() {
        let mut answers = Answers::new(40);
        for boot in 0..50 {
            let challenge = Challenge(u64::from(boot) + 1);
            hear(&mut answers, at(u64::from(boot)), BootId([boot; 16]), 1, challenge);
        }
        assert_eq!(answers.owed.len(), 40);
        let mut said: Vec<Challenge> = (0..3).flat_map(|_| answers.take(ANSWER_SLOTS)).collect();
        said.sort();
        said.dedup();
        assert_eq!(said.len(), 40);
        assert!(said.iter().all(|challenge| challenge.0 > 10));
    }
}
