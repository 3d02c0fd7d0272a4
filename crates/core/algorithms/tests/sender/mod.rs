// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! A simple sender for the tests of algorithms. It always has data, and every segment is acknowledged by an ACK of
//! its own.

use wakeai_algorithms::{Algorithm, Knobs, TcpSock};
use wakeai_connection::CongestionState;

const MSS: u32 = 1448;

pub(crate) struct Sender {
    pub(crate) tcp: Algorithm,
}

impl Sender {
    /// A sender with a window of `window`, all of it in flight.
    pub(crate) fn new(window: u32, knobs: Knobs) -> Self {
        Self::with(Algorithm::cubic(TcpSock::new(MSS, window), knobs))
    }

    /// A sender of an existing connection.
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

    /// Acknowledges one segment, and fills the window.
    pub(crate) fn ack(&mut self, rtt_us: u32) {
        let tcp = &mut self.tcp;
        tcp.snd_una = tcp.snd_una.wrapping_add(MSS);
        tcp.packets_out -= 1;
        tcp.srtt_us = rtt_us * 8;
        tcp.rttvar_us = 200_000;
        tcp.on_ack(1, 0, Some(rtt_us));
        self.fill();
    }

    /// After an RTT, acknowledges all segments in flight at once.
    pub(crate) fn round(&mut self, rtt_us: u32) {
        self.tcp.tcp_mstamp += u64::from(rtt_us);
        for _ in 0..self.tcp.packets_out {
            self.ack(rtt_us);
        }
    }

    /// After an RTT, acknowledges the segments in flight at intervals of `gap_us`.
    pub(crate) fn spread_round(&mut self, rtt_us: u32, gap_us: u64) {
        self.tcp.tcp_mstamp += u64::from(rtt_us);
        for _ in 0..self.tcp.packets_out {
            self.ack(rtt_us);
            self.tcp.tcp_mstamp += gap_us;
        }
    }

    /// After an RTT, acknowledges the segments in flight. Each ACK has an RTT that is `queue_us`
    /// longer than the one before.
    pub(crate) fn queueing_round(&mut self, rtt_us: u32, queue_us: u32) {
        self.tcp.tcp_mstamp += u64::from(rtt_us);
        for behind in 0..self.tcp.packets_out {
            self.ack(rtt_us + behind * queue_us);
        }
    }

    /// Begins a reduction.
    pub(crate) fn enter(&mut self, state: CongestionState) {
        self.tcp.prior_cwnd = self.tcp.snd_cwnd;
        self.tcp.prr_out = 0;
        self.tcp.snd_ssthresh = self.tcp.ssthresh();
        self.tcp.set_state(state);
    }

    /// Handles an ACK of one segment in Recovery. Returns the number of segments that are then
    /// sent.
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

    /// Ends the reduction.
    pub(crate) fn leave_to_open(&mut self) {
        self.tcp.packets_out -= self.tcp.sacked_out;
        self.tcp.sacked_out = 0;
        self.tcp.set_state(CongestionState::Open);
    }

    /// Detects and repairs a loss within one RTT.
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
