// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The sender around the algorithm, as far as the tests need one: it always has data, and every
//! segment is acknowledged on its own.

use wakeai_algorithms::{Cubic, Knobs, State, TcpSock};

const MSS: u32 = 1448;

pub(crate) struct Sender {
    pub(crate) cubic: Cubic,
}

impl Sender {
    /// With a window of `window` that is all in flight.
    pub(crate) fn new(window: u32, knobs: Knobs) -> Self {
        Self::with(Cubic::new(TcpSock::new(MSS, window), knobs))
    }

    /// With a connection that is set up already.
    pub(crate) fn with(mut cubic: Cubic) -> Self {
        cubic.is_cwnd_limited = 1;
        cubic.undo_marker = 1;
        let mut sender = Self { cubic };
        sender.fill();
        sender
    }

    fn fill(&mut self) {
        let cubic = &mut self.cubic;
        let room = cubic.snd_cwnd.saturating_sub(cubic.packets_out);
        cubic.packets_out += room;
        cubic.snd_nxt = cubic.snd_nxt.wrapping_add(room * MSS);
        cubic.max_packets_out = cubic.packets_out;
    }

    /// One segment is acknowledged, and the window filled.
    pub(crate) fn ack(&mut self, rtt_us: u32) {
        let cubic = &mut self.cubic;
        cubic.snd_una = cubic.snd_una.wrapping_add(MSS);
        cubic.packets_out -= 1;
        cubic.srtt_us = rtt_us * 8;
        cubic.rttvar_us = 200_000;
        cubic.on_ack(1, 0, Some(rtt_us));
        self.fill();
    }

    /// An RTT passes, and then all that was in flight is acknowledged at once.
    pub(crate) fn round(&mut self, rtt_us: u32) {
        self.cubic.tcp_mstamp += u64::from(rtt_us);
        for _ in 0..self.cubic.packets_out {
            self.ack(rtt_us);
        }
    }

    /// An RTT passes, and then the ACKs come at distances of `gap_us`.
    pub(crate) fn spread_round(&mut self, rtt_us: u32, gap_us: u64) {
        self.cubic.tcp_mstamp += u64::from(rtt_us);
        for _ in 0..self.cubic.packets_out {
            self.ack(rtt_us);
            self.cubic.tcp_mstamp += gap_us;
        }
    }

    /// An RTT passes, and then each ACK of the flight shows `queue_us` more of RTT.
    pub(crate) fn queueing_round(&mut self, rtt_us: u32, queue_us: u32) {
        self.cubic.tcp_mstamp += u64::from(rtt_us);
        for behind in 0..self.cubic.packets_out {
            self.ack(rtt_us + behind * queue_us);
        }
    }

    /// A reduction begins.
    pub(crate) fn enter(&mut self, state: State) {
        self.cubic.prior_cwnd = self.cubic.snd_cwnd;
        self.cubic.prr_out = 0;
        self.cubic.snd_ssthresh = self.cubic.ssthresh();
        self.cubic.set_state(state);
    }

    /// An ACK of one segment in Recovery; says how many segments it let out.
    pub(crate) fn recovery_ack(&mut self) -> u32 {
        let cubic = &mut self.cubic;
        cubic.tcp_mstamp += 100;
        cubic.sacked_out += 1;
        cubic.on_ack(1, 0, None);
        let in_flight = cubic.packets_out - cubic.sacked_out;
        let sent = cubic.snd_cwnd.saturating_sub(in_flight);
        cubic.packets_out += sent;
        cubic.prr_out += sent;
        sent
    }

    /// Everything is repaired.
    pub(crate) fn leave_to_open(&mut self) {
        self.cubic.packets_out -= self.cubic.sacked_out;
        self.cubic.sacked_out = 0;
        self.cubic.set_state(State::Open);
    }

    /// A loss is found and repaired within one RTT.
    pub(crate) fn loss_episode(&mut self, rtt_us: u32) {
        self.enter(State::Recovery);
        for _ in 0..self.cubic.packets_out {
            self.recovery_ack();
        }
        self.cubic.tcp_mstamp += u64::from(rtt_us);
        self.leave_to_open();
        self.cubic.packets_out = self.cubic.snd_cwnd;
    }
}
