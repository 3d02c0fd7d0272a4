//! One contender's backoff: its window, its failures, and its countdown.

use rand_core::Rng;
use rand_pcg::Pcg64Mcg;
use wakeai_wifi::Contention;

/// The state of a contender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// It has nothing to send. Its post-backoff may still be counting down.
    Quiet,
    /// It has frames and counts down, among the contenders of its class.
    Counting,
    /// It has frames and counts down, but began later than its class in this idle period.
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
    /// The slot count of its class at which the backoff is over.
    pub(crate) ends_at: u64,
    pub(crate) phase: Phase,
}

impl Backoff {
    pub(crate) fn new(rules: Contention, class: usize, retry_limit: u8) -> Self {
        let (cw_min, cw_max) = (u32::from(rules.cw_min), u32::from(rules.cw_max));
        let phase = Phase::Quiet;
        Self { cw_min, cw_max, cw: cw_min, failures: 0, retry_limit, class, ends_at: 0, phase }
    }

    /// A backoff in slots, uniform from 0 to CW.
    pub(crate) fn draw(&self, rng: &mut Pcg64Mcg) -> u64 {
        // Multiply and shift instead of a division: exact for windows of 2^k - 1, and off by less
        // than one in 2^16 for any other.
        (u64::from(rng.next_u32()) * (u64::from(self.cw) + 1)) >> 32
    }

    /// Records an access that was answered, or needed no answer.
    pub(crate) fn succeeded(&mut self) {
        self.failures = 0;
        self.cw = self.cw_min;
    }

    /// Records an access without an answer: the window doubles, and is reset after the retry limit.
    pub(crate) fn failed(&mut self) {
        self.failures += 1;
        if self.failures >= self.retry_limit {
            self.succeeded();
        } else {
            self.cw = (2 * self.cw + 1).min(self.cw_max);
        }
    }
}
