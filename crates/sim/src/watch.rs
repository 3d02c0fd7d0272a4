//! The senders' figures, as the kernel's monitor takes them in the lab.

use wakeai_connection::EventKind;
use wakeai_control::Standing;
use wakeai_scenario::figures::RttHistogram;
use wakeai_scenario::records::{EventRow, RowEvent, SampleRow};
use wakeai_scenario::result::ErrorCounts;
use wakeai_units::{Duration, Instant, Segments};
use wakeai_world::{RunSink, Span};

use crate::connection::Connection;
use crate::reserving::event_value;

/// Between two samples of a connection.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(1);

/// What was seen of one run.
#[derive(Debug)]
pub(crate) struct Watch {
    span: Span,
    /// By flow: the group of its station.
    groups: Vec<u32>,
    /// The latest RTT, one sample per millisecond and connection after the warmup; by group.
    pub(crate) rtt: Vec<RttHistogram>,
    /// Error events after the warmup.
    pub(crate) errors: ErrorCounts,
    /// By flow, where it was asked for: each K of CUBIC's, and when it was first seen.
    pub(crate) k: Option<Vec<Vec<(Duration, Duration)>>>,
    /// By flow: the sum of the windows of its samples after the warmup, segments, and their number.
    windows: Vec<(u64, u64)>,
    sink: Option<RunSink>,
}

impl Watch {
    pub(crate) fn new(span: Span, groups: Vec<u32>, keeps_k: bool, sink: Option<RunSink>) -> Self {
        let count = groups.iter().map(|group| group + 1).max().unwrap_or(0) as usize;
        let rtt = vec![RttHistogram::new(); count];
        let k = keeps_k.then(|| vec![Vec::new(); groups.len()]);
        let windows = vec![(0, 0); groups.len()];
        Self { span, groups, rtt, errors: ErrorCounts::default(), k, windows, sink }
    }

    /// The mean congestion window of a flow's samples after the warmup.
    pub(crate) fn mean_window(&self, flow: usize) -> Option<Segments> {
        let (sum, count) = self.windows[flow];
        let mean = (sum + count / 2).checked_div(count)?;
        Some(Segments::new(u32::try_from(mean).unwrap_or(u32::MAX)))
    }

    /// An ACK has come to a sender that has something out, and is not handled yet.
    pub(crate) fn sample(&mut self, now: Instant, connection: &mut Connection) {
        let figures = connection.sender.figures();
        if figures.packets_out == Segments::ZERO {
            return;
        }
        connection.next_sample = now + SAMPLE_INTERVAL;
        let flow = connection.flow as usize;
        if now >= self.span.warm {
            if let Some(rtt) = figures.latest_rtt {
                self.rtt[self.groups[flow] as usize].record(rtt);
            }
            let (sum, count) = &mut self.windows[flow];
            *sum += u64::from(figures.cwnd.get());
            *count += 1;
        }
        let since_start = self.span.since(now);
        if let (Some(histories), Some(k)) = (&mut self.k, figures.k)
            && histories[flow].last().is_none_or(|(_, last)| *last != k)
        {
            histories[flow].push((since_start, k));
        }
        if let Some(sink) = &self.sink {
            let (flow, connection) = (connection.flow, connection.number);
            sink.sample(SampleRow { at_ns: since_start.as_nanos(), flow, connection, figures });
        }
    }

    /// Something has happened to a sender.
    pub(crate) fn event(&mut self, now: Instant, connection: &Connection, kind: EventKind) {
        self.row(now, connection, kind);
        let Some(code) = kind.error() else { return };
        self.row(now, connection, EventKind::Error(code));
        if now >= self.span.warm {
            self.errors.add(code);
        }
    }

    /// Something has become of the reservation of these flows.
    pub(crate) fn reservation(&self, now: Instant, flows: &[u32], standing: Standing) {
        let Some(sink) = &self.sink else { return };
        for flow in flows {
            sink.event(EventRow {
                at_ns: self.span.since(now).as_nanos(),
                flow: *flow,
                connection: 0,
                event: RowEvent::Reservation(event_value(standing)),
                cwnd: Segments::ZERO,
            });
        }
    }

    fn row(&self, now: Instant, connection: &Connection, kind: EventKind) {
        if let Some(sink) = &self.sink {
            sink.event(EventRow {
                at_ns: self.span.since(now).as_nanos(),
                flow: connection.flow,
                connection: connection.number,
                event: RowEvent::Connection(kind),
                cwnd: connection.sender.figures().cwnd,
            });
        }
    }
}
