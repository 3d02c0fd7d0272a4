//! The senders' figures, as the kernel's monitor takes them in the lab.

use wakeai_algorithms::State;
use wakeai_control::Standing;
use wakeai_scenario::figures::RttHistogram;
use wakeai_scenario::records::{EventKind, EventRow, SampleRow};
use wakeai_scenario::result::ErrorCounts;
use wakeai_tcp::{SenderEvent, SenderSample};
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
        let sample = connection.sender.sample();
        if sample.packets_out == 0 {
            return;
        }
        connection.next_sample = now + SAMPLE_INTERVAL;
        if let Some(rtt) = sample.latest_rtt.filter(|_| now >= self.span.warm) {
            self.rtt[self.groups[connection.flow as usize] as usize].record(rtt);
        }
        if now >= self.span.warm {
            let (sum, count) = &mut self.windows[connection.flow as usize];
            *sum += u64::from(sample.cwnd);
            *count += 1;
        }
        self.note_k(now, connection);
        if let Some(sink) = &self.sink {
            sink.sample(sample_row(self.span.since(now), connection, &sample));
        }
    }

    fn note_k(&mut self, now: Instant, connection: &Connection) {
        let Some(histories) = &mut self.k else { return };
        let Some(k_us) = connection.sender.algorithm().k_us() else { return };
        let history = &mut histories[connection.flow as usize];
        let k = Duration::from_micros(u64::from(k_us));
        if history.last().is_none_or(|(_, last)| *last != k) {
            history.push((self.span.since(now), k));
        }
    }

    /// Something has happened to a sender.
    pub(crate) fn event(&mut self, now: Instant, connection: &mut Connection, event: SenderEvent) {
        match event {
            SenderEvent::Established => self.row(now, connection, EventKind::Opened, 0),
            SenderEvent::Closed | SenderEvent::Failed => {
                self.row(now, connection, EventKind::Closed, 0);
            }
            SenderEvent::Retransmit { .. } => self.row(now, connection, EventKind::Retransmit, 0),
            SenderEvent::Timeout { .. } => {
                self.row(now, connection, EventKind::Timeout, 0);
                self.error(now, connection, ErrorCode::Timeout);
            }
            SenderEvent::StateChange { from, to } => {
                self.row(now, connection, EventKind::State, to as u32);
                let probed = connection.tail_loss_was_repaired();
                match (from, to) {
                    // What Recovery or CWR ends in is no new reordering.
                    (State::Open, State::Disorder) => {
                        self.error(now, connection, ErrorCode::Reordering);
                    }
                    // A repaired tail loss passes through CWR, too, and is no overflow.
                    (_, State::Cwr) if !probed => {
                        self.error(now, connection, ErrorCode::LocalOverflow);
                    }
                    (_, State::Recovery) => self.error(now, connection, ErrorCode::DuplicateAck),
                    _ => {}
                }
            }
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
                kind: EventKind::Reservation,
                value: event_value(standing),
                cwnd: 0,
            });
        }
    }

    fn error(&mut self, now: Instant, connection: &Connection, code: ErrorCode) {
        self.row(now, connection, EventKind::Error, code as u32);
        if now < self.span.warm {
            return;
        }
        *match code {
            ErrorCode::Reordering => &mut self.errors.reordering,
            ErrorCode::LocalOverflow => &mut self.errors.local_overflow,
            ErrorCode::DuplicateAck => &mut self.errors.duplicate_ack,
            ErrorCode::Timeout => &mut self.errors.timeout,
        } += 1;
    }

    fn row(&mut self, now: Instant, connection: &Connection, kind: EventKind, value: u32) {
        if let Some(sink) = &self.sink {
            sink.event(EventRow {
                at_ns: self.span.since(now).as_nanos(),
                flow: connection.flow,
                connection: connection.number,
                kind,
                value,
                cwnd: connection.sender.sample().cwnd,
            });
        }
    }
}

/// The codes of 000 table 2, as the kernel's monitor gives them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ErrorCode {
    Reordering = 1,
    LocalOverflow = 2,
    DuplicateAck = 3,
    Timeout = 4,
}

fn sample_row(at: Duration, connection: &Connection, sample: &SenderSample) -> SampleRow {
    SampleRow {
        at_ns: at.as_nanos(),
        flow: connection.flow,
        connection: connection.number,
        cwnd: sample.cwnd,
        ssthresh: sample.ssthresh,
        srtt_us: micros(sample.smoothed_rtt),
        rtt_us: micros(sample.latest_rtt),
        min_rtt_us: micros(sample.min_rtt),
        state: sample.state as u8,
        packets_out: sample.packets_out,
        sacked: sample.sacked_out,
        lost: sample.lost_out,
        retransmitted: sample.retrans_out,
        send_queue: u32::try_from(sample.send_queue).unwrap_or(u32::MAX),
        delivered: sample.delivered,
        pacing: sample.pacing_bytes_per_s.unwrap_or(0),
        k_us: connection.sender.algorithm().k_us(),
    }
}

fn micros(span: Option<Duration>) -> u32 {
    span.map_or(0, |span| u32::try_from(span.as_micros()).unwrap_or(u32::MAX))
}
