//! The records of a run (`--out`): from the monitor's thread into the scenario's Parquet files.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use wakeai_kernel::{CongestionState, Event, EventKind, Figures, Record, Sample};
use wakeai_scenario::records::{self, EventRow, Manifest, Records, RecordsError, SampleRow};
use wakeai_scenario::result::{Report, Run};
use wakeai_scenario::{Expanded, Scenario};
use wakeai_units::{Duration, Rate};

use crate::error::LabError;
use crate::watch::Sink;

/// Records that are being written, shared with the thread that reads the monitor.
#[derive(Clone, Debug)]
pub(crate) struct Recorder(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    records: Records,
    /// The first failure to write a row: told at the end of the run.
    failed: Option<RecordsError>,
}

impl Recorder {
    /// Begins the records of a command in `directory`.
    pub(crate) fn create(
        directory: &Path,
        scenario: &Scenario,
        manifest: Manifest,
    ) -> Result<Self, LabError> {
        let records = Records::create(directory, scenario, manifest)?;
        Ok(Self(Arc::new(Mutex::new(State { records, failed: None }))))
    }

    /// Begins a run; the monitor's records go into the returned sink.
    pub(crate) fn begin_run(&self, condition: &str, repeat: u32, expanded: &Expanded) -> Sink {
        self.state().records.begin_run(condition, repeat, expanded);
        let recorder = self.clone();
        Box::new(move |flow, connection, at, record| {
            let mut state = recorder.state();
            if state.failed.is_none() {
                let written = match record {
                    Record::Sample(sample) => {
                        state.records.sample(sample_row(flow, connection, at, sample))
                    }
                    Record::Event(event) => {
                        state.records.event(event_row(flow, connection, at, event))
                    }
                };
                state.failed = written.err();
            }
        })
    }

    /// Ends a run with its result.
    pub(crate) fn end_run(&self, run: &Run) -> Result<(), LabError> {
        let mut state = self.state();
        match state.failed.take() {
            Some(error) => Err(error.into()),
            None => Ok(state.records.end_run(run)?),
        }
    }

    /// Puts the files into place.
    pub(crate) fn finish(self, report: &Report) -> Result<(), LabError> {
        let state = Arc::into_inner(self.0).expect("the sinks went with their monitors");
        let state = state.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(state.records.finish(report)?)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn sample_row(flow: usize, connection: u32, at: Duration, sample: &Sample) -> SampleRow {
    let Figures { cwnd, ssthresh, packets_out, sacked_out, lost_out, retrans_out, .. } =
        sample.figures;
    let figures = &sample.figures;
    SampleRow {
        at_ns: at.as_nanos(),
        flow: flow as u32,
        connection,
        cwnd: cwnd.get(),
        ssthresh: ssthresh.get(),
        srtt_us: micros(figures.smoothed_rtt),
        rtt_us: micros(figures.latest_rtt),
        min_rtt_us: micros(figures.min_rtt),
        state: number(figures.congestion_state),
        packets_out: packets_out.get(),
        sacked: sacked_out.get(),
        lost: lost_out.get(),
        retransmitted: retrans_out.get(),
        send_queue: u32::try_from(figures.send_queue.get()).unwrap_or(u32::MAX),
        delivered: figures.delivered,
        pacing: figures.pacing_rate.map_or(0, Rate::bytes_per_second),
    }
}

fn event_row(flow: usize, connection: u32, at: Duration, event: &Event) -> EventRow {
    use records::EventKind as Row;
    let (kind, value) = match event.kind {
        EventKind::Opened => (Row::Opened, 0),
        EventKind::Closed => (Row::Closed, 0),
        EventKind::StateChange { to, .. } => (Row::State, u32::from(number(to))),
        EventKind::Retransmit => (Row::Retransmit, 0),
        EventKind::Timeout => (Row::Timeout, 0),
        EventKind::Error(code) => (Row::Error, u32::from(code.number())),
    };
    let cwnd = event.figures.cwnd.get();
    EventRow { at_ns: at.as_nanos(), flow: flow as u32, connection, kind, value, cwnd }
}

fn micros(span: Duration) -> u32 {
    u32::try_from(span.as_micros()).unwrap_or(u32::MAX)
}

/// As the kernel numbers them (`TCP_CA_Open` and so on).
fn number(state: CongestionState) -> u8 {
    match state {
        CongestionState::Open => 0,
        CongestionState::Disorder => 1,
        CongestionState::Cwr => 2,
        CongestionState::Recovery => 3,
        CongestionState::Loss => 4,
    }
}
