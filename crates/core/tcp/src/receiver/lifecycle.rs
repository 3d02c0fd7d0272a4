//! The beginning and the end of a connection at the receiver.

use wakeai_units::{Duration, Instant};

use super::retransmission::{Expiry, FIN_RETRIES, SYN_ACK_RETRIES};
use super::{Autotune, Due, HandshakeRtt, Receiver, ReceiverPhase as P, Retransmission};
use crate::config::INITIAL_TIMEOUT;
use crate::segment::{Segment, Timestamp};

/// The states of RFC 9293 section 3.3.2 for an end that is opened by the peer and closes last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReceiverPhase {
    Listen,
    SynReceived,
    Established,
    /// The sender has finished; the application has not read everything yet.
    CloseWait,
    LastAck,
    Closed,
}

impl Receiver {
    /// Handles a segment that has arrived.
    pub fn handle_segment(&mut self, now: Instant, segment: &Segment) {
        match self.phase {
            P::Listen => self.listen(now, segment),
            P::SynReceived => self.await_handshake(now, segment),
            P::Established | P::CloseWait | P::LastAck => self.arrive(now, segment),
            P::Closed => self.refuse(segment),
        }
    }

    fn listen(&mut self, now: Instant, segment: &Segment) {
        if !segment.flags.syn || segment.flags.ack {
            self.refuse(segment);
            return;
        }
        self.phase = P::SynReceived;
        self.next = segment.end();
        self.read = self.next;
        self.echo = segment.timestamp.map(|timestamp| timestamp.value);
        self.sack_permitted = segment.options.sack_permitted;
        if segment.options.window_scale.is_none() {
            self.window.disable_scale();
        }
        self.syn_ack_sent = Some(now);
        let longest = self.config.max_timeout;
        let timer = Retransmission::new(now, INITIAL_TIMEOUT, longest, SYN_ACK_RETRIES);
        self.retransmission = Some(timer);
        self.due = Due::SynAck;
    }

    /// Waits for the acknowledgement of the SYN-ACK, which any segment may carry. A repeated SYN
    /// shows that the SYN-ACK was lost.
    fn await_handshake(&mut self, now: Instant, segment: &Segment) {
        if segment.flags.rst {
            self.forget();
        } else if segment.flags.syn {
            self.echo = self.echo.and(segment.timestamp).map(|timestamp| timestamp.value);
            if let Some(timer) = self.retransmission.as_mut() {
                timer.restart(now);
            }
            self.repeat_syn_ack();
        } else if segment.flags.ack && segment.ack >= 1 {
            self.establish(now, segment);
            self.arrive(now, segment);
        }
    }

    fn establish(&mut self, now: Instant, segment: &Segment) {
        self.phase = P::Established;
        self.retransmission = None;
        self.due = Due::Nothing;
        self.autotune = Autotune::new(now, u64::from(self.config.mss));
        // Where the SYN-ACK was sent twice, only its timestamp gives the RTT (RFC 6298 section 3).
        let timed = self.syn_ack_sent.map(|sent| now - sent);
        let rtt = timed.or_else(|| self.elapsed_ms(now, segment).map(millis));
        if let Some(rtt) = rtt {
            self.handshake = HandshakeRtt::measured(rtt);
        }
    }

    /// The time, in milliseconds, since this end sent the timestamp that the segment echoes.
    pub(super) fn elapsed_ms(&self, now: Instant, segment: &Segment) -> Option<u32> {
        self.echo?;
        segment.timestamp.map(|timestamp| Timestamp::clock_ms(now).wrapping_sub(timestamp.echo))
    }

    fn repeat_syn_ack(&mut self) {
        self.syn_ack_sent = None;
        self.counters.syn_ack_retransmits += 1;
        self.due = Due::SynAck;
    }

    /// Drops the half-open connection and listens for another.
    fn forget(&mut self) {
        let fresh = Self::new(&self.config);
        let reader = std::mem::take(&mut self.reader);
        *self = Self { reader, counters: self.counters, ..fresh };
    }

    /// Answers a segment that belongs to no connection with a reset (RFC 9293 section 3.5.2).
    fn refuse(&mut self, segment: &Segment) {
        if !segment.flags.rst {
            self.due = Due::Reset(if segment.flags.ack { segment.ack } else { 0 });
        }
    }

    /// Sends the FIN where the application has read everything before the sender's FIN.
    pub(super) fn close_if_read(&mut self, now: Instant) {
        if self.phase != P::CloseWait || self.unread() > 0 {
            return;
        }
        self.phase = P::LastAck;
        let (first, longest) = (self.handshake.timeout, self.config.max_timeout);
        let timer = Retransmission::new(now, first, longest, FIN_RETRIES);
        // The tail loss probe of a single segment would leave no earlier than its timeout. So the
        // probe leaves at the time of the timeout, and the timeout restarts (RFC 8985 section 7.2).
        let probes = self.config.is_linux();
        self.retransmission = Some(if probes { timer.with_probe() } else { timer });
        self.due = Due::Fin;
    }

    /// Handles the sender's acknowledgement `ack` of what this end has sent.
    pub(super) fn on_own_acknowledged(&mut self, ack: u64) {
        if self.phase == P::LastAck && ack >= 2 {
            self.close();
        }
    }

    /// Ends the connection.
    pub(super) fn close(&mut self) {
        self.phase = P::Closed;
        self.retransmission = None;
        self.due = Due::Nothing;
        self.acks.cancel();
    }

    /// Retransmits an unacknowledged SYN-ACK or FIN, or gives up.
    pub(super) fn expire(&mut self, now: Instant) {
        let expiry = self.retransmission.as_mut().and_then(|timer| timer.expire(now));
        match (expiry, self.phase) {
            (Some(Expiry::Again), P::SynReceived) => self.repeat_syn_ack(),
            (Some(Expiry::GiveUp), P::SynReceived) => self.forget(),
            (Some(Expiry::Again), _) => {
                self.counters.fin_retransmits += 1;
                self.due = Due::Fin;
            }
            (Some(Expiry::GiveUp), _) => self.close(),
            (None, _) => {}
        }
    }
}

fn millis(elapsed_ms: u32) -> Duration {
    Duration::from_millis(u64::from(elapsed_ms.max(1)))
}
