//! Proof that a message was made now and is not a recording.
//!
//! Sequence numbers stop the replay of what was heard; they say nothing about an incarnation that
//! was never heard. So each station sends a challenge, random to whoever lacks the key, and counts
//! another incarnation as live only after a message of it repeats a recent challenge: such a
//! message cannot have been recorded before the challenge was first sent.

use std::collections::{BTreeMap, VecDeque};

use wakeai_units::{Duration, Instant};

use super::BootId;
use super::codec::ANSWER_SLOTS;
/// What another station has to repeat. Zero is never used: it is an empty slot on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Challenge(pub u64);

/// Challenges that are still good at one time.
const KEPT: usize = 32;
/// A challenge is replaced after this time at the latest (or eight own intervals, if longer).
const ROTATE_AFTER: Duration = Duration::from_secs(60);

struct Epoch {
    challenge: Challenge,
    since: Instant,
    /// The incarnation whose end closed this epoch: answers up to here prove nothing for it.
    closed_by: Option<BootId>,
}

/// This station's own challenges.
///
/// A new one begins with time, and whenever an incarnation is dropped, so that nothing that the
/// dropped one ever said can bring it back. Memory: 32 challenges.
pub struct Challenges {
    key: [u8; 32],
    boot: BootId,
    count: u64,
    epochs: VecDeque<Epoch>,
}

impl Challenges {
    /// The challenges of the incarnation `boot`, unpredictable without the group key.
    pub fn new(now: Instant, group_key: &[u8; 32], boot: BootId) -> Self {
        let key = blake3::derive_key("Wakeai presence v1 challenge", group_key);
        let mut this = Self { key, boot, count: 0, epochs: VecDeque::new() };
        this.open(now);
        this
    }

    /// The challenge to send now; `interval` is the time between own messages.
    pub fn current(&mut self, now: Instant, interval: Duration) -> Challenge {
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

    /// Forgets `boot`: from now on only an answer to a later challenge proves it live.
    pub fn retire(&mut self, now: Instant, boot: BootId) {
        self.epochs.back_mut().expect("one epoch is always open").closed_by = Some(boot);
        self.open(now);
    }

    /// Whether `boot` was dropped lately.
    pub fn retired(&self, boot: BootId) -> bool {
        self.epochs.iter().any(|epoch| epoch.closed_by == Some(boot))
    }

    /// Whether `answers`, said by `boot`, prove that it is live.
    pub fn prove(&self, boot: BootId, answers: &[Challenge]) -> bool {
        self.epochs
            .iter()
            .rev()
            .take_while(|epoch| epoch.closed_by != Some(boot))
            .any(|epoch| answers.contains(&epoch.challenge))
    }

    fn open(&mut self, now: Instant) {
        let mut input = [0; 24];
        input[..16].copy_from_slice(&self.boot.0);
        input[16..].copy_from_slice(&self.count.to_be_bytes());
        self.count += 1;
        let hash = blake3::keyed_hash(&self.key, &input);
        let bytes: [u8; 8] = std::array::from_fn(|index| hash.as_bytes()[index]);
        let challenge = Challenge(u64::from_be_bytes(bytes).max(1));
        if self.epochs.len() == KEPT {
            self.epochs.pop_front();
        }
        self.epochs.push_back(Epoch { challenge, since: now, closed_by: None });
    }
}

/// How often a challenge is answered: a broadcast is not acknowledged, so some are lost.
const REPEATS: u8 = 4;

struct Owed {
    challenge: Challenge,
    heard: Instant,
    answered: u8,
}

/// The challenges of others that this station answers.
///
/// Memory: `limit` incarnations. Where there are more, the one that was heard longest ago is dropped.
pub struct Answers {
    limit: usize,
    owed: BTreeMap<BootId, Owed>,
}

impl Answers {
    /// Answers to at most `limit` incarnations.
    pub fn new(limit: usize) -> Self {
        Self { limit, owed: BTreeMap::new() }
    }

    /// The incarnation `boot` sent `challenge`.
    pub fn hear(&mut self, now: Instant, boot: BootId, challenge: Challenge) {
        if let Some(owed) = self.owed.get_mut(&boot) {
            owed.heard = now;
            if owed.challenge != challenge {
                owed.challenge = challenge;
                owed.answered = 0;
            }
            return;
        }
        if self.owed.len() >= self.limit {
            let oldest = self.owed.iter().min_by_key(|(_, owed)| owed.heard).map(|(id, _)| *id);
            oldest.and_then(|id| self.owed.remove(&id));
        }
        self.owed.insert(boot, Owed { challenge, heard: now, answered: 0 });
    }

    /// The answers of the next message: the least answered first.
    pub fn take(&mut self) -> Vec<Challenge> {
        let mut open: Vec<&mut Owed> =
            self.owed.values_mut().filter(|owed| owed.answered < REPEATS).collect();
        open.sort_by_key(|owed| owed.answered);
        open.truncate(ANSWER_SLOTS);
        open.into_iter()
            .map(|owed| {
                owed.answered += 1;
                owed.challenge
            })
            .collect()
    }

    /// Incarnations that are remembered.
    pub fn len(&self) -> usize {
        self.owed.len()
    }

    /// Whether none is remembered.
    pub fn is_empty(&self) -> bool {
        self.owed.is_empty()
    }
}
