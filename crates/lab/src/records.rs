//! The monitor's records as rows of the scenario's files (`--out`).

use wakeai_kernel::{CongestionState, Event, EventKind, Figures, Record, Sample};
use wakeai_scenario::records::{self, EventRow, SampleRow};
use wakeai_units::{Duration, Rate};
use wakeai_world::RunSink;

use crate::watch::Sink;

/// What takes the monitor's records of one run.
pub(crate) fn monitor_sink(sink: RunSink) -> Sink {
    Box::new(move |flow, connection, at, record| match record {
        Record::Sample(sample) => sink.sample(sample_row(flow, connection, at, sample)),
        Record::Event(event) => sink.event(event_row(flow, connection, at, event)),
    })
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
        k_us: figures.k.map(micros),
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
