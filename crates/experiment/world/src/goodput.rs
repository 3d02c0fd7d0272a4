//! Records the goodput of a flow over time.

use wakeai_results::records::{GoodputRow, Row};
use wakeai_units::{Duration, Instant};

use crate::RunSink;
use crate::span::Span;

/// The length of an interval.
const INTERVAL: Duration = Duration::from_millis(100);

/// Writes a row for each interval of a flow: from its start to its end, without gaps. All intervals of a run end at the
/// same times, except for the last one of each flow.
#[derive(Clone, Debug)]
pub(crate) struct GoodputRecorder {
    sink: RunSink,
    flow: u32,
    span: Span,
    /// The start of the present interval.
    from: Instant,
    bytes: u64,
}

impl GoodputRecorder {
    pub(crate) fn new(sink: RunSink, flow: u32, span: Span, start: Instant) -> Self {
        Self { sink, flow, span, from: start, bytes: 0 }
    }

    /// The end of the present interval.
    fn until(&self) -> Instant {
        let ended = self.span.since(self.from).as_nanos() / INTERVAL.as_nanos();
        self.span.origin + INTERVAL.saturating_mul(ended + 1)
    }

    /// Records `amount` bytes that arrived at a constant rate between `from` and `to`. What arrives after the end of the
    /// scenario's duration is left out.
    pub(crate) fn add(&mut self, from: Instant, to: Instant, amount: u64) {
        let length = to.saturating_since(from).as_nanos();
        let until = |at: Instant| {
            let part = u128::from(amount) * u128::from(at.saturating_since(from).as_nanos());
            u64::try_from(part / u128::from(length.max(1))).unwrap_or(amount).min(amount)
        };
        let mut given = 0;
        while self.until() < to.min(self.span.end) {
            let end = self.until();
            let now = if length == 0 { 0 } else { until(end) };
            self.bytes += now - given;
            given = now;
            self.write(end);
        }
        let rest = if to > self.span.end { until(self.span.end) } else { amount };
        self.bytes += rest.saturating_sub(given);
    }

    /// Ends the last interval.
    pub(crate) fn end(&mut self, at: Instant) {
        let at = at.min(self.span.end);
        while self.until() < at {
            self.write(self.until());
        }
        if self.from < at {
            self.write(at);
        }
    }

    fn write(&mut self, end: Instant) {
        let interval = end.saturating_since(self.from);
        self.sink.row(Row::Goodput(GoodputRow {
            at_ns: self.span.since(end).as_nanos(),
            interval_ns: interval.as_nanos(),
            flow: self.flow,
            bytes: std::mem::take(&mut self.bytes),
        }));
        self.from = end;
    }
}
