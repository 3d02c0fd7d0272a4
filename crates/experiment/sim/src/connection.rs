//! One TCP connection with both its ends.

use wakeai_connection::{Bounds, EventKind, Figures, Receiving};
use wakeai_control::Limit;
use wakeai_medium::{Destination, Node};
use wakeai_tcp::{Receiver, Segment, Sender};
use wakeai_units::{Duration, Instant, Segments};
use wakeai_world::{MeterPlace, SenderMeter, Span};

use crate::carrier::{Carrier, Observer};
use crate::packet::{Packet, Wire};
use crate::timers::Timers;

/// A connection of a flow.
#[derive(Debug)]
pub(crate) struct Connection {
    /// The index of the connection among all connections of the run.
    pub(crate) id: u32,
    /// The index of the connection's flow.
    pub(crate) flow: u32,
    /// The number of the connection in its flow, from 0.
    pub(crate) number: u32,
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
    pub(crate) from: Node,
    pub(crate) to: Node,
    /// The timers of both ends.
    pub(crate) sender_timer: u32,
    pub(crate) receiver_timer: u32,
    /// Whether TCP treats an overflow of its host's queue as local congestion.
    pub(crate) hears_overflow: bool,
    /// Whether the connection's algorithm obeys an agent's bounds.
    pub(crate) boundable: bool,
    /// The time at which the sender's handshake was complete.
    pub(crate) established: Option<Instant>,
    /// The bytes that the receiving application has read.
    pub(crate) read: u64,
    /// The earliest time of the next sample.
    pub(crate) next_sample: Instant,
    /// Whether the sender has closed.
    pub(crate) closed: bool,
}

/// The way in which a connection ended for its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The receiver has acknowledged everything.
    Closed,
    /// The sender has given up.
    Failed,
}

impl Connection {
    fn place(&self) -> MeterPlace {
        (self.flow, self.number)
    }

    /// Transmits the sender's segments, counts its events, and sets its timer.
    pub(crate) fn pump_sender<O: Observer>(
        &mut self,
        now: Instant,
        carrier: &mut Carrier<O>,
        timers: &mut Timers,
        senders: &mut Senders,
    ) -> Option<Ending> {
        while let Some(segment) = self.sender.poll_transmit(now) {
            let to = Destination::Unicast(self.to);
            let packet = Packet::Segment(Wire::pack(self.id, false, &segment));
            let sent = carrier.send(now, self.from, to, packet, self.place());
            if !sent && self.hears_overflow {
                self.sender.handle_local_drop(now, &segment);
                break; // the sender tries again at the next ACK or timeout, as the kernel does
            }
        }
        let mut ending = None;
        while let Some(event) = self.sender.poll_event() {
            match event {
                EventKind::Opened => self.established = Some(now),
                EventKind::Closed if self.sender.has_failed() => ending = Some(Ending::Failed),
                EventKind::Closed => ending = Some(Ending::Closed),
                _ => {}
            }
            senders.event(now, self.place(), event, self.sender.figures().cwnd);
        }
        timers.set(self.sender_timer, self.sender.next_timeout());
        ending
    }

    /// Transmits the receiver's segments, and sets its timer.
    pub(crate) fn pump_receiver<O: Observer>(
        &mut self,
        now: Instant,
        carrier: &mut Carrier<O>,
        timers: &mut Timers,
    ) {
        while let Some(segment) = self.receiver.poll_transmit(now) {
            let to = Destination::Unicast(self.from);
            let packet = Packet::Segment(Wire::pack(self.id, true, &segment));
            // An acknowledgement that the full queue of its host refuses is lost.
            carrier.send(now, self.to, to, packet, self.place());
        }
        timers.set(self.receiver_timer, self.receiver.next_timeout());
    }

    /// Handles a segment that has arrived at the sender.
    pub(crate) fn at_sender(&mut self, now: Instant, segment: &Segment, senders: &mut Senders) {
        if now >= self.next_sample {
            let figures = self.sender.figures();
            if figures.packets_out > Segments::ZERO {
                self.next_sample = now + SAMPLE_INTERVAL;
                senders.sample(now, self.place(), figures);
            }
        }
        self.sender.handle_segment(now, segment);
    }

    /// Handles a segment that has arrived at the receiver. Returns the bytes that the application
    /// has read since the last call.
    pub(crate) fn at_receiver(&mut self, now: Instant, segment: &Segment) -> u64 {
        self.receiver.handle_segment(now, segment);
        let read = self.receiver.bytes_read();
        read - std::mem::replace(&mut self.read, read)
    }

    /// The connection as the agent of one of its ends observes it.
    pub(crate) fn as_seen_at(&self, end: Node) -> wakeai_control::Connection {
        let id = u64::from(self.id);
        if self.from == end {
            let limit = if self.boundable { Limit::Window } else { Limit::Nothing };
            let (figures, receiving) = (self.sender.figures(), Receiving::default());
            wakeai_control::Connection { id, figures, limit, receiving }
        } else {
            // The kernel takes its first RTT sample from the handshake.
            let min_rtt = self.receiver.handshake_rtt();
            let (figures, limit) = (Figures { min_rtt, ..Figures::default() }, Limit::Nothing);
            let receiving = self.receiver.figures();
            wakeai_control::Connection { id, figures, receiving, limit }
        }
    }

    /// Applies the bounds that the agent of one of the ends has set.
    pub(crate) fn set_bounds(&mut self, end: Node, bounds: Bounds) {
        if self.from == end {
            if self.boundable {
                self.sender.set_bounds(bounds);
            }
        } else if self.receiver.is_established() {
            // The kernel limits no window before the connection is established.
            let mss = self.receiver.figures().mss;
            let limit = Some(bounds.receive).filter(|window| *window < Segments::MAX);
            self.receiver.limit_window(limit.map(|window| window.bytes(mss)));
        }
    }

    /// Whether both ends have finished.
    pub(crate) fn is_over(&self) -> bool {
        self.closed && self.receiver.finished() && self.receiver.next_timeout().is_none()
    }
}

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
}

impl Senders {
    pub(crate) fn new(span: Span, meter: SenderMeter, flows: usize) -> Self {
        Self { meter, span, windows: vec![(0, 0); flows] }
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
