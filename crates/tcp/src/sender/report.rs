//! What a sender tells of itself.

use wakeai_algorithms::State;
use wakeai_units::Duration;

use super::Sender;

/// Something that happened, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SenderEvent {
    /// The handshake is done.
    Established,
    /// The congestion state changed.
    StateChange {
        /// From this.
        from: State,
        /// To that.
        to: State,
    },
    /// A segment that begins at `seq` leaves again.
    Retransmit {
        /// Its first position.
        seq: u64,
    },
    /// The retransmission timer expired.
    Timeout {
        /// How often since something new was acknowledged, this time included.
        in_a_row: u32,
    },
    /// Everything is acknowledged, and both directions are closed.
    Closed,
    /// Given up: too many timeouts, or the peer refused.
    Failed,
}

/// The state of a connection at a moment, in the kernel's terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenderSample {
    /// Congestion window, in segments.
    pub cwnd: u32,
    /// Slow-start threshold, in segments.
    pub ssthresh: u32,
    /// Smoothed RTT; `None` before the first sample.
    pub smoothed_rtt: Option<Duration>,
    /// The last RTT sample.
    pub latest_rtt: Option<Duration>,
    /// The smallest RTT of the last five minutes.
    pub min_rtt: Option<Duration>,
    /// The retransmission timeout, backoff included.
    pub timeout: Duration,
    /// Congestion state.
    pub state: State,
    /// Segments sent and not acknowledged.
    pub packets_out: u32,
    /// Of these, selectively acknowledged.
    pub sacked_out: u32,
    /// Of these, taken for lost.
    pub lost_out: u32,
    /// Of these, retransmitted.
    pub retrans_out: u32,
    /// Bytes that the application has handed over and that are not acknowledged.
    pub send_queue: u64,
    /// Of these, bytes that were never sent.
    pub unsent: u64,
    /// Segments delivered since the connection was opened.
    pub delivered: u64,
    /// The rate at which the algorithm would pace, in bytes per second; `None` before it has one.
    pub pacing_bytes_per_s: Option<u64>,
    /// Whether the connection is paced.
    pub is_paced: bool,
}

/// What was counted since the connection was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderCounters {
    /// Data and FIN segments sent, retransmissions included.
    pub segments_sent: u64,
    /// Retransmissions, probes for tail losses included.
    pub retransmits: u64,
    /// Expired retransmission timers of data.
    pub timeouts: u64,
    /// The most of them without anything new acknowledged between.
    pub timeouts_in_a_row: u32,
    /// SYNs sent.
    pub syns_sent: u32,
    /// Expired timers of the SYN.
    pub syn_timeouts: u32,
    /// Time until the SYN left that was answered: what lost SYNs and answers cost.
    pub syn_wait: Duration,
    /// Time from the first SYN to its answer.
    pub handshake: Duration,
    /// Probes for tail losses (RFC 8985 section 7).
    pub tail_loss_probes: u64,
    /// Tail losses that a probe showed and repaired.
    pub tail_losses: u64,
    /// Reductions taken back because an echoed timestamp was older than the retransmission (Eifel).
    pub undone_by_timestamps: u64,
    /// Reductions taken back because D-SACKs showed all retransmissions needless.
    pub undone_by_dsack: u64,
    /// Timeouts taken back because new data was acknowledged first (F-RTO).
    pub undone_by_frto: u64,
    /// Entries into Disorder.
    pub disorders: u64,
    /// Entries into Recovery.
    pub recoveries: u64,
    /// Entries into CWR.
    pub reductions: u64,
    /// Retransmissions that were lost in turn.
    pub lost_retransmits: u64,
    /// Segments for which the host's queue had no room.
    pub local_drops: u64,
    /// Segments that were reported to have arrived twice.
    pub dsacks: u64,
    /// Probes of a closed window.
    pub window_probes: u64,
}

impl SenderCounters {
    pub(super) fn count_state(&mut self, next: State) {
        match next {
            State::Disorder => self.disorders += 1,
            State::Cwr => self.reductions += 1,
            State::Recovery => self.recoveries += 1,
            State::Open | State::Loss => {}
        }
    }
}

impl Sender {
    /// What happened since the last call, in order.
    pub fn poll_event(&mut self) -> Option<SenderEvent> {
        self.events.pop_front()
    }

    /// What was counted until now.
    pub fn counters(&self) -> &SenderCounters {
        &self.counters
    }

    /// The congestion control, for who watches it.
    pub fn algorithm(&self) -> &wakeai_algorithms::Algorithm {
        &self.algorithm
    }

    /// Whether both directions are closed.
    pub fn is_closed(&self) -> bool {
        self.phase == super::Phase::Closed
    }

    /// Bytes of the stream that are acknowledged.
    pub fn bytes_acknowledged(&self) -> u64 {
        self.una.min(self.stream.data_end()).saturating_sub(1)
    }

    /// The connection as it is now.
    pub fn sample(&self) -> SenderSample {
        let sock = &*self.algorithm;
        let span = |us: u32| (us > 0).then(|| Duration::from_micros(u64::from(us)));
        let rate = sock.sk_pacing_rate;
        let written = self.written_end();
        SenderSample {
            cwnd: sock.snd_cwnd,
            ssthresh: sock.snd_ssthresh,
            smoothed_rtt: span(self.rtt.smoothed_us()),
            latest_rtt: span(self.rtt.latest_us()),
            min_rtt: span(self.rtt.least_us()),
            timeout: self.timeout,
            state: self.state,
            packets_out: self.board.out(),
            sacked_out: self.board.sacked_out(),
            lost_out: self.board.lost_out(),
            retrans_out: self.board.retransmitted_out(),
            send_queue: written.saturating_sub(self.una.max(1)),
            unsent: written.saturating_sub(self.nxt.max(1)),
            delivered: self.delivered,
            pacing_bytes_per_s: (rate != u64::MAX).then_some(rate),
            is_paced: sock.sk_pacing_status != 0,
        }
    }
}
