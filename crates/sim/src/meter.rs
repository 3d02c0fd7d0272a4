//! What a flow's receiving application got.

use wakeai_scenario::figures::AvrMeter;
use wakeai_units::{Bytes, Duration, Instant};

use crate::span::Span;

/// Counts the arrivals of one flow.
#[derive(Clone, Debug)]
pub(crate) struct Meter {
    start: Instant,
    /// What completes it.
    size: Option<u64>,
    pub(crate) bytes: u64,
    pub(crate) after_warmup: u64,
    pub(crate) completed: Option<Instant>,
    last: Instant,
    /// The longest time without anything new, from the start on.
    pub(crate) longest_stall: Duration,
    avr: Option<AvrMeter>,
    grain: Duration,
    /// The end of each grain (from the start on) in which something arrived, and the bytes by then.
    pub(crate) progress: Vec<(Instant, u64)>,
}

impl Meter {
    /// For a flow from `start` on; `grain` is the resolution of its progress, zero for none.
    pub(crate) fn new(
        start: Instant,
        size: Option<Bytes>,
        avr: Option<AvrMeter>,
        grain: Duration,
    ) -> Self {
        Self {
            start,
            size: size.map(Bytes::get),
            bytes: 0,
            after_warmup: 0,
            completed: None,
            last: start,
            longest_stall: Duration::ZERO,
            avr,
            grain,
            progress: Vec::new(),
        }
    }

    /// The application got `amount`. Whether that completes the flow.
    pub(crate) fn on_received(&mut self, span: &Span, now: Instant, amount: u64) -> bool {
        self.bytes += amount;
        if now >= span.warm {
            self.after_warmup += amount;
        }
        self.longest_stall = self.longest_stall.max(now.saturating_since(self.last));
        self.last = now;
        if let Some(avr) = &mut self.avr {
            avr.on_received(now.saturating_since(self.start), Bytes::new(amount));
        }
        if !self.grain.is_zero() {
            self.note_progress(now);
        }
        if self.completed.is_some() || self.size.is_none_or(|size| self.bytes < size) {
            return false;
        }
        self.completed = Some(now);
        true
    }

    fn note_progress(&mut self, now: Instant) {
        match self.progress.last_mut() {
            Some((end, bytes)) if now <= *end => *bytes = self.bytes,
            _ => {
                let since = now.saturating_since(self.start).as_nanos();
                let grains = since.div_ceil(self.grain.as_nanos());
                let end = self.start + self.grain.saturating_mul(grains);
                self.progress.push((end, self.bytes));
            }
        }
    }

    /// When the flow was over in a run that ended at `end`.
    fn end(&self, end: Instant) -> Instant {
        self.completed.unwrap_or(end)
    }

    /// The longest stall of a run that ended at `end`.
    pub(crate) fn stall_until(&self, end: Instant) -> Duration {
        self.longest_stall.max(self.end(end).saturating_since(self.last))
    }

    /// AVR, where the flow has a target.
    pub(crate) fn avr_at(&self, end: Instant) -> Option<f64> {
        self.avr.clone()?.finish(self.end(end).saturating_since(self.start))
    }
}
