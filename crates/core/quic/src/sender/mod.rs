//! The end of a connection that opens it and sends a stream.
//!
//! The order in which its parts are best read: `stream`, the bytes in parts; `sent`, the packets and their losses; `rtt`;
//! `congestion`; `pacing`.

mod congestion;
mod pacing;
mod rtt;
mod sent;
mod stream;

use std::collections::VecDeque;

use wakeai_connection::{EventKind, Figures};
use wakeai_units::{Bytes, Duration, Instant, Rate, Segments};

pub use congestion::Control;

use crate::IDLE_TIMEOUT;
use crate::packet::{Ack, Data, PAYLOAD, Packet};
use congestion::{Acked, Congestion, Losses};
use pacing::Pacing;
use rtt::Rtt;
use sent::{Sent, SentPackets};
use stream::Stream;

/// The probes of an expired timeout (RFC 9002 section 6.2.4).
const PROBES: u8 = 2;

/// The sender of one stream to a [`Receiver`](crate::Receiver).
///
/// Order of calls: first call [`Self::open`]. Then call [`Self::handle_packet`] for each packet that arrives, and
/// [`Self::handle_timeout`] when [`Self::next_timeout`] has come. `now` never goes back. After each of these calls, and
/// after [`Self::supply`] and [`Self::close`], call [`Self::poll_transmit`] until it gives `None`, then
/// [`Self::poll_event`] until it gives `None`.
#[derive(Clone, Debug)]
pub struct Sender {
    phase: Phase,
    /// When the last packet of the handshake left, and whether one leaves now.
    hello_at: Instant,
    hello: bool,
    stream: Stream,
    sent: SentPackets,
    rtt: Rtt,
    congestion: Congestion,
    pacing: Pacing,
    /// Timeouts in a row without an acknowledgement, and the probes that leave regardless of the window.
    timeouts: u32,
    probes: u8,
    /// When a packet that is acknowledged left last.
    sent_at: Instant,
    /// When the idle timeout was restarted last, and whether something was sent since then.
    active_at: Instant,
    sent_since: bool,
    events: VecDeque<EventKind>,
}

/// The life of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Idle,
    Opening,
    Established,
    Closed,
    Failed,
}

impl Sender {
    /// A connection that is not open yet.
    pub fn new(control: Control) -> Self {
        Self {
            phase: Phase::Idle,
            hello_at: Instant::ZERO,
            hello: false,
            stream: Stream::new(),
            sent: SentPackets::default(),
            rtt: Rtt::default(),
            congestion: Congestion::new(control),
            pacing: Pacing::new(PAYLOAD.get()),
            timeouts: 0,
            probes: 0,
            sent_at: Instant::ZERO,
            active_at: Instant::ZERO,
            sent_since: false,
            events: VecDeque::new(),
        }
    }

    /// Begins the handshake.
    pub fn open(&mut self, now: Instant) {
        debug_assert_eq!(self.phase, Phase::Idle, "opened once");
        self.phase = Phase::Opening;
        self.active_at = now;
        self.hello = true;
    }

    /// Sets the number of bytes of the stream; with `None` the stream has no end. An application that writes little by
    /// little raises it by multiples of [`PAYLOAD`].
    pub fn supply(&mut self, bytes: Option<u64>) {
        self.stream.supply(bytes);
    }

    /// Ends the stream after the supplied bytes.
    pub fn close(&mut self) {
        self.stream.close();
    }

    /// Takes a packet that arrived.
    pub fn handle_packet(&mut self, now: Instant, packet: &Packet) {
        self.restart_idle(now);
        self.sent_since = false;
        match (self.phase, packet) {
            (Phase::Opening, Packet::Answer) => {
                self.phase = Phase::Established;
                // The answer to a repeated packet would give too long a sample, that to the first one does not.
                if self.timeouts == 0 {
                    self.rtt.sample(now.saturating_since(self.hello_at), Duration::ZERO);
                }
                self.timeouts = 0;
                self.events.push_back(EventKind::Opened);
            }
            (Phase::Established, Packet::Ack(ack)) => self.handle_ack(now, ack),
            _ => {}
        }
    }

    fn restart_idle(&mut self, now: Instant) {
        self.active_at = now;
    }

    fn handle_ack(&mut self, now: Instant, ack: &Ack) {
        self.stream.raise_limit(ack.limit);
        let Some((_, largest)) = ack.ranges.first().copied() else { return };
        self.sent.note_largest(largest);
        let Self { sent, stream, .. } = self;
        let (mut count, mut newest) = (0, None::<(u64, Sent)>);
        for range in &ack.ranges {
            sent.acknowledge(*range, |number, packet| {
                count += 1;
                stream.acknowledge(packet.part);
                newest = newest.filter(|(other, _)| *other > number).or(Some((number, packet)));
            });
        }
        let Some((number, packet)) = newest else { return };
        self.timeouts = 0;
        let rtt = (number == largest).then(|| now.saturating_since(packet.at));
        if let Some(rtt) = rtt {
            self.rtt.sample(rtt, ack.delay);
        }
        let lost = self.detect_losses(now);
        self.congestion.on_marks(ack.marked, number, self.sent.next(), &mut self.events);
        let acked = Acked { count, largest: number, rtt };
        self.congestion.on_ack(now, acked, lost, &mut self.events);
        if self.stream.is_over() {
            self.end(Phase::Closed);
        }
    }

    /// Finds losses, and reacts to them. Returns their number.
    fn detect_losses(&mut self, now: Instant) -> u32 {
        let Self { sent, stream, congestion, rtt, events, .. } = self;
        let (mut found, persistent) = (Losses::default(), rtt.persistent());
        sent.detect(now, rtt.loss_delay(), |number, packet| {
            stream.lose(packet.part);
            congestion.note_lost(&mut found, (number, packet), persistent);
        });
        congestion.publish(now, sent, rtt);
        if congestion.on_losses(found, sent.next(), events) {
            rtt.forget_least();
        }
        found.count
    }

    fn end(&mut self, phase: Phase) {
        self.phase = phase;
        self.events.push_back(EventKind::Closed);
    }

    /// Returns the next packet that may leave now.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Packet> {
        self.pacing.waits_until = None;
        match self.phase {
            Phase::Opening => {
                std::mem::take(&mut self.hello).then(|| self.note_sent(now))?;
                self.hello_at = now;
                return Some(Packet::Hello);
            }
            Phase::Established => {}
            Phase::Idle | Phase::Closed | Phase::Failed => return None,
        }
        if self.probes > 0 {
            self.probes -= 1;
            if let Some(probe) = self.probe(now) {
                return Some(probe);
            }
            self.probes = 0;
        }
        let in_flight = self.sent.in_flight();
        let Some((part, again)) = self.stream.choose() else {
            self.congestion.limited(false, in_flight);
            return None;
        };
        if in_flight >= self.congestion.window() || !self.is_paced(now) {
            self.congestion.limited(true, in_flight);
            return None;
        }
        self.stream.send(part, again);
        Some(self.emit(now, part, again))
    }

    /// Whether pacing lets a packet leave now.
    fn is_paced(&mut self, now: Instant) -> bool {
        let window = u64::from(self.congestion.window()) * PAYLOAD.get();
        self.pacing.may_send(now, PAYLOAD.get(), window, self.rtt.smoothed())
    }

    /// A probe after a timeout: what waits, or else the oldest part again.
    fn probe(&mut self, now: Instant) -> Option<Packet> {
        if let Some((part, again)) = self.stream.choose() {
            self.stream.send(part, again);
            return Some(self.emit(now, part, again));
        }
        let part = self.stream.oldest()?;
        Some(self.emit(now, part, true))
    }

    fn emit(&mut self, now: Instant, part: u64, again: bool) -> Packet {
        self.congestion.publish(now, &self.sent, &self.rtt);
        self.congestion.on_sent(self.sent.in_flight());
        let number = self.sent.send(now, part);
        self.pacing.send(PAYLOAD.get());
        self.note_sent(now);
        if again {
            self.events.push_back(EventKind::Retransmit);
        }
        let (offset, len) = (Stream::offset(part), self.stream.len(part));
        Packet::Data(Data { number, offset, len, is_marked: false })
    }

    /// Notes that a packet leaves that will be acknowledged. The first one after a packet that arrived restarts the idle
    /// timeout (RFC 9000 section 10.1).
    fn note_sent(&mut self, now: Instant) {
        self.sent_at = now;
        if !std::mem::replace(&mut self.sent_since, true) {
            self.restart_idle(now);
        }
    }

    /// Returns the oldest event that was not polled yet.
    pub fn poll_event(&mut self) -> Option<EventKind> {
        self.events.pop_front()
    }

    /// The time of the next call of [`Self::handle_timeout`]. It may be before the present.
    pub fn next_timeout(&self) -> Option<Instant> {
        if !matches!(self.phase, Phase::Opening | Phase::Established) {
            return None;
        }
        let times = [self.pacing.waits_until, self.recovery_at(), Some(self.idle_at())];
        times.into_iter().flatten().min()
    }

    /// When packets are lost by time, or else a probe is due (RFC 9002 section 6.2.1).
    fn recovery_at(&self) -> Option<Instant> {
        let waits = self.phase == Phase::Opening || self.sent.in_flight() > 0;
        let probe = || waits.then(|| self.sent_at + self.backed_off());
        self.sent.loss_at.or_else(probe)
    }

    /// The probe timeout with its backoff.
    fn backed_off(&self) -> Duration {
        self.rtt.probe_timeout().saturating_mul(1 << self.timeouts.min(20))
    }

    /// When the connection is given up (RFC 9000 section 10.1).
    fn idle_at(&self) -> Instant {
        self.active_at + IDLE_TIMEOUT.max(self.rtt.probe_timeout().saturating_mul(3))
    }

    /// Handles what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        if !matches!(self.phase, Phase::Opening | Phase::Established) {
            return;
        }
        if self.idle_at() <= now {
            self.end(Phase::Failed);
            return;
        }
        if self.recovery_at().is_none_or(|due| due > now) {
            return;
        }
        if self.sent.loss_at.is_some() {
            self.detect_losses(now);
            return;
        }
        self.timeouts += 1;
        if self.phase == Phase::Opening {
            self.hello = true;
        } else {
            self.probes = PROBES;
        }
    }

    /// Whether the receiver has acknowledged everything.
    pub fn is_closed(&self) -> bool {
        self.phase == Phase::Closed
    }

    /// Whether the sender has given up.
    pub fn has_failed(&self) -> bool {
        self.phase == Phase::Failed
    }

    /// The connection's figures as they are now, in the terms of TCP: a segment is a packet.
    pub fn figures(&self) -> Figures {
        let sock = &*self.congestion.algorithm;
        let rtt = self.rtt.get();
        let bits = u64::from(sock.snd_cwnd) * PAYLOAD.get() * 10; // 1.25 windows of 8 bits per RTT
        let pacing = |smoothed: Duration| {
            let bps = u128::from(bits) * 1_000_000_000 / u128::from(smoothed.as_nanos().max(1));
            Rate::from_bps(u64::try_from(bps).unwrap_or(u64::MAX))
        };
        Figures {
            cwnd: Segments::new(sock.snd_cwnd),
            ssthresh: Segments::new(sock.snd_ssthresh),
            smoothed_rtt: rtt.map(|rtt| rtt.smoothed),
            latest_rtt: rtt.map(|rtt| rtt.latest),
            min_rtt: rtt.map(|rtt| rtt.least),
            congestion_state: self.congestion.state,
            packets_out: Segments::new(self.sent.in_flight()),
            send_queue: Bytes::new(self.stream.unacknowledged()),
            delivered: self.congestion.delivered,
            pacing_rate: rtt.map(|rtt| pacing(rtt.smoothed)),
            k: self.congestion.algorithm.k_us().map(|us| Duration::from_micros(u64::from(us))),
            mss: PAYLOAD,
            ..Figures::default()
        }
    }
}
