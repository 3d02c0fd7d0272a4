//! One QUIC connection with both its ends, which carries a flow.

use wakeai_connection::EventKind;
use wakeai_medium::{Destination, Node};
use wakeai_quic::{Control, PAYLOAD, Packet, Receiver, Sender};
use wakeai_scenario::Flow;
use wakeai_units::{Bytes, Duration, Instant, Segments};
use wakeai_world::flows::{Share, Writing};

use crate::carrier::{Carrier, Observer};
use crate::connection::{Ending, SAMPLE_INTERVAL, Senders};
use crate::packet;
use crate::policer::Policer;
use crate::timers::{TimerOwner, Timers};

/// The connection of a QUIC flow.
#[derive(Debug)]
pub(crate) struct QuicConnection {
    sender: Sender,
    receiver: Receiver,
    /// The timers of the two ends, once the connection is open.
    sender_timer: u32,
    receiver_timer: u32,
    start: Instant,
    share: Share,
    /// The times at which the application writes; `None` where it writes all data at once.
    writing: Option<Writing>,
    is_open: bool,
    /// The bytes that the receiving application has read.
    read: u64,
    /// The earliest time of the next sample.
    next_sample: Instant,
}

/// The ends of a QUIC flow, and its index.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    pub(crate) flow: u32,
    pub(crate) from: Node,
    pub(crate) to: Node,
}

impl QuicConnection {
    pub(crate) fn new(flow: &Flow, start: Instant) -> Self {
        let control = flow.algorithm.as_deref().and_then(Control::named);
        Self {
            sender: Sender::new(control.expect("checked when the scenario was read")),
            receiver: Receiver::default(),
            sender_timer: 0,
            receiver_timer: 0,
            start,
            share: Share { before: Bytes::ZERO, size: flow.size },
            writing: flow.limit.map(|limit| Writing::new(limit, PAYLOAD)),
            is_open: false,
            read: 0,
            next_sample: start,
        }
    }

    /// Opens the connection the first time, and hands it the data that the application has written. Returns the time of
    /// the next write, counted from the flow's start.
    pub(crate) fn write(
        &mut self,
        now: Instant,
        flow: u32,
        timers: &mut Timers,
    ) -> Option<Duration> {
        if !std::mem::replace(&mut self.is_open, true) {
            self.sender_timer = timers.add(TimerOwner::Quic(flow, false));
            self.receiver_timer = timers.add(TimerOwner::Quic(flow, true));
            self.sender.open(now);
        }
        let Share { size, .. } = self.share;
        let Some(writing) = &self.writing else {
            self.sender.supply(size.map(Bytes::get));
            if size.is_some() {
                self.sender.close();
            }
            return None;
        };
        let written = writing.written(self.share, now.saturating_since(self.start));
        self.sender.supply(Some(written.get()));
        if size == Some(written) {
            self.sender.close();
        }
        writing.next_write(self.share, written)
    }

    /// Transmits the sender's packets, counts its events, and sets its timer.
    pub(crate) fn pump_sender<O: Observer>(
        &mut self,
        now: Instant,
        way: Way,
        mut policer: Option<&mut Policer>,
        (carrier, timers, senders): (&mut Carrier<O>, &mut Timers, &mut Senders),
    ) -> Option<Ending> {
        let place = (way.flow, 0);
        while let Some(packet) = self.sender.poll_transmit(now) {
            let packet = packet::Packet::Quic { flow: way.flow, to_sender: false, packet };
            // A datagram that the agent's limit or the full queue of its host refuses is lost, and its sender does not hear of it.
            let packet = match &mut policer {
                Some(policer) => policer.take(now, packet),
                None => Some(packet),
            };
            if let Some(packet) = packet {
                carrier.send(now, way.from, Destination::Unicast(way.to), packet, place);
            }
        }
        if let Some(policer) = policer {
            timers.set(policer.timer, policer.departs_at());
        }
        let mut ending = None;
        while let Some(event) = self.sender.poll_event() {
            match event {
                EventKind::Closed if self.sender.has_failed() => ending = Some(Ending::Failed),
                EventKind::Closed => ending = Some(Ending::Closed),
                _ => {}
            }
            senders.event(now, place, event, self.sender.figures().cwnd);
        }
        // An acknowledgement ends the backoff, after which a probe may have been due before.
        let due = self.sender.next_timeout().map(|due| due.max(now));
        timers.set(self.sender_timer, due);
        ending
    }

    /// Transmits the receiver's packets, and sets its timer.
    pub(crate) fn pump_receiver<O: Observer>(
        &mut self,
        now: Instant,
        way: Way,
        carrier: &mut Carrier<O>,
        timers: &mut Timers,
    ) {
        while let Some(packet) = self.receiver.poll_transmit(now) {
            let packet = packet::Packet::Quic { flow: way.flow, to_sender: true, packet };
            carrier.send(now, way.to, Destination::Unicast(way.from), packet, (way.flow, 0));
        }
        timers.set(self.receiver_timer, self.receiver.next_timeout());
    }

    /// Handles a packet that has arrived at the sender.
    pub(crate) fn at_sender(
        &mut self,
        now: Instant,
        flow: u32,
        packet: &Packet,
        senders: &mut Senders,
    ) {
        if now >= self.next_sample {
            let figures = self.sender.figures();
            if figures.packets_out > Segments::ZERO {
                self.next_sample = now + SAMPLE_INTERVAL;
                senders.sample(now, (flow, 0), figures);
            }
        }
        self.sender.handle_packet(now, packet);
    }

    /// Handles a packet that has arrived at the receiver. Returns the bytes that the application has read since the last
    /// call.
    pub(crate) fn at_receiver(&mut self, now: Instant, packet: &Packet) -> u64 {
        self.receiver.handle_packet(now, packet);
        let read = self.receiver.bytes_read();
        read - std::mem::replace(&mut self.read, read)
    }

    /// Handles what is due at the sender. Returns whether anything was.
    pub(crate) fn wake_sender(&mut self, now: Instant, timers: &mut Timers) -> bool {
        let due = self.sender.next_timeout().is_some_and(|due| due <= now);
        if due {
            self.sender.handle_timeout(now);
        } else {
            timers.set(self.sender_timer, self.sender.next_timeout());
        }
        due
    }
}
