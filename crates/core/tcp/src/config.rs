//! The configuration of a connection: the generation of the stack, and the settings that an
//! administrator makes by sysctl.

use wakeai_units::Duration;

/// The generation of TCP at both ends of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Profile {
    /// Linux 6: RACK-TLP, autotuned buffers, undo of spurious recoveries, local congestion.
    #[default]
    Linux,
    /// The sender of the papers and of other simulators. It detects losses by RFC 6675, has fixed
    /// buffers and the retransmission timeout of RFC 6298, and does not react when the host's queue
    /// overflows.
    Classic,
}

/// The settings of both ends of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches")]
pub struct TcpConfig {
    /// The generation of the stack.
    pub profile: Profile,
    /// Payload bytes of a full segment.
    pub mss: u32,
    /// Segments that may leave before the first acknowledgement (RFC 6928).
    pub initial_window: u32,
    /// The upper limit of the receiver's buffer, in bytes.
    pub receive_buffer_limit: u64,
    /// The upper limit of the sender's buffer, in bytes.
    pub send_buffer_limit: u64,
    /// Whether the buffers start small and follow the connection, up to their limits.
    pub autotuned_buffers: bool,
    /// The first timeout of a SYN and of its answer (RFC 6298 section 2.1).
    pub initial_timeout: Duration,
    /// The shortest retransmission timeout.
    pub min_timeout: Duration,
    /// The longest retransmission timeout.
    pub max_timeout: Duration,
    /// The number of retransmissions of a SYN, not counting those of [`Self::syn_linear_timeouts`].
    pub syn_retries: u32,
    /// The number of a SYN's timeouts of equal length, before the length begins to double.
    pub syn_linear_timeouts: u32,
    /// The number of consecutive timeouts after which the connection is given up.
    pub retries: u32,
    /// Whether spurious reductions are undone (Eifel, D-SACK, F-RTO).
    pub undo_spurious: bool,
    /// Whether two more events in a recovery restart the timeout, as in Linux. One is the
    /// retransmission of the oldest outstanding segment. The other is a selective acknowledgement
    /// of segments that were sent before this retransmission. By RFC 6298 section 5.1 neither event
    /// restarts the timeout; RFC 6675 section 6 allows both ways.
    pub restart_on_retransmission: bool,
    /// Whether only the first partial acknowledgement of a recovery restarts the timeout. A long
    /// recovery then ends in slow start (RFC 6582 section 4, the impatient variant).
    pub impatient: bool,
    /// Whether the RTT comes from echoed timestamps (RFC 7323 section 4), as in Linux before 3.10.
    /// Otherwise the RTT is the age of the acknowledged segment, which is longer where
    /// acknowledgements are lost.
    pub rtt_by_timestamps: bool,
    /// Whether retransmission affects the RTT and the backoff as in ns-3. There an acknowledgement
    /// of retransmitted data gives no RTT, even with timestamps, and every acknowledgement of new
    /// data ends the backoff. By RFC 6298 timestamps give the RTT (section 3), and the backoff
    /// stays until there is a new RTT.
    pub forgets_backoff: bool,
    /// The longest delay of an acknowledgement.
    pub delayed_ack: Duration,
    /// Whether the host's queue admits only a few packets per connection and calls the sender when
    /// they leave (TCP small queues). The classic sender does not support this.
    pub small_queues: bool,
    /// With small queues, the host's queue admits as many bytes as the connection is paced to send
    /// in 2^-n s, where n is this number. mac80211 uses 7, so that aggregates fill; Linux's default
    /// is 10.
    pub small_queue_shift: u32,
    /// With small queues, the most bytes that the host's queue admits (`tcp_limit_output_bytes`).
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

    /// The ranges that both ends rely on.
    pub(crate) fn assert_ranges(&self) {
        assert!(
            self.mss > 0 && self.initial_window > 0,
            "segments and the first window have a size"
        );
        assert!(self.min_timeout <= self.max_timeout, "the shortest timeout is the shorter one");
        assert!(
            self.small_queue_shift < u64::BITS,
            "the rate is shifted by {}",
            self.small_queue_shift
        );
    }

    /// Whether losses are detected by time (RFC 8985) instead of by counting (RFC 6675).
    pub(crate) fn has_rack(&self) -> bool {
        self.profile == Profile::Linux
    }
}
