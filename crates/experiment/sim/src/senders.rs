//! Samples and events of the senders of a run, as the lab's monitor records them.

use wakeai_connection::{EventKind, Figures};
use wakeai_units::{Duration, Instant, Segments};
use wakeai_world::{MeterPlace, SenderMeter, Span};

/// The shortest time between two samples of a connection.
pub(crate) const SAMPLE_INTERVAL: Duration = Duration::from_millis(1);

/// The meter of the report and the records, and the senders' figures in [`crate::FlowDetail`].
#[derive(Debug)]
pub(crate) struct Senders {
    pub(crate) meter: SenderMeter,
    span: Span,
    /// For each flow, the sum of the congestion windows of its samples after the warmup, in
    /// segments, and the number of these samples.
    windows: Vec<(u64, u64)>,
    /// For each flow, [`crate::FlowDetail::k`]; empty where it was not asked for.
    pub(crate) k: Vec<Vec<(Duration, Duration)>>,
}

impl Senders {
    pub(crate) fn new(span: Span, meter: SenderMeter, flows: usize, keeps_k: bool) -> Self {
        let k = vec![Vec::new(); if keeps_k { flows } else { 0 }];
        Self { meter, span, windows: vec![(0, 0); flows], k }
    }

    /// Records a sample. It is called when an ACK has arrived at a sender with outstanding data,
    /// before the sender handles the ACK.
    pub(crate) fn sample(&mut self, now: Instant, place: MeterPlace, figures: Figures) {
        let flow = place.0 as usize;
        if self.span.counts(now) {
            let (sum, count) = &mut self.windows[flow];
            *sum += u64::from(figures.cwnd.get());
            *count += 1;
        }
        if let (Some(history), Some(k)) = (self.k.get_mut(flow), figures.k)
            && history.last().is_none_or(|(_, last)| *last != k)
        {
            history.push((self.span.since(now), k));
        }
        self.meter.sample(now, place, figures);
    }

    /// Counts an event of a sender. A congestion event is also counted by its error code.
    pub(crate) fn event(
        &mut self,
        now: Instant,
        place: MeterPlace,
        kind: EventKind,
        cwnd: Segments,
    ) {
        self.meter.event(now, place, kind, cwnd);
        if let Some(code) = kind.error() {
            self.meter.event(now, place, EventKind::Error(code), cwnd);
        }
    }

    /// The mean congestion window of a flow's samples after the warmup, rounded.
    pub(crate) fn mean_window(&self, flow: usize) -> Option<Segments> {
        let (sum, count) = self.windows[flow];
        let mean = (sum + count / 2).checked_div(count)?;
        Some(Segments::new(u32::try_from(mean).unwrap_or(u32::MAX)))
    }
}
