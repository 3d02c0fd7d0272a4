//! The opening (SYN and SYN-ACK) and the end of a connection. The sender's FIN is one more segment
//! of the stream; the peer's FIN is answered.

use wakeai_connection::EventKind;
use wakeai_units::{Duration, Instant};

use super::timers::TimerKind;
use super::{Sender, SenderPhase};
use crate::segment::{Flags, Segment, SynOptions, Timestamp};

/// The window scale and the window that the sender announces, although it receives no data.
const WINDOW_SCALE: u8 = 7;
pub(super) const OWN_WINDOW: u64 = 65_535;

/// The number of a SYN's timeouts of equal length, before the length begins to double (Linux since
/// 6.5).
const LINEAR_SYN_TIMEOUTS: u32 = 4;

/// The longest wait for the peer's FIN after this end's FIN is acknowledged (Linux's
/// `tcp_fin_timeout`).
const PEER_FIN_TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Handshake {
    pub(super) opened_at: Instant,
    last_sent_at: Instant,
}

impl Sender {
    pub(super) fn send_syn(&mut self, now: Instant) -> Segment {
        self.output.syn = false;
        self.nxt = 1;
        self.handshake.last_sent_at = now;
        self.counters.syns_sent += 1;
        self.timer.set(TimerKind::Syn, now + self.rto.timeout);
        let segment = Segment {
            flags: Flags::SYN,
            window: OWN_WINDOW,
            timestamp: Some(self.timestamps.outgoing(now)),
            options: SynOptions {
                mss: u16::try_from(self.config.mss + Timestamp::OPTION_LEN).ok(),
                window_scale: Some(WINDOW_SCALE),
                sack_permitted: true,
            },
            ..Segment::default()
        };
        self.host_queue.enter(segment.packet_len());
        segment
    }

    /// Handles the timeout of a SYN. The timeouts double (RFC 6298 section 5.5). In Linux some
    /// timeouts of equal length come first.
    pub(super) fn handle_syn_timeout(&mut self, now: Instant) {
        self.timer.clear();
        self.counters.syn_wait = now.saturating_since(self.handshake.opened_at);
        let linear = if self.config.is_modern() { LINEAR_SYN_TIMEOUTS } else { 0 };
        if self.counters.syn_timeouts >= self.config.syn_retries + linear {
            self.fail();
            return;
        }
        self.counters.syn_timeouts += 1;
        if self.counters.syn_timeouts > linear {
            self.rto.back_off();
        }
        self.output.syn = true;
    }

    pub(super) fn handle_handshake(&mut self, now: Instant, segment: &Segment) {
        let answers = segment.flags.syn && segment.flags.ack && segment.ack == 1;
        if !answers || self.counters.syns_sent == 0 {
            return;
        }
        self.phase = SenderPhase::Established;
        self.timer.clear();
        self.output.syn = false;
        self.output.ack = true;
        self.una = 1;
        self.nxt = 1;
        self.peer_next = segment.end();
        self.peer_window.update(true, segment.window);
        self.timestamps.echo = segment.timestamp.map_or(0, |timestamp| timestamp.value);
        self.sample_handshake(now);
        self.count_lost_syns();
        self.counters.handshake = now.saturating_since(self.handshake.opened_at);
        self.counters.syn_wait =
            self.handshake.last_sent_at.saturating_since(self.handshake.opened_at);
        self.publish();
        self.start_algorithm();
        self.events.push_back(EventKind::Opened);
    }

    /// Starts the algorithm here, as the kernel does, because the stream's first position and the
    /// RTT are known now. A floor (the lower bound of the window) applies only once the first data
    /// is acknowledged.
    fn start_algorithm(&mut self) {
        if self.algorithm.needs_rate() {
            self.algorithm.restart();
            return;
        }
        let floor = std::mem::take(&mut self.algorithm.bound_floor);
        self.algorithm.on_ack(0, 0, None);
        self.algorithm.bound_floor = floor;
    }

    /// Takes the first RTT sample. Where several SYNs were sent, the echoed timestamp shows which
    /// of them was answered.
    fn sample_handshake(&mut self, now: Instant) {
        let rtt_us = if self.counters.syns_sent == 1 {
            Some(now.saturating_since(self.handshake.opened_at).as_micros() as u32)
        } else if self.timestamps.echoed != 0 {
            self.timestamps.rtt_us(now)
        } else {
            None
        };
        if let Some(rtt_us) = rtt_us {
            self.rtt.sample(now, rtt_us, rtt_us, self.una, self.nxt);
            self.reset_timeout();
        }
    }

    /// Reduces the window where more than one SYN or answer was lost, which indicates congestion.
    /// Linux then starts with one segment, unless the answer is to the first SYN.
    fn count_lost_syns(&mut self) {
        let spurious = self.timestamps.echoed == Timestamp::clock_ms(self.handshake.opened_at);
        if self.config.is_linux() && self.counters.syn_timeouts > 1 && !spurious {
            self.algorithm.snd_cwnd = 1;
        }
    }

    /// Answers every segment that takes a position: a new FIN, and a SYN-ACK or FIN that is
    /// repeated because its first answer was lost.
    pub(super) fn handle_peer_fin(&mut self, segment: &Segment) {
        if segment.end() == segment.seq {
            return;
        }
        self.output.ack = true;
        if segment.flags.fin && segment.seq == self.peer_next {
            self.peer_next = segment.end();
        }
    }

    /// Closes the connection once both FINs are acknowledged.
    pub(super) fn finish_if_closed(&mut self, now: Instant) {
        if self.stream.fin.is_none() || self.una < self.nxt {
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
        self.phase = SenderPhase::Closed;
        self.events.push_back(EventKind::Closed);
    }
}
