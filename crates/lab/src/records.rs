//! The monitor's records as rows of the scenario's files (`--out`).

use wakeai_kernel::Record;
use wakeai_scenario::records::{EventRow, RowEvent, SampleRow};
use wakeai_world::RunSink;

use crate::watch::Sink;

/// What takes the monitor's records of one run.
pub(crate) fn monitor_sink(sink: RunSink) -> Sink {
    Box::new(move |flow, connection, at, record| {
        let (at_ns, flow) = (at.as_nanos(), flow as u32);
        match record {
            Record::Sample(sample) => {
                sink.sample(SampleRow { at_ns, flow, connection, figures: sample.figures });
            }
            Record::Event(event) => sink.event(EventRow {
                at_ns,
                flow,
                connection,
                event: RowEvent::Connection(event.kind),
                cwnd: event.figures.cwnd,
            }),
        }
    })
}
