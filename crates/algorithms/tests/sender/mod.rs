// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The sender around the algorithm, as far as the tests need one: it always has data, and every
//! segment is acknowledged on its own.

use wakeai_algorithms::{Algorithm, Knobs, TcpSock};
use wakeai_connection::CongestionState;

const MSS: u32 = 1448;

pub(crate) struct Sender {
    pub(crate) tcp: Algorithm,
}

impl Sender {
    /// With a window of `window` that is all in flight.
    pub(crate) fn new(window: u32, knobs: Knobs) -> Self {
        Self::with(Algorithm::cubic(TcpSock::new(MSS, window), knobs))
    }

    /// With a connection that is set up already.
    pub(crate) fn with(mut tcp: Algorithm) -> Self {
        tcp.is_cwnd_limited = 1;
        tcp.undo_marker = 1;
        let mut sender = Self { tcp };
        sender.fill();
        sender
    }

    fn fill(&mut self) {
        let tcp = &mut self.tcp;
        let room = tcp.snd_cwnd.saturating_sub(tcp.packets_out);
        tcp.packets_out += room;
        tcp.snd_nxt = tcp.snd_nxt.wrapping_add(room * MSS);
        tcp.max_packets_out = tcp.packets_out;
    }

    /// One segment is acknowledged, and the window filled.
    pub(crate) fn ack(&mut self, rtt_us: u32) {
        let tcp = &mut self.tcp;
        tcp.snd_una = tcp.snd_una.wrapping_add(MSS);
        tcp.packets_out -= 1;
        tcp.srtt_us = rtt_us * 8;
        tcp.rttvar_us = 200_000;
        tcp.on_ack(1, 0, Some(rtt_us));
        self.fill();
    }

    /// An RTT passes, and then all that was in flight is acknowledged at once.
    pub(crate) fn round(&mut self, rtt_us: u32) {
        self.tcp.tcp_mstamp += u64::from(rtt_us);
        for _ in 0..self.tcp.packets_out {
            self.ack(rtt_us);
        }
    }

    /// An RTT passes, and then the ACKs come at distances of `gap_us`.
    pub(crate) fn spread_round(&mut self, rtt_us: u32, gap_us: u64) {
        self.tcp.tcp_mstamp += u64::from(rtt_us);
        for _ in 0..self.tcp.packets_out {
            self.ack(rtt_us);
            self.tcp.tcp_mstamp += gap_us;
        }
    }

    /// An RTT passes, and then each ACK of the flight shows `queue_us` more of RTT.
    pub(crate) fn queueing_round(&mut self, rtt_us: u32, queue_us: u32) {
        self.tcp.tcp_mstamp += u64::from(rtt_us);
        for behind in 0..self.tcp.packets_out {
            self.ack(rtt_us + behind * queue_us);
        }
    }

    /// A reduction begins.
    pub(crate) fn enter(&mut self, state: CongestionState) {
        self.tcp.prior_cwnd = self.tcp.snd_cwnd;
        self.tcp.prr_out = 0;
        self.tcp.snd_ssthresh = self.tcp.ssthresh();
        self.tcp.set_state(state);
    }

    /// An ACK of one segment in Recovery; says how many segments it let out.
    pub(crate) fn recovery_ack(&mut self) -> u32 {
        let tcp = &mut self.tcp;
        tcp.tcp_mstamp += 100;
        tcp.sacked_out += 1;
        tcp.on_ack(1, 0, None);
        let in_flight = tcp.packets_out - tcp.sacked_out;
        let sent = tcp.snd_cwnd.saturating_sub(in_flight);
        tcp.packets_out += sent;
        tcp.prr_out += sent;
        sent
    }

    /// Everything is repaired.
    pub(crate) fn leave_to_open(&mut self) {
        self.tcp.packets_out -= self.tcp.sacked_out;
        self.tcp.sacked_out = 0;
        self.tcp.set_state(CongestionState::Open);
    }

    /// A loss is found and repaired within one RTT.
    pub(crate) fn loss_episode(&mut self, rtt_us: u32) {
        self.enter(CongestionState::Recovery);
        for _ in 0..self.tcp.packets_out {
            self.recovery_ack();
        }
        self.tcp.tcp_mstamp += u64::from(rtt_us);
        self.leave_to_open();
        self.tcp.packets_out = self.tcp.snd_cwnd;
    }
}
