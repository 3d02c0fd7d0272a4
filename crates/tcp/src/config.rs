//! What an administrator would set by sysctl, and how old the stack is.

use wakeai_units::Duration;

/// Which generation of TCP a connection's two ends are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Profile {
    /// Linux 6: RACK-TLP, autotuned buffers, undo of spurious recoveries, local congestion.
    #[default]
    Linux,
    /// As the papers had it and other simulators have: losses found by RFC 6675, fixed buffers, the
    /// retransmission timeout of RFC 6298, an overflow of the host's queue that nobody notices.
    Classic,
}

/// The settings of both ends of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches")]
pub struct TcpConfig {
    /// The generation.
    pub profile: Profile,
    /// Payload bytes of a full segment.
    pub mss: u32,
    /// Segments that may leave before the first acknowledgement (RFC 6928).
    pub initial_window: u32,
    /// The most that the receiver's buffer may grow to, in bytes.
    pub receive_buffer_limit: u64,
    /// The most that the sender's buffer may grow to, in bytes.
    pub send_buffer_limit: u64,
    /// Whether the buffers start small and follow the connection, up to their limits.
    pub autotuned_buffers: bool,
    /// First timeout of a SYN and of its answer (RFC 6298 section 2.1).
    pub initial_timeout: Duration,
    /// The retransmission timeout is never shorter.
    pub min_timeout: Duration,
    /// Nor longer.
    pub max_timeout: Duration,
    /// How often a SYN is sent again, not counting [`Self::syn_linear_timeouts`].
    pub syn_retries: u32,
    /// How often a SYN's timeout stays what it was before it begins to double.
    pub syn_linear_timeouts: u32,
    /// How often a timeout may pass without an answer before the connection is given up.
    pub retries: u32,
    /// Whether reductions that turn out to have been needless are taken back (Eifel, D-SACK,
    /// F-RTO).
    pub undo_spurious: bool,
    /// Whether in a recovery a retransmission of the head, and selective acknowledgements of what
    /// left before it, begin the timeout anew, as in Linux. RFC 6298 lets it run on (section 5.1);
    /// RFC 6675 allows both (section 6).
    pub restart_on_retransmission: bool,
    /// Whether in a recovery only the first partial acknowledgement begins the timeout anew, so
    /// that a long one ends in slow start (RFC 6582 section 4, the impatient variant).
    pub impatient: bool,
    /// Whether echoed timestamps give the RTT (RFC 7323 section 4), as in Linux before 3.10, and not the
    /// age of what is acknowledged: where acknowledgements are lost, that is longer.
    pub rtt_by_timestamps: bool,
    /// Whether the acknowledgement of what was sent again gives no RTT, echoed timestamps or not, and
    /// every one of new data ends the backoff, RTT or not: as in ns-3, and nowhere else. RFC 6298 takes what
    /// timestamps tell (section 3) and keeps the backoff until there is an RTT.
    pub forgets_backoff: bool,
    /// Delayed acknowledgements leave after this time at the latest.
    pub delayed_ack: Duration,
    /// Whether the host's queue takes a few packets per connection only and tells the sender when
    /// they leave (TCP small queues). The classic sender knows nothing of it.
    pub small_queues: bool,
    /// How much may wait in the host's queue then: what the pacing rate carries in a second,
    /// shifted right by this. mac80211 sets 7 so that aggregates fill (Linux's default is 10).
    pub small_queue_shift: u32,
    /// ... but not more than so many bytes (`tcp_limit_output_bytes`).
    pub small_queue_limit: u64,
}

impl TcpConfig {
    /// The defaults of a generation.
    pub fn new(profile: Profile) -> Self {
        let linux = profile == Profile::Linux;
        let buffer_limit = if linux { 64 << 20 } else { 4 << 20 };
        Self {
            profile,
            mss: 1448,
            initial_window: 10,
            receive_buffer_limit: buffer_limit,
            send_buffer_limit: buffer_limit,
            autotuned_buffers: linux,
            initial_timeout: Duration::from_secs(1),
            min_timeout: Duration::from_millis(200),
            max_timeout: Duration::from_secs(if linux { 120 } else { 60 }),
            syn_retries: 6,
            // Since Linux 6.5.
            syn_linear_timeouts: if linux { 4 } else { 0 },
            retries: 15,
            undo_spurious: linux,
            restart_on_retransmission: linux,
            rtt_by_timestamps: !linux,
            impatient: !linux,
            forgets_backoff: false,
            delayed_ack: Duration::from_millis(40),
            small_queues: false,
            small_queue_shift: 7,
            small_queue_limit: 4 << 20,
        }
    }

    /// Whether losses are found by time (RFC 8985) and not by counting (RFC 6675).
    pub(crate) fn has_rack(&self) -> bool {
        self.profile == Profile::Linux
    }
}
