//! Samples of queue lengths and airtime for the records.

use wakeai_medium::{Airtime, Medium, Node, StationId};
use wakeai_results::records::{AirKind, AirOf, AirtimeRow, Queue, QueueRow, Row};
use wakeai_units::{Duration, Instant};
use wakeai_world::{RunSink, Span};

use crate::packet::Packet;

/// The time between two samples of the queues.
pub(crate) const QUEUE_STEP: Duration = Duration::from_millis(100);
/// The number of samples of the queues per sample of the airtime.
const AIR_STEPS: u32 = 10;

/// The sampler, with the values of the last sample.
#[derive(Debug)]
pub(crate) struct Sampler {
    span: Span,
    sink: RunSink,
    steps: u32,
    /// The packets in each queue at the last sample. The queues are the stations', the access
    /// point's, the wire up and the wire down.
    queues: Vec<u32>,
    up: Vec<Airtime>,
    down: Vec<Airtime>,
    access_point: Airtime,
    all: Airtime,
}

impl Sampler {
    pub(crate) fn new(span: Span, sink: RunSink, stations: usize) -> Self {
        Self {
            span,
            sink,
            steps: 0,
            queues: vec![0; stations + 3],
            up: vec![Airtime::default(); stations],
            down: vec![Airtime::default(); stations],
            access_point: Airtime::default(),
            all: Airtime::default(),
        }
    }

    /// Takes a sample.
    pub(crate) fn sample(&mut self, now: Instant, medium: &Medium<Packet>) {
        self.sample_queues(self.span.since(now).as_nanos(), medium);
        self.steps += 1;
        if self.steps.is_multiple_of(AIR_STEPS) {
            self.sample_air(now, medium);
        }
    }

    fn sample_queues(&mut self, at_ns: u64, medium: &Medium<Packet>) {
        let stations = self.up.len() as u32;
        let hosts = (0..stations).map(|station| {
            (Queue::Station(station), medium.queued(Node::Station(StationId(station))))
        });
        let rest = [
            (Queue::AccessPoint, medium.queued_at_access_point()),
            (Queue::WiredUp, medium.queued_for_server()),
            (Queue::WiredDown, medium.queued(Node::Server)),
        ];
        for ((queue, packets), before) in hosts.chain(rest).zip(&mut self.queues) {
            let packets = packets as u32;
            // A queue that stays empty has no row.
            if std::mem::replace(before, packets) > 0 || packets > 0 {
                self.sink.row(Row::Queue(QueueRow { at_ns, queue, packets }));
            }
        }
    }

    /// Takes a sample of the airtime. It covers the time since the last one, also at the end of the run.
    pub(crate) fn sample_air(&mut self, now: Instant, medium: &Medium<Packet>) {
        let at_ns = self.span.since(now).as_nanos();
        let counters = medium.counters();
        let sink = &self.sink;
        let row = |of, before: &mut Airtime, now: &Airtime| {
            for (kind, air) in grown(before, now).into_iter().filter(|(_, air)| !air.is_zero()) {
                sink.row(Row::Airtime(AirtimeRow { at_ns, of, kind, air_ns: air.as_nanos() }));
            }
            *before = *now;
        };
        for (station, (before, now)) in (0..).zip(self.up.iter_mut().zip(&counters.stations)) {
            row(AirOf::Up(station), before, &now.airtime);
        }
        for (station, (before, now)) in (0..).zip(self.down.iter_mut().zip(&counters.downlinks)) {
            row(AirOf::Down(station), before, now);
        }
        row(AirOf::AccessPoint, &mut self.access_point, &counters.access_point.airtime);
        row(AirOf::All, &mut self.all, &counters.airtime);
    }
}

/// The airtime of each kind since the last sample. All broadcasts are presence messages.
fn grown(before: &Airtime, now: &Airtime) -> [(AirKind, Duration); 7] {
    let by = |part: fn(&Airtime) -> Duration| part(now).saturating_sub(part(before));
    [
        (AirKind::Data, by(|air| air.data)),
        (AirKind::TcpAck, by(|air| air.transport_ack)),
        (AirKind::Presence, by(|air| air.presence + air.broadcast)),
        (AirKind::MacAck, by(|air| air.ack)),
        (AirKind::Protection, by(|air| air.protection)),
        (AirKind::Collision, by(|air| air.collision)),
        (AirKind::Idle, by(|air| air.idle)),
    ]
}
