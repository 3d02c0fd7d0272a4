//! One contender where not all hear each other: its carrier sense, its NAV, and its backoff.
//!
//! Each contender counts slots of its own. Boundary `j` lies at SIFS and `j` slots after the instant from which
//! the contender finds the medium idle (802.11-2020 10.3.2.1). That instant is the latest of these ends: of the
//! frames that it hears or sends, of the NAV, of EIFS, and of a wait for an answer that did not come.

use rand_pcg::Pcg64Mcg;
use wakeai_units::{Duration, Instant};

use super::super::attempt::Attempt;
use super::super::contention::{Backoff, ContenderRules};
use super::exchange::{Exchange, Reply};

/// The time in which a receiver detects a preamble. Another frame that starts within this time of the first hides
/// both: no receiver finds a preamble in their sum (aCCATime, 17.3.10.6).
const DETECTION: Duration = Duration::from_micros(4);

/// A frame that a contender receives.
#[derive(Clone, Debug)]
pub(crate) struct Lock {
    /// The number of the frame on the air.
    pub(crate) ppdu: usize,
    start: Instant,
    /// Other frames that are heard now.
    interferers: u32,
    hit_since: Instant,
    /// The times in which other frames were heard.
    hits: Vec<(Instant, Instant)>,
}

impl Lock {
    /// Whether nothing else was heard from `from` to `to`.
    pub(crate) fn is_intact(&self, from: Instant, to: Instant) -> bool {
        !self.hits.iter().any(|(began, ended)| *began < to && from < *ended)
    }

    fn end_hit(&mut self, at: Instant) {
        self.hits.push((self.hit_since, at));
    }
}

/// One contender.
#[derive(Clone, Debug)]
pub(crate) struct Radio {
    pub(crate) backoff: Backoff,
    aifsn: u64,
    qos: bool,
    /// Slots of the backoff that are to go, as of the instant from which the medium is idle.
    remaining: u64,
    /// Whether it has frames to send, and no exchange of its own.
    pub(crate) wants: bool,
    /// The boundary at which it sends without a backoff, because the medium was idle when its packet came.
    immediate: Option<Instant>,
    /// Frames of others on the air that it hears.
    heard: u32,
    pub(crate) sending: bool,
    pub(crate) lock: Option<Lock>,
    /// The number of frames whose reception has begun.
    pub(crate) receptions: u64,
    idle_from: Instant,
    /// The end of the last frame that it received, and EIFS after one with errors.
    pub(crate) received_until: Instant,
    /// The end of its last wait for an answer.
    pub(crate) waited_until: Instant,
    pub(crate) nav: Instant,
    /// The number of its waits for an answer.
    waits: u64,
    /// The exchange that it has begun.
    pub(crate) exchange: Option<Exchange>,
    /// The aggregate whose BlockAck did not come, and for which it asks next.
    pub(crate) unanswered: Option<Attempt>,
    /// The frame with which it answers.
    pub(crate) reply: Option<Reply>,
    /// The time of its next access, as it is known to the channel.
    pub(crate) access: Option<Instant>,
}

impl Radio {
    pub(crate) fn new(rules: &ContenderRules) -> Self {
        Self {
            backoff: Backoff::new(rules.rules, 0, rules.retry_limit),
            aifsn: u64::from(rules.rules.aifsn),
            qos: rules.qos,
            remaining: 0,
            wants: false,
            immediate: None,
            heard: 0,
            sending: false,
            lock: None,
            receptions: 0,
            idle_from: Instant::ZERO,
            received_until: Instant::ZERO,
            waited_until: Instant::ZERO,
            nav: Instant::ZERO,
            waits: 0,
            exchange: None,
            unanswered: None,
            reply: None,
            access: None,
        }
    }

    /// Whether it has frames to send, or is sending.
    pub(crate) fn is_active(&self) -> bool {
        self.wants || self.exchange.is_some()
    }

    /// Whether it hears and sends nothing.
    fn is_quiet(&self) -> bool {
        self.heard == 0 && !self.sending
    }

    /// The instant from which it counts slots.
    fn idle_since(&self) -> Instant {
        self.idle_from.max(self.received_until).max(self.waited_until).max(self.nav)
    }

    /// The time at which it sends, provided that it hears nothing before.
    pub(crate) fn next_access(&self, sifs: Duration, slot: Duration) -> Option<Instant> {
        let contends =
            self.wants && self.is_quiet() && self.exchange.is_none() && self.reply.is_none();
        let counted = || self.idle_since() + sifs + slot * (self.aifsn + self.remaining);
        contends.then(|| self.immediate.unwrap_or_else(counted))
    }

    /// Makes it contend for the first of its frames, which came at `now`: as `Contention::request`.
    pub(crate) fn request(
        &mut self,
        now: Instant,
        sifs: Duration,
        slot: Duration,
        rng: &mut Pcg64Mcg,
    ) {
        self.wants = true;
        let start = self.idle_since() + sifs;
        if self.is_quiet() && now >= start + slot * (self.aifsn + self.remaining) {
            let passed = (now - start).as_nanos().div_ceil(slot.as_nanos());
            self.immediate = Some(start + slot * passed);
        } else if self.remaining == 0 {
            self.draw(rng);
        }
    }

    /// The number of a new wait for an answer, which ends the one before it.
    pub(crate) fn new_wait(&mut self) -> u64 {
        self.waits += 1;
        self.waits
    }

    /// Draws the next backoff.
    pub(crate) fn draw(&mut self, rng: &mut Pcg64Mcg) {
        self.remaining = self.backoff.draw(rng);
    }

    /// Begins to send.
    pub(crate) fn begin_sending(&mut self) {
        self.sending = true;
        self.immediate = None;
        self.lock = None;
    }

    /// Ends what it sends.
    pub(crate) fn end_sending(&mut self, at: Instant) {
        self.sending = false;
        if self.heard == 0 {
            self.idle_from = at;
        }
    }

    /// Hears the start of a frame.
    pub(crate) fn hear(
        &mut self,
        at: Instant,
        ppdu: usize,
        sifs: Duration,
        slot: Duration,
        rng: &mut Pcg64Mcg,
    ) {
        if self.is_quiet() {
            self.stop_counting(at, sifs, slot, rng);
        }
        self.heard += 1;
        if self.sending {
            return;
        }
        match &mut self.lock {
            Some(lock) if at < lock.start + DETECTION => self.lock = None,
            Some(lock) => {
                lock.interferers += 1;
                if lock.interferers == 1 {
                    lock.hit_since = at;
                }
            }
            None if self.heard == 1 => {
                self.receptions += 1;
                let (interferers, hits) = (0, Vec::new());
                self.lock = Some(Lock { ppdu, start: at, interferers, hit_since: at, hits });
            }
            None => {}
        }
    }

    /// Hears the end of a frame, and returns the reception where this is the one that it received.
    pub(crate) fn hear_end(&mut self, at: Instant, ppdu: usize) -> Option<Lock> {
        self.heard -= 1;
        let lock = self.lock.take_if(|lock| lock.ppdu == ppdu);
        if let Some(other) = &mut self.lock {
            other.interferers -= 1;
            if other.interferers == 0 {
                other.end_hit(at);
            }
        }
        if self.is_quiet() {
            self.idle_from = at;
        }
        lock.map(|mut lock| {
            if lock.interferers > 0 {
                lock.end_hit(at);
            }
            lock
        })
    }

    /// Stops the countdown, because a frame is heard from `at` on.
    fn stop_counting(&mut self, at: Instant, sifs: Duration, slot: Duration, rng: &mut Pcg64Mcg) {
        if self.immediate.take().is_some() {
            self.draw(rng);
            return;
        }
        let start = self.idle_since() + sifs + slot * self.aifsn;
        if let Some(counted) = at.checked_since(start) {
            // A counter of EDCA goes down at each boundary, the first included, and one of DCF only after a
            // whole slot, as in `contention`.
            let slots = counted.as_nanos() / slot.as_nanos() + u64::from(self.qos);
            self.remaining = self.remaining.saturating_sub(slots);
        }
    }
}
