//! Congestion control (RFC 9002 section 7): its states, and the calls of the algorithm's hooks.

use std::collections::VecDeque;

use wakeai_algorithms::{Algorithm, Knobs, TcpSock};
use wakeai_connection::{CongestionState, EventKind};
use wakeai_units::{Duration, Instant};

use super::rtt::Rtt;
use super::sent::{Sent, SentPackets};
use crate::packet::PAYLOAD;

/// The initial window in packets (RFC 9002 section 7.2).
const INITIAL_WINDOW: u32 = 10;
/// The smallest window in packets (`kMinimumWindow`, RFC 9002 section 7.2).
const MINIMUM_WINDOW: u32 = 2;

/// The congestion control of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// CUBIC (RFC 9438), without an early end of slow start.
    Cubic,
    /// `NewReno` (RFC 9002 section 7.3).
    Reno,
}

impl Control {
    /// The control with this name in a scenario.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "cubic" => Some(Self::Cubic),
            "reno" => Some(Self::Reno),
            _ => None,
        }
    }

    fn start(self) -> Algorithm {
        let mut sock = TcpSock::new(PAYLOAD.get() as u32, INITIAL_WINDOW);
        sock.restart_window = 0; // QUIC keeps its window over an idle time, and paces what follows
        sock.sk_pacing_status = 1;
        match self {
            Self::Cubic => Algorithm::cubic(sock, Knobs { hystart: false, ..Knobs::default() }),
            Self::Reno => Algorithm::reno(sock),
        }
    }
}

/// Lost packets with consecutive numbers.
#[derive(Clone, Copy, Debug)]
struct Run {
    first_at: Instant,
    last: u64,
}

/// What a detection of losses has found.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Losses {
    pub(super) count: u32,
    largest: u64,
    is_persistent: bool,
}

/// What an acknowledgement has shown.
#[derive(Clone, Copy, Debug)]
pub(super) struct Acked {
    /// Packets that were newly acknowledged, and the largest of their numbers.
    pub(super) count: u32,
    pub(super) largest: u64,
    pub(super) rtt: Option<Duration>,
}

/// The state.
#[derive(Clone, Debug)]
pub(super) struct Congestion {
    pub(super) algorithm: Algorithm,
    pub(super) state: CongestionState,
    /// The number of the first packet that was sent after the last reduction.
    reduced_at: u64,
    /// The packets that the receiver has got with CE, as of the last acknowledgement.
    marked: u64,
    run: Option<Run>,
    /// When the RTT was first sampled.
    sampled_at: Option<Instant>,
    pub(super) delivered: u64,
}

impl Congestion {
    pub(super) fn new(control: Control) -> Self {
        Self {
            algorithm: control.start(),
            state: CongestionState::Open,
            reduced_at: 0,
            marked: 0,
            run: None,
            sampled_at: None,
            delivered: 0,
        }
    }

    /// The congestion window in packets.
    pub(super) fn window(&self) -> u32 {
        self.algorithm.snd_cwnd
    }

    /// Copies to the algorithm what it reads.
    pub(super) fn publish(&mut self, now: Instant, sent: &SentPackets, rtt: &Rtt) {
        let micros = |span: Duration| u32::try_from(span.as_micros()).unwrap_or(u32::MAX / 8);
        let sock = &mut *self.algorithm;
        sock.tcp_mstamp = (now.as_nanos() / 1_000).max(1);
        sock.snd_una = sent.largest.map_or(0, |largest| largest + 1) as u32;
        sock.snd_nxt = sent.next() as u32;
        sock.packets_out = sent.in_flight();
        if let Some(estimate) = rtt.get() {
            sock.srtt_us = micros(estimate.smoothed).saturating_mul(8).max(1);
            sock.rtt_min_us = micros(estimate.least).max(1);
        }
    }

    /// Notes that a packet is sent, which [`Self::publish`] has not seen yet.
    pub(super) fn on_sent(&mut self, in_flight: u32) {
        if in_flight == 0 {
            self.algorithm.after_idle();
        }
        self.algorithm.last_sent_us = self.algorithm.tcp_mstamp;
        if self.state == CongestionState::Recovery {
            self.algorithm.prr_out += 1;
        }
    }

    /// Notes whether window or pacing keep the sender from sending more. Only then may the window grow (RFC 9002 section
    /// 7.8).
    pub(super) fn limited(&mut self, is_limited: bool, in_flight: u32) {
        self.algorithm.is_cwnd_limited = u32::from(is_limited);
        self.algorithm.max_packets_out = if is_limited { in_flight.max(1) } else { 1 };
    }

    /// Adds a lost packet to what a detection has found. Lost packets in a row that span `persistent` show persistent
    /// congestion.
    pub(super) fn note_lost(
        &mut self,
        found: &mut Losses,
        (number, sent): (u64, Sent),
        persistent: Option<Duration>,
    ) {
        found.count += 1;
        found.largest = number;
        if self.sampled_at.is_none_or(|since| sent.at < since) {
            return;
        }
        match &mut self.run {
            Some(run) if run.last + 1 == number => run.last = number,
            run => *run = Some(Run { first_at: sent.at, last: number }),
        }
        let lasted = self.run.map(|run| sent.at.saturating_since(run.first_at));
        found.is_persistent |=
            lasted.zip(persistent).is_some_and(|(lasted, limit)| lasted >= limit);
    }

    /// Reacts to losses. Returns whether they show persistent congestion. [`Self::publish`] comes before.
    pub(super) fn on_losses(
        &mut self,
        losses: Losses,
        next: u64,
        events: &mut VecDeque<EventKind>,
    ) -> bool {
        if losses.count == 0 {
            return false;
        }
        self.reduce(losses.largest, next, events);
        if losses.is_persistent {
            self.run = None;
            self.algorithm.snd_cwnd = MINIMUM_WINDOW;
            self.change_state(CongestionState::Loss, events);
            self.algorithm.snd_cwnd = MINIMUM_WINDOW;
            events.push_back(EventKind::Timeout);
            self.reduced_at = next;
        }
        losses.is_persistent
    }

    /// Reacts to the packets with CE that an acknowledgement reports: `marked` in all, and `largest` is the largest packet that
    /// is newly acknowledged (RFC 9002 section 7.1). [`Self::publish`] comes before.
    pub(super) fn on_marks(
        &mut self,
        marked: u64,
        largest: u64,
        next: u64,
        events: &mut VecDeque<EventKind>,
    ) {
        // An acknowledgement that was overtaken reports fewer.
        if marked > self.marked {
            self.marked = marked;
            self.reduce(largest, next, events);
        }
    }

    /// Reduces the window once in a round trip: a loss or mark of packet `largest`, sent before the last reduction, belongs to that
    /// one (RFC 9002 section 7.3.2).
    fn reduce(&mut self, largest: u64, next: u64, events: &mut VecDeque<EventKind>) {
        if largest < self.reduced_at {
            return;
        }
        self.change_state(CongestionState::Open, events);
        let algorithm = &mut self.algorithm;
        algorithm.prior_cwnd = algorithm.snd_cwnd;
        algorithm.prr_out = 0;
        algorithm.snd_ssthresh = algorithm.ssthresh();
        algorithm.undo_marker = 1;
        self.change_state(CongestionState::Recovery, events);
        self.reduced_at = next;
    }

    /// Reacts to an acknowledgement, which also showed `lost` losses. [`Self::publish`] comes before.
    pub(super) fn on_ack(
        &mut self,
        now: Instant,
        acked: Acked,
        lost: u32,
        events: &mut VecDeque<EventKind>,
    ) {
        self.delivered += u64::from(acked.count);
        if acked.rtt.is_some() {
            self.sampled_at.get_or_insert(now);
        }
        if acked.largest >= self.reduced_at {
            self.change_state(CongestionState::Open, events);
        }
        let rtt_us = acked.rtt.map(|rtt| u32::try_from(rtt.as_micros()).unwrap_or(u32::MAX));
        self.algorithm.on_ack(acked.count, lost, rtt_us);
        let least = self.algorithm.snd_cwnd.max(MINIMUM_WINDOW);
        self.algorithm.snd_cwnd = least;
    }

    fn change_state(&mut self, next: CongestionState, events: &mut VecDeque<EventKind>) {
        if next == self.state {
            return;
        }
        self.algorithm.set_state(next);
        events.push_back(EventKind::StateChange { from: self.state, to: next, signal: None });
        self.state = next;
    }
}
