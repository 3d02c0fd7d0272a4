//! Measures the flows of a run at their receivers and at their senders.

use wakeai_connection::{EventKind, Figures};
use wakeai_control::ReservationState;
use wakeai_results::figures::{AvrMeter, DurationHistogram};
use wakeai_results::records::{EventRow, GoodputRow, Row, RowEvent, SampleRow};
use wakeai_results::result::{ErrorCounts, MeasuredFlow};
use wakeai_scenario::{Expanded, Flow, FlowKind};
use wakeai_units::{Bytes, Duration, Instant, Segments};

use crate::RunSink;
use crate::span::Span;

/// Counts the bytes that the receiving application of one flow gets.
#[derive(Clone, Debug)]
pub struct ReceiverMeter {
    span: Span,
    start: Instant,
    /// The bytes that complete the flow.
    size: Option<u64>,
    bytes: u64,
    after_warmup: u64,
    /// The part of `after_warmup` that came in the second half of that time.
    late: u64,
    last: Instant,
    completed: Option<Instant>,
    longest_stall: Duration,
    /// The achievement ratio (AVR): how well the flow keeps its target, if it has one.
    avr: Option<AvrMeter>,
    step: Duration,
    progress: Vec<(Instant, u64)>,
    recorder: Option<GoodputRecorder>,
}

impl ReceiverMeter {
    /// A meter of `flow`. `step` is the resolution of [`Self::progress`]; zero keeps no progress.
    pub fn new(span: Span, flow: &Flow, step: Duration) -> Self {
        let start = span.origin + flow.start;
        let target = flow.rate.filter(|_| flow.kind == FlowKind::Tcp);
        Self {
            span,
            start,
            size: flow.size.map(Bytes::get),
            bytes: 0,
            after_warmup: 0,
            late: 0,
            last: start,
            completed: None,
            longest_stall: Duration::ZERO,
            avr: target.map(|target| AvrMeter::new(target, span.warm.saturating_since(start))),
            step,
            progress: Vec::new(),
            recorder: None,
        }
    }

    /// The same meter, which, where there are records, also records the goodput of the flow with this index over time. [`Self::end`] completes the
    /// records.
    pub fn recording(self, sink: Option<RunSink>, flow: u32) -> Self {
        let (span, start) = (self.span, self.start);
        Self { recorder: sink.map(|sink| GoodputRecorder::new(sink, flow, span, start)), ..self }
    }

    /// Ends the records of a run that ended at `end`.
    pub fn end(&mut self, end: Instant) {
        let end = self.flow_end(end);
        if let Some(recorder) = &mut self.recorder {
            recorder.end(end);
        }
    }

    /// Records that the application got `amount` bytes at `now`, and returns whether the flow is
    /// now complete. What it gets before the run's time zero or after the end of the run counts as nothing.
    pub fn on_received(&mut self, now: Instant, amount: u64) -> bool {
        if !self.span.contains(now) {
            return false;
        }
        self.add((now, now), amount);
        if self.completed.is_some() || self.size.is_none_or(|size| self.bytes < size) {
            return false;
        }
        self.completed = Some(now);
        true
    }

    /// Records that the application got `amount` bytes at a constant rate between `from` and `to`. Only the
    /// part inside the run counts.
    pub fn on_received_between(&mut self, from: Instant, to: Instant, amount: u64) {
        let inside = self.span.part(amount, (from, to), self.span.origin);
        if inside > 0 {
            self.add((from.max(self.span.origin), to.min(self.span.end)), inside);
        }
    }

    /// Adds what arrived in the run, between `from` and `now`.
    fn add(&mut self, (from, now): (Instant, Instant), amount: u64) {
        if let Some(recorder) = &mut self.recorder {
            recorder.add(from, now, amount);
        }
        self.bytes = self.bytes.saturating_add(amount);
        let part = |since| self.span.part(amount, (from, now), since);
        let (warm, late) = (part(self.span.warm), part(self.span.middle()));
        self.after_warmup = self.after_warmup.saturating_add(warm);
        self.late = self.late.saturating_add(late);
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

    /// The arrival of the last byte of a flow with a size.
    pub fn completed(&self) -> Option<Instant> {
        self.completed
    }

    /// For each step in which data arrived: the step's end, and the bytes received by then.
    pub fn progress(&self) -> &[(Instant, u64)] {
        &self.progress
    }

    /// The longest time without new data between the flow's start and its end, in a run that ended
    /// at `end`.
    pub fn longest_stall(&self, end: Instant) -> Duration {
        self.longest_stall.max(self.flow_end(end).saturating_since(self.last))
    }

    /// The end of the flow in a run that ended at `end`.
    fn flow_end(&self, end: Instant) -> Instant {
        self.completed.unwrap_or(end)
    }

    /// The figures of the flow in a run that ended at `end`. `flow` is the same as in
    /// [`Self::new`]. The counts of the sender are unknown; [`SenderMeter::measured`] adds them.
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
            bytes_in_second_half: Bytes::new(self.late),
            start: flow.start,
            completion: self.completed.map(since_start),
            retransmits: None,
            timeouts: None,
            avr: avr.and_then(|avr| avr.finish(since_start(self.flow_end(end)))),
            simulated: None,
            reservation: None,
        }
    }
}

/// One of the connections of a flow: the flow's index, and the connection's number from 0.
pub type MeterPlace = (u32, u32);

/// Counts the events of the TCP senders of a run, and records them.
#[derive(Debug)]
pub struct SenderMeter {
    span: Span,
    /// The group of each flow's station, by the flow's index.
    groups: Vec<usize>,
    rtt: Vec<DurationHistogram>,
    errors: ErrorCounts,
    /// The retransmissions and the retransmission timeouts of each flow, by the flow's index.
    flows: Vec<(u64, u64)>,
    sink: Option<RunSink>,
}

impl SenderMeter {
    /// A meter of all flows of a run. `sink` records the samples and events, if there is one.
    pub fn new(span: Span, expanded: &Expanded, sink: Option<RunSink>) -> Self {
        let group = |flow: &Flow| expanded.stations[flow.station()].group;
        let groups: Vec<usize> = expanded.flows.iter().map(group).collect();
        let count = groups.iter().max().map_or(0, |last| last + 1);
        let flows = vec![(0, 0); groups.len()];
        let (rtt, errors) = (vec![DurationHistogram::default(); count], ErrorCounts::default());
        Self { span, groups, rtt, errors, flows, sink }
    }

    /// Records a sample of a connection. The caller passes at most one sample per millisecond of
    /// each connection.
    pub fn sample(&mut self, at: Instant, (flow, connection): MeterPlace, figures: Figures) {
        if let Some(rtt) = figures.latest_rtt.filter(|_| self.span.counts(at)) {
            self.rtt[self.groups[flow as usize]].record(rtt);
        }
        if let Some(sink) = self.sink.as_ref().filter(|_| at <= self.span.end) {
            let at_ns = self.span.since(at).as_nanos();
            sink.row(Row::Sample(SampleRow { at_ns, flow, connection, figures }));
        }
    }

    /// Records an event of a connection whose congestion window is `cwnd`.
    pub fn event(&mut self, at: Instant, place: MeterPlace, kind: EventKind, cwnd: Segments) {
        let (retransmits, timeouts) = &mut self.flows[place.0 as usize];
        match kind {
            EventKind::Retransmit if self.span.contains(at) => *retransmits += 1,
            EventKind::Timeout if self.span.contains(at) => *timeouts += 1,
            EventKind::Error(code) if self.span.counts(at) => self.errors.add(code),
            _ => {}
        }
        self.row(at, place, RowEvent::Connection(kind), cwnd);
    }

    /// Records that the reservation of `flows` has changed.
    pub fn reservation(&self, at: Instant, flows: &[u32], state: ReservationState) {
        let value = match state {
            ReservationState::None | ReservationState::Waiting => 0,
            ReservationState::Admitted { .. } => 1,
            ReservationState::Refused { .. } => 2,
            ReservationState::Unmeasured => 3,
        };
        for flow in flows {
            self.row(at, (*flow, 0), RowEvent::Reservation(value), Segments::ZERO);
        }
    }

    fn row(&self, at: Instant, (flow, connection): MeterPlace, event: RowEvent, cwnd: Segments) {
        if let Some(sink) = self.sink.as_ref().filter(|_| at <= self.span.end) {
            let at_ns = self.span.since(at).as_nanos();
            sink.row(Row::Event(EventRow { at_ns, flow, connection, event, cwnd }));
        }
    }

    /// Adds the sender's counts to the figures of the flow with this index.
    pub fn measured(&self, index: usize, flow: MeasuredFlow) -> MeasuredFlow {
        let (retransmits, timeouts) = self.flows[index];
        MeasuredFlow { retransmits: Some(retransmits), timeouts: Some(timeouts), ..flow }
    }

    /// The distribution of the senders' RTT samples for each group of stations, and the counts of
    /// congestion events. Both cover the time after the warmup.
    pub fn finish(self) -> (Vec<DurationHistogram>, ErrorCounts) {
        (self.rtt, self.errors)
    }
}

/// The length of an interval.
const INTERVAL: Duration = Duration::from_millis(100);

/// Writes a row for each interval of a flow: from its start to its end, without gaps. All intervals of a run end at the
/// same times, except for the last one of each flow.
#[derive(Clone, Debug)]
struct GoodputRecorder {
    sink: RunSink,
    flow: u32,
    span: Span,
    /// The start of the present interval.
    from: Instant,
    bytes: u64,
}

impl GoodputRecorder {
    fn new(sink: RunSink, flow: u32, span: Span, start: Instant) -> Self {
        Self { sink, flow, span, from: start, bytes: 0 }
    }

    /// The end of the present interval.
    fn until(&self) -> Instant {
        let ended = self.span.since(self.from).as_nanos() / INTERVAL.as_nanos();
        self.span.origin + INTERVAL.saturating_mul(ended + 1)
    }

    /// Records `amount` bytes that arrived at a constant rate between `from` and `to`. What arrives after the end of the
    /// scenario's duration is left out.
    fn add(&mut self, from: Instant, to: Instant, amount: u64) {
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
    fn end(&mut self, at: Instant) {
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

#[cfg(test)]
mod tests {
    use wakeai_connection::ErrorCode;
    use wakeai_results::records::Manifest;
    use wakeai_scenario::Scenario;

    use crate::Recorder;

    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    /// A run of two flows that starts at second 100 and takes 20 s; the first 5 s are warmup.
    fn run() -> (Span, Expanded) {
        let text = "name = \"x\"\nduration = \"20s\"\nwarmup = \"5s\"\n\
                    access_point = { standard = \"802.11g\" }\n\
                    stations = [{ name = \"a\" }, { name = \"b\" }]\n\
                    flows = [{ from = \"a\", to = \"server\", size = \"7B\" },\
                             { from = \"b\", to = \"server\", start = \"1s\" }]\n";
        let scenario = Scenario::parse(text).unwrap();
        (Span::new(at(100_000), &scenario), scenario.expand(1))
    }

    #[test]
    fn samples_and_congestion_events_count_after_the_warmup() {
        let (span, expanded) = run();
        let mut meter = SenderMeter::new(span, &expanded, None);
        let figures = Figures { latest_rtt: Some(Duration::from_millis(40)), ..Figures::default() };
        for millis in [104_999, 105_000, 120_000, 120_001] {
            meter.sample(at(millis), (0, 0), figures);
            let error = EventKind::Error(ErrorCode::DuplicateAck);
            for kind in [error, EventKind::Retransmit, EventKind::Timeout] {
                meter.event(at(millis), (0, 0), kind, Segments::ZERO);
            }
        }
        assert_eq!(
            meter.flows,
            [(3, 3), (0, 0)],
            "the warmup is part of the run, what comes later is not"
        );
        let (rtt, errors) = meter.finish();
        assert_eq!((rtt[0].count(), rtt[1].count(), errors.duplicate_ack), (2, 0, 2));
    }

    #[test]
    fn bytes_of_an_interval_are_divided_among_the_steps_of_the_records() {
        let directory = tempfile::tempdir().unwrap();
        let (span, _) = run();
        let text = "name = \"x\"\nduration = \"20s\"\naccess_point = { standard = \"802.11g\" }\n\
                    stations = [{ name = \"a\" }]\nflows = [{ from = \"a\", to = \"server\" }]\n";
        let scenario = Scenario::parse(text).unwrap();
        let manifest = Manifest {
            version: "0".to_owned(),
            world: "lab".to_owned(),
            scenario: "x".to_owned(),
            seed: 1,
            repeat: 1,
            conditions: Vec::new(),
        };
        let recorder = Recorder::create(directory.path(), &scenario, manifest, false).unwrap();
        let expanded = scenario.expand(1);
        let sink = recorder.run(0, "default", 0, expanded.clone());
        let flow = &expanded.flows[0];
        let meter = ReceiverMeter::new(span, flow, Duration::ZERO);
        let mut meter = meter.recording(Some(sink.clone()), 0);
        // One byte per millisecond, before the start and after the end, too.
        meter.on_received_between(at(99_950), at(100_250), 300);
        meter.on_received_between(at(119_990), at(120_010), 20);
        meter.end(span.end);
        assert_eq!(meter.measured(flow, span.end).bytes.get(), 250 + 10, "the sum of the rows");
        let rows = sink.kept();
        let goodput = rows.iter().map(|row| match row {
            Row::Goodput(row) => (row.at_ns / 1_000_000, row.interval_ns / 1_000_000, row.bytes),
            other => panic!("{other:?}"),
        });
        let goodput: Vec<_> = goodput.collect();
        assert_eq!(goodput[..4], [(100, 100, 100), (200, 100, 100), (300, 100, 50), (400, 100, 0)]);
        assert_eq!((goodput.len(), goodput[199]), (200, (20_000, 100, 10)));
    }

    #[test]
    fn the_byte_that_fills_the_size_completes_a_flow() {
        let (span, expanded) = run();
        let flow = &expanded.flows[0];
        let mut meter = ReceiverMeter::new(span, flow, Duration::ZERO);
        let completes = [104_000, 106_000, 107_000].map(|millis| meter.on_received(at(millis), 3));
        assert_eq!(completes, [false, false, true]);
        let measured = meter.measured(flow, span.end);
        assert_eq!((measured.bytes.get(), measured.bytes_after_warmup.get()), (9, 6));
        assert_eq!(measured.completion, Some(Duration::from_secs(7)));
        assert_eq!(meter.longest_stall(span.end), Duration::from_secs(4));
    }

    #[test]
    fn what_comes_before_or_after_the_run_is_in_no_figure() {
        let (span, expanded) = run();
        let flow = &expanded.flows[0];
        for outside in [at(99_999), at(120_001)] {
            let mut meter = ReceiverMeter::new(span, flow, Duration::from_secs(1));
            assert!(!meter.on_received(outside, 7), "it would complete the flow");
            meter.on_received_between(outside, outside + Duration::from_nanos(1), 7);
            let measured = meter.measured(flow, span.end);
            assert_eq!((measured.bytes.get(), measured.completion), (0, None));
            assert_eq!(meter.progress(), &[][..]);
            assert_eq!(meter.longest_stall(span.end), Duration::from_secs(20));
        }
        let mut meter = ReceiverMeter::new(span, flow, Duration::ZERO);
        meter.on_received(at(100_000), 1);
        meter.on_received(at(120_000), 6);
        assert_eq!(meter.measured(flow, span.end).completion, Some(Duration::from_secs(20)));
    }

    #[test]
    fn the_second_half_is_that_of_the_time_after_the_warmup() {
        let (span, expanded) = run();
        let flow = &expanded.flows[1];
        let mut meter = ReceiverMeter::new(span, flow, Duration::ZERO);
        for millis in [104_000, 106_000, 112_499, 112_500, 119_000] {
            meter.on_received(at(millis), 1);
        }
        meter.on_received_between(at(112_000), at(113_000), 100);
        let measured = meter.measured(flow, span.end);
        let found = [measured.bytes, measured.bytes_after_warmup, measured.bytes_in_second_half];
        assert_eq!(found.map(Bytes::get), [105, 104, 52]);
    }

    #[test]
    fn bytes_of_an_interval_count_by_the_part_after_the_warmup() {
        let (span, expanded) = run();
        let flow = &expanded.flows[1];
        let mut meter = ReceiverMeter::new(span, flow, Duration::ZERO);
        meter.on_received_between(at(101_000), at(102_000), 0);
        meter.on_received_between(at(104_000), at(108_000), 100);
        let measured = meter.measured(flow, span.end);
        assert_eq!((measured.bytes.get(), measured.bytes_after_warmup.get()), (100, 75));
        assert_eq!(measured.completion, None);
    }
}
