//! One contender's backoff: its contention window (CW), its failures, and its countdown.

use rand_core::Rng;
use rand_pcg::Pcg64Mcg;
use wakeai_wifi::Contention;

/// The state of a contender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ContenderPhase {
    /// It has nothing to send. The backoff after its last frame may still be counting down.
    Quiet,
    /// It has frames and counts down, among the contenders of its class, which all count the
    /// same slots.
    Counting,
    /// It has frames and counts down, but its countdown began later than that of its class in this
    /// idle period.
    Late,
    /// It is on the air.
    Sending,
}

/// One contender (802.11-2020 10.3.3 and 10.23.2.2).
#[derive(Clone, Debug)]
pub(crate) struct Backoff {
    cw_min: u32,
    cw_max: u32,
    cw: u32,
    /// Failed accesses in a row (SSRC, QSRC).
    failures: u8,
    retry_limit: u8,
    /// Index of the class that it counts in.
    pub(crate) class: usize,
    /// The value of the class's slot counter at which the backoff is over.
    pub(crate) ends_at: u64,
    pub(crate) phase: ContenderPhase,
}

impl Backoff {
    pub(crate) fn new(rules: Contention, class: usize, retry_limit: u8) -> Self {
        let (cw_min, cw_max) = (u32::from(rules.cw_min), u32::from(rules.cw_max));
        debug_assert!(cw_min <= cw_max && retry_limit > 0, "the ranges were checked");
        let phase = ContenderPhase::Quiet;
        Self { cw_min, cw_max, cw: cw_min, failures: 0, retry_limit, class, ends_at: 0, phase }
    }

    /// Draws a backoff in slots, uniformly from 0 to CW.
    pub(crate) fn draw(&self, rng: &mut Pcg64Mcg) -> u64 {
        // Multiplication and shift replace a division. The result is exact for windows of 2^k - 1,
        // and off by less than one in 2^16 for any other.
        (u64::from(rng.next_u32()) * (u64::from(self.cw) + 1)) >> 32
    }

    /// Records an access that was answered, or needed no answer.
    pub(crate) fn succeeded(&mut self) {
        self.failures = 0;
        self.cw = self.cw_min;
    }

    /// Records an access without an answer. The window doubles; at the retry limit it is reset.
    pub(crate) fn failed(&mut self) {
        self.failures += 1;
        if self.failures >= self.retry_limit {
            self.succeeded();
        } else {
            self.cw = (2 * self.cw + 1).min(self.cw_max);
        }
        debug_assert!((self.cw_min..=self.cw_max).contains(&self.cw));
    }
}
