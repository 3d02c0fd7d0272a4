//! What is measured of a run: at the flows' receivers and at their senders.

use wakeai_scenario::figures::AvrMeter;
use wakeai_scenario::result::MeasuredFlow;
use wakeai_scenario::{Experiment, Flow, FlowKind};
use wakeai_units::{Bytes, Duration, Instant};

/// The times of a run.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// The run's time zero.
    pub origin: Instant,
    /// The end of the warmup; the figures count from here on.
    pub warm: Instant,
    /// The end of the scenario's duration.
    pub end: Instant,
}

impl Span {
    /// The times of a run of `experiment` that begins at `origin`.
    pub fn new(origin: Instant, experiment: &Experiment) -> Self {
        let (warm, end) = (origin + experiment.warmup, origin + experiment.duration);
        Self { origin, warm, end }
    }

    /// The time from the run's begin; zero before it.
    pub fn since(&self, at: Instant) -> Duration {
        at.saturating_since(self.origin)
    }

    /// The scenario's duration.
    pub fn length(&self) -> Duration {
        self.since(self.end)
    }

    /// Whether what happens at `at` counts for the figures.
    pub fn counts(&self, at: Instant) -> bool {
        (self.warm..=self.end).contains(&at)
    }
}

/// Counts what the receiving application of one flow gets.
#[derive(Clone, Debug)]
pub struct ReceiverMeter {
    span: Span,
    start: Instant,
    /// The bytes that complete the flow.
    size: Option<u64>,
    bytes: u64,
    after_warmup: u64,
    first: Option<Instant>,
    last: Instant,
    completed: Option<Instant>,
    longest_stall: Duration,
    /// Achieved value ratio, where the flow has a target.
    avr: Option<AvrMeter>,
    step: Duration,
    progress: Vec<(Instant, u64)>,
}

impl ReceiverMeter {
    /// A meter of `flow`; `step` is the resolution of [`Self::progress`], zero for none.
    pub fn new(span: Span, flow: &Flow, step: Duration) -> Self {
        let start = span.origin + flow.start;
        let target = flow.rate.filter(|_| flow.kind == FlowKind::Tcp);
        Self {
            span,
            start,
            size: flow.size.map(Bytes::get),
            bytes: 0,
            after_warmup: 0,
            first: None,
            last: start,
            completed: None,
            longest_stall: Duration::ZERO,
            avr: target.map(|target| AvrMeter::new(target, span.warm.saturating_since(start))),
            step,
            progress: Vec::new(),
        }
    }

    /// The application got `amount` at `now`. Returns whether that completes the flow.
    pub fn on_received(&mut self, now: Instant, amount: u64) -> bool {
        let counts = self.span.counts(now);
        self.add(now, amount, if counts { amount } else { 0 });
        if self.completed.is_some() || self.size.is_none_or(|size| self.bytes < size) {
            return false;
        }
        self.completed = Some(now);
        true
    }

    /// The application got `amount` between `from` and `to`, evenly.
    pub fn on_received_between(&mut self, from: Instant, to: Instant, amount: u64) {
        if amount == 0 {
            return;
        }
        let common = to.min(self.span.end).saturating_since(from.max(self.span.warm));
        let length = to.saturating_since(from).as_nanos().max(1);
        let counted = u128::from(amount) * u128::from(common.as_nanos()) / u128::from(length);
        self.first.get_or_insert(from);
        self.add(to, amount, counted as u64);
    }

    fn add(&mut self, now: Instant, amount: u64, counted: u64) {
        self.bytes += amount;
        self.after_warmup += counted;
        self.first.get_or_insert(now);
        self.longest_stall = self.longest_stall.max(now.saturating_since(self.last));
        self.last = now;
        if let Some(avr) = &mut self.avr {
            avr.on_received(now.saturating_since(self.start), Bytes::new(amount));
        }
        if !self.step.is_zero() {
            self.note_progress(now);
        }
    }

    fn note_progress(&mut self, now: Instant) {
        match self.progress.last_mut() {
            Some((end, bytes)) if now <= *end => *bytes = self.bytes,
            _ => {
                let since = now.saturating_since(self.start).as_nanos();
                let steps = since.div_ceil(self.step.as_nanos());
                let end = self.start + self.step.saturating_mul(steps);
                self.progress.push((end, self.bytes));
            }
        }
    }

    /// The flow's start.
    pub fn start(&self) -> Instant {
        self.start
    }

    /// The arrival of the first bytes.
    pub fn first(&self) -> Option<Instant> {
        self.first
    }

    /// The arrival of the last byte of a flow with a size.
    pub fn completed(&self) -> Option<Instant> {
        self.completed
    }

    /// The end of each step (from the flow's start) in which something arrived, and all bytes by then.
    pub fn progress(&self) -> &[(Instant, u64)] {
        &self.progress
    }

    /// The longest time without new data in a run that ended at `end`, from the flow's start on.
    pub fn longest_stall(&self, end: Instant) -> Duration {
        self.longest_stall.max(self.flow_end(end).saturating_since(self.last))
    }

    /// The end of the flow in a run that ended at `end`.
    fn flow_end(&self, end: Instant) -> Instant {
        self.completed.unwrap_or(end)
    }

    /// The figures of `flow`, the one of [`Self::new`], in a run that ended at `end`. What the sender
    /// does is not among them.
    pub fn measured(&self, flow: &Flow, end: Instant) -> MeasuredFlow {
        let since_start = |at: Instant| at.saturating_since(self.start);
        let avr = self.avr.clone();
        MeasuredFlow {
            station: flow.station(),
            direction: flow.direction(),
            kind: flow.kind,
            algorithm: None,
            bytes: Bytes::new(self.bytes),
            bytes_after_warmup: Bytes::new(self.after_warmup),
            start: flow.start,
            completion: self.completed.map(since_start),
            retransmits: 0,
            timeouts: 0,
            avr: avr.and_then(|avr| avr.finish(since_start(self.flow_end(end)))),
            simulated: None,
            reservation: None,
        }
    }
}
