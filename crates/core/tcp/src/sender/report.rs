//! The reports of a sender: events, counters and figures.

use wakeai_connection::{CongestionState, EventKind, Figures};
use wakeai_units::{Bytes, Duration, Rate, Segments};

use super::Sender;

/// Counts since the connection was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderCounters {
    /// Data and FIN segments sent, retransmissions included.
    pub segments_sent: u64,
    /// Retransmissions, including probes for tail losses.
    pub retransmits: u64,
    /// Expired retransmission timers of data.
    pub timeouts: u64,
    /// The most consecutive timeouts, without an acknowledgement of new data in between.
    pub timeouts_in_a_row: u32,
    /// SYNs sent.
    pub syns_sent: u32,
    /// Expired timers of the SYN.
    pub syn_timeouts: u32,
    /// The time from the first SYN to the answered SYN. It is the delay that lost SYNs and answers
    /// have caused. Without an answer: to the last timeout, at which the connection may have given up.
    pub syn_wait: Duration,
    /// The time from the first SYN to its answer.
    pub handshake: Duration,
    /// Probes for tail losses (RFC 8985 section 7).
    pub tail_loss_probes: u64,
    /// Tail losses that a probe showed and repaired.
    pub tail_losses: u64,
    /// Reductions undone because an echoed timestamp was older than the retransmission (Eifel).
    pub undone_by_timestamps: u64,
    /// Reductions undone because D-SACKs showed all retransmissions to be spurious.
    pub undone_by_dsack: u64,
    /// Timeouts undone because new data was acknowledged first (F-RTO).
    pub undone_by_frto: u64,
    /// Entries into Disorder.
    pub disorders: u64,
    /// Entries into Recovery.
    pub recoveries: u64,
    /// Entries into CWR.
    pub reductions: u64,
    /// Retransmissions that were lost.
    pub lost_retransmits: u64,
    /// Segments for which the host's queue had no room.
    pub local_drops: u64,
    /// Segments that arrived twice, as reported by D-SACK.
    pub dsacks: u64,
    /// Probes of a closed window.
    pub window_probes: u64,
}

impl SenderCounters {
    pub(super) fn count_state(&mut self, next: CongestionState) {
        match next {
            CongestionState::Disorder => self.disorders += 1,
            CongestionState::Cwr => self.reductions += 1,
            CongestionState::Recovery => self.recoveries += 1,
            CongestionState::Open | CongestionState::Loss => {}
        }
    }
}

impl Sender {
    /// Returns the oldest event that was not polled yet.
    pub fn poll_event(&mut self) -> Option<EventKind> {
        self.events.pop_front()
    }

    /// The counters.
    pub fn counters(&self) -> &SenderCounters {
        &self.counters
    }

    /// The congestion control of the connection.
    pub fn algorithm(&self) -> &wakeai_algorithms::Algorithm {
        &self.algorithm
    }

    /// Whether both directions are closed.
    pub fn is_closed(&self) -> bool {
        self.phase == super::SenderPhase::Closed
    }

    /// Whether the sender has given up, after too many timeouts or because the peer refused.
    pub fn has_failed(&self) -> bool {
        self.phase == super::SenderPhase::Failed
    }

    /// The retransmission timeout, including the backoff.
    pub fn retransmission_timeout(&self) -> Duration {
        self.rto.timeout
    }

    /// The connection's figures as they are now.
    pub fn figures(&self) -> Figures {
        let sock = &*self.algorithm;
        let micros = |us: u32| Duration::from_micros(u64::from(us));
        let rtt = |us: u32| (us > 0).then(|| micros(us));
        let pacing = Some(sock.sk_pacing_rate).filter(|rate| *rate != u64::MAX);
        Figures {
            cwnd: Segments::new(sock.snd_cwnd),
            ssthresh: Segments::new(sock.snd_ssthresh),
            smoothed_rtt: rtt(self.rtt.smoothed_us()),
            latest_rtt: rtt(self.rtt.latest_us),
            min_rtt: rtt(self.rtt.least_us()),
            congestion_state: self.state,
            packets_out: Segments::new(self.board.out()),
            sacked_out: Segments::new(self.board.sacked_out),
            lost_out: Segments::new(self.board.lost_out),
            retrans_out: Segments::new(self.board.retransmitted_out),
            send_queue: Bytes::new(self.written_end().saturating_sub(self.una.max(1))),
            delivered: self.board.delivered,
            pacing_rate: pacing.map(|bytes| Rate::from_bps(bytes.saturating_mul(8))),
            k: self.algorithm.k_us().map(micros),
            mss: Bytes::new(u64::from(self.config.mss)),
            ..Figures::default()
        }
    }
}
