//! Channel access (DCF and EDCA): interframe spaces, slots and backoffs of all contenders.
//!
//! The medium becomes idle for all contenders at once, so its slots form one grid: boundary `j`
//! lies at SIFS and `j` slots after the end of the busy medium (802.11-2020 10.3.7, 10.23.2.4). A
//! contender whose backoff has `b` slots to go sends at boundary `AIFSN + b`, unless another
//! contender sends before.
//!
//! Contenders with the same AIFSN that all use DCF, or all use EDCA, form a class. They count the
//! same slots, so they share one counter, and a backoff is stored as the value of the counter at
//! which it ends. A busy period then changes only the counter, and the cost of an access does not
//! depend on the number of waiting contenders.
//!
//! A countdown may begin at another time: after EIFS, after the ACK timeout, or when a packet
//! arrives at an idle medium. Its beginning is rounded up to the grid. Stations cannot hear each
//! other start within one slot (10.3.7 defines the slot so), so two of them that start in the same
//! slot collide.
//!
//! Order of calls, from one access to the next: [`Contention::request`] whenever a contender gets
//! its first frame; [`Contention::begin`] at [`Contention::next_access`]; then
//! [`Contention::idle_from`]; then [`Contention::finish`] for each contender that sent.

use rand_core::Rng;
use rand_pcg::Pcg64Mcg;
use wakeai_units::{Duration, Instant};
use wakeai_wifi::Contention as Rules;

use super::wheel::Wheel;

/// The most slots by which a contender can begin later than its class, because of EIFS or its ACK
/// timeout.
const MOST_LATE: u64 = 64;

/// Contenders that count the same slots.
#[derive(Clone, Debug)]
struct Class {
    aifsn: u64,
    /// Whether the class contends by EDCA. An EDCA contender does one operation at each boundary,
    /// and the first at AIFS itself (10.23.2.4). So its counter also goes down at the boundary at
    /// which another contender starts to send. A DCF counter goes down only after a whole idle slot
    /// (10.3.4.3).
    qos: bool,
    /// Slots that this class has counted.
    count: u64,
    waiting: Wheel,
}

impl Class {
    /// The number of slots that a contender has counted at an access at boundary `access`, where
    /// its countdown began at boundary `start`.
    fn counted(&self, start: u64, access: u64) -> u64 {
        access.checked_sub(start).map_or(0, |slots| slots + u64::from(self.qos))
    }
}

/// A contender whose countdown begins at a boundary of its own in this idle period.
#[derive(Clone, Copy, Debug)]
struct Late {
    contender: u32,
    start: u64,
    remaining: u64,
    /// Whether the backoff was over and the medium idle when its packet came. Where another
    /// contender sends first, such a contender then draws a backoff.
    immediate: bool,
}

/// How a contender contends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ContenderRules {
    pub(crate) rules: Rules,
    /// Whether it contends by EDCA.
    pub(crate) qos: bool,
    pub(crate) retry_limit: u8,
}

impl ContenderRules {
    /// What decides on the class.
    fn kind(&self) -> (u8, bool) {
        (self.rules.aifsn, self.qos)
    }
}

/// All contenders of a channel.
#[derive(Clone, Debug)]
pub(crate) struct Contention {
    sifs: Duration,
    slot: Duration,
    classes: Vec<Class>,
    contenders: Vec<Backoff>,
    late: Vec<Late>,
    /// The end of the last busy period, which may be in the future; `None` while it is not known.
    idle_since: Option<Instant>,
    /// Slots that all contenders wait in addition (EIFS).
    deferral: u64,
}

impl Contention {
    /// Makes the contenders. Those for which `is_member` does not hold are on another channel, and never
    /// contend here.
    pub(crate) fn new(
        sifs: Duration,
        slot: Duration,
        rules: &[ContenderRules],
        is_member: impl Fn(usize) -> bool,
    ) -> Self {
        let members = || rules.iter().enumerate().filter(|(index, _)| is_member(*index));
        let mut kinds: Vec<(u8, bool)> = members().map(|(_, one)| one.kind()).collect();
        kinds.sort_unstable();
        kinds.dedup();
        let most = members().map(|(_, one)| u64::from(one.rules.cw_max)).max().unwrap_or(0);
        let classes = kinds.iter().map(|&(aifsn, qos)| Class {
            aifsn: u64::from(aifsn),
            qos,
            count: 0,
            waiting: Wheel::new(rules.len(), most + MOST_LATE),
        });
        let contenders = rules.iter().map(|one| {
            let class = kinds.partition_point(|kind| *kind < one.kind());
            Backoff::new(one.rules, class, one.retry_limit)
        });
        Self {
            sifs,
            slot,
            classes: classes.collect(),
            contenders: contenders.collect(),
            late: Vec::with_capacity(rules.len()),
            idle_since: Some(Instant::ZERO),
            deferral: 0,
        }
    }

    /// Whether the contender has frames to send, or is sending.
    pub(crate) fn is_active(&self, contender: usize) -> bool {
        self.contenders[contender].phase != ContenderPhase::Quiet
    }

    /// The contender's backoff, which records the outcome of its access.
    pub(crate) fn backoff(&mut self, contender: usize) -> &mut Backoff {
        &mut self.contenders[contender]
    }

    /// Makes a quiet contender that got a frame at `now` contend.
    ///
    /// Where its post-backoff (the backoff after its last frame) is not over, the contender
    /// continues it. Otherwise it sends at the next boundary if the medium has been idle for its
    /// AIFS (10.3.4.2), and draws a backoff if it has not.
    pub(crate) fn request(&mut self, contender: usize, now: Instant, rng: &mut Pcg64Mcg) {
        let backoff = &mut self.contenders[contender];
        debug_assert_eq!(backoff.phase, ContenderPhase::Quiet, "it contends already");
        let class = &mut self.classes[backoff.class];
        let first = self.deferral + class.aifsn;
        let left = backoff.ends_at.saturating_sub(class.count);
        // The last boundary at or before `now`, and the first one at or after it.
        let since = self.idle_since.and_then(|idle| now.checked_since(idle + self.sifs));
        let passed = since.map(|since| since.as_nanos() / self.slot.as_nanos());
        if passed.is_some_and(|boundary| boundary >= first + left) {
            let since = since.unwrap_or_default().as_nanos();
            let start = since.div_ceil(self.slot.as_nanos());
            let contender = contender as u32;
            self.late.push(Late { contender, start, remaining: 0, immediate: true });
            backoff.phase = ContenderPhase::Late;
            return;
        }
        if left == 0 {
            backoff.ends_at = class.count + backoff.draw(rng);
        }
        backoff.phase = ContenderPhase::Counting;
        class.waiting.insert(contender as u32, backoff.ends_at);
    }

    /// The boundary of the next access.
    fn next_boundary(&self) -> Option<u64> {
        let waiting = self.classes.iter().filter_map(|class| {
            Some(self.deferral + class.aifsn + (class.waiting.first()? - class.count))
        });
        let late = self.late.iter().map(|late| late.start + late.remaining);
        waiting.chain(late).min()
    }

    /// The start of the next transmission, provided that nothing changes before; `None` while the
    /// medium is busy or no contender has frames.
    pub(crate) fn next_access(&self) -> Option<Instant> {
        let idle = self.idle_since?;
        Some(idle + self.sifs + self.slot * self.next_boundary()?)
    }

    /// Begins the next access. The contenders whose backoff ends at its boundary are appended to
    /// `senders`, and the countdown of the others stops.
    pub(crate) fn begin(&mut self, senders: &mut Vec<u32>, rng: &mut Pcg64Mcg) {
        let Some(access) = self.next_boundary() else { return };
        for class in &mut self.classes {
            let start = self.deferral + class.aifsn;
            if class.waiting.first().is_some_and(|first| start + (first - class.count) == access) {
                class.waiting.take_first(senders);
            }
            class.count += class.counted(start, access);
        }
        for late in self.late.drain(..) {
            if late.start + late.remaining == access {
                senders.push(late.contender);
                continue;
            }
            let backoff = &mut self.contenders[late.contender as usize];
            let class = &mut self.classes[backoff.class];
            let remaining = if late.immediate {
                backoff.draw(rng)
            } else {
                late.remaining - class.counted(late.start, access)
            };
            backoff.ends_at = class.count + remaining;
            backoff.phase = ContenderPhase::Counting;
            class.waiting.insert(late.contender, backoff.ends_at);
        }
        for &sender in senders.iter() {
            self.contenders[sender as usize].phase = ContenderPhase::Sending;
        }
        self.idle_since = None;
    }

    /// Ends the busy period at `end`. After it all contenders except the senders wait `deferral`
    /// slots more than usual (EIFS, 10.3.2.3.7).
    pub(crate) fn idle_from(&mut self, end: Instant, deferral: u64) {
        self.idle_since = Some(end);
        self.deferral = deferral;
    }

    /// Draws the next backoff of a sender, after [`Self::idle_from`] has ended the busy period. The
    /// countdown begins `late` slots (for the ACK timeout) after the end of the busy medium and
    /// AIFS. Without frames it is a post-backoff.
    pub(crate) fn finish(
        &mut self,
        contender: usize,
        has_frames: bool,
        late: u64,
        rng: &mut Pcg64Mcg,
    ) {
        let backoff = &mut self.contenders[contender];
        debug_assert_eq!(backoff.phase, ContenderPhase::Sending, "it did not send");
        let class = &mut self.classes[backoff.class];
        let remaining = backoff.draw(rng);
        backoff.ends_at = class.count + remaining + late.saturating_sub(self.deferral);
        if !has_frames {
            backoff.phase = ContenderPhase::Quiet;
        } else if late == self.deferral {
            backoff.phase = ContenderPhase::Counting;
            class.waiting.insert(contender as u32, backoff.ends_at);
        } else {
            let (contender, start) = (contender as u32, late + class.aifsn);
            self.late.push(Late { contender, start, remaining, immediate: false });
            backoff.phase = ContenderPhase::Late;
        }
    }

    /// Lets one contender wait `slots` slots more than usual after this busy period, because only
    /// this contender received the frame with errors.
    pub(crate) fn defer_one(&mut self, contender: usize, slots: u64) {
        let backoff = &mut self.contenders[contender];
        if backoff.phase != ContenderPhase::Counting || slots <= self.deferral {
            return;
        }
        let class = &mut self.classes[backoff.class];
        class.waiting.remove(contender as u32, backoff.ends_at);
        self.late.push(Late {
            contender: contender as u32,
            start: slots + class.aifsn,
            remaining: backoff.ends_at - class.count,
            immediate: false,
        });
        backoff.phase = ContenderPhase::Late;
    }

    /// The number of slots from `end` to `instant`, rounded up to the grid.
    pub(crate) fn slots_between(&self, end: Instant, instant: Instant) -> u64 {
        instant.saturating_since(end).as_nanos().div_ceil(self.slot.as_nanos())
    }

    /// `span` in slots, rounded up to the grid.
    pub(crate) fn slots_in(&self, span: Duration) -> u64 {
        span.as_nanos().div_ceil(self.slot.as_nanos())
    }
}

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
    pub(crate) fn new(rules: Rules, class: usize, retry_limit: u8) -> Self {
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

    /// Doubles the window, for an access whose repetitions are not counted.
    pub(crate) fn widen(&mut self) {
        self.cw = (2 * self.cw + 1).min(self.cw_max);
    }

    /// Records an access without an answer. The window doubles; at the retry limit it is reset.
    pub(crate) fn failed(&mut self) {
        self.failures += 1;
        if self.failures >= self.retry_limit {
            self.succeeded();
        } else {
            self.widen();
        }
        debug_assert!((self.cw_min..=self.cw_max).contains(&self.cw));
    }
}

#[cfg(test)]
mod tests;
