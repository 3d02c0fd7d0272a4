//! The end of a connection: our FIN is one more segment of the stream, the peer's is answered.

use wakeai_connection::EventKind;
use wakeai_units::{Duration, Instant};

use super::timers::TimerKind;
use super::{Phase, Sender};
use crate::segment::Segment;

/// How long the peer's FIN is waited for when ours is acknowledged (Linux's `tcp_fin_timeout`).
const PEER_FIN_TIMEOUT: Duration = Duration::from_secs(60);

impl Sender {
    /// Whatever takes a position is answered: a new FIN, and a SYN-ACK or FIN whose first answer
    /// was lost.
    pub(super) fn handle_peer_fin(&mut self, segment: &Segment) {
        if segment.end() == segment.seq {
            return;
        }
        self.output.ack = true;
        if segment.flags.fin && segment.seq == self.peer_next {
            self.peer_next = segment.end();
        }
    }

    /// Closed once both FINs are acknowledged.
    pub(super) fn finish_if_closed(&mut self, now: Instant) {
        if !self.stream.fin_sent() || self.una < self.nxt {
            return;
        }
        if self.peer_next > 1 {
            self.close_connection();
        } else if !self.timer.is(TimerKind::PeerFin) {
            self.timer.set(TimerKind::PeerFin, now + PEER_FIN_TIMEOUT);
        }
    }

    pub(super) fn close_connection(&mut self) {
        self.timer.clear();
        self.phase = Phase::Closed;
        self.events.push_back(EventKind::Closed);
    }
}
