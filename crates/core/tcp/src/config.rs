//! The configuration of a connection: the generation of the stack, and the settings that an
//! administrator makes by sysctl.

use wakeai_units::Duration;

/// The generation of TCP at both ends of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Profile {
    /// Linux 6: RACK-TLP, autotuned buffers, undo of spurious recoveries, local congestion.
    #[default]
    Linux,
    /// Linux 3.4, of phones and tablets from 2012 to 2016. It counts segments to detect losses (FACK), sends no tail
    /// loss probe, grows by one segment for each ACK in slow start, takes the RTT from timestamps, and has the buffers of
    /// its time. `docs/concepts/sim.md` lists each difference with the version that ended it.
    Linux34,
    /// The sender of the papers and of other simulators. It detects losses by RFC 6675, has fixed
    /// buffers and the retransmission timeout of RFC 6298, and does not react when the host's queue
    /// overflows.
    Classic,
}

/// The first timeout of a SYN and of its answer (RFC 6298 section 2.1).
pub(crate) const INITIAL_TIMEOUT: Duration = Duration::from_secs(1);
/// The shortest retransmission timeout, as in Linux.
pub(crate) const MIN_TIMEOUT: Duration = Duration::from_millis(200);

/// The settings of both ends of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// The longest retransmission timeout.
    pub max_timeout: Duration,
    /// The number of retransmissions of a SYN, not counting those after Linux's first timeouts of
    /// equal length.
    pub syn_retries: u32,
    /// The number of consecutive timeouts after which the connection is given up.
    pub retries: u32,
    /// Whether retransmission affects the RTT and the backoff as in ns-3. There an acknowledgement
    /// of retransmitted data gives no RTT, even with timestamps, and every acknowledgement of new
    /// data ends the backoff. By RFC 6298 timestamps give the RTT (section 3), and the backoff
    /// stays until there is a new RTT.
    pub forgets_backoff: bool,
    /// Whether the host's queue admits only a few packets per connection and calls the sender when
    /// they leave (TCP small queues). The classic sender does not support this.
    pub small_queues: bool,
    /// Whether the host's device takes packets of several segments (GSO). The stacks before today's Linux do not support this.
    pub segmentation: bool,
}

impl TcpConfig {
    /// The defaults of a generation.
    pub fn new(profile: Profile) -> Self {
        // What Linux 6.18 sets for receivers, and what the lab sets for senders.
        let (receive, send) = if profile == Profile::Linux { (32, 64) } else { (4, 4) };
        Self {
            profile,
            mss: 1448,
            initial_window: 10,
            receive_buffer_limit: receive << 20,
            send_buffer_limit: send << 20,
            max_timeout: Duration::from_secs(if profile == Profile::Classic { 60 } else { 120 }),
            syn_retries: 6,
            retries: 15,
            forgets_backoff: false,
            small_queues: false,
            segmentation: profile == Profile::Linux,
        }
    }

    /// The ranges that both ends rely on.
    pub(crate) fn assert_ranges(&self) {
        assert!(
            self.mss > 0 && self.initial_window > 0,
            "segments and the first window have a size"
        );
        assert!(MIN_TIMEOUT <= self.max_timeout, "the shortest timeout is the shorter one");
    }

    /// Whether the stack is a Linux of any time.
    pub(crate) fn is_linux(&self) -> bool {
        self.profile != Profile::Classic
    }

    /// Whether the stack is today's Linux: with RACK-TLP, TCP small queues, and an RTT from each acknowledgement.
    pub(crate) fn is_modern(&self) -> bool {
        self.profile == Profile::Linux
    }

    /// Whether the stack is Linux 3.4.
    pub(crate) fn is_linux34(&self) -> bool {
        self.profile == Profile::Linux34
    }
}
