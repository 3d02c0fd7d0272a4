//! The connection's packets in the host's queue. With TCP small queues their bytes are limited.

use wakeai_algorithms::Algorithm;
use wakeai_units::Instant;

use super::Sender;
use crate::config::TcpConfig;
use crate::segment::Segment;

/// With small queues, the host's queue admits as many bytes as the connection is paced to send in
/// 2^-`SHIFT` s. mac80211 uses 7, so that aggregates fill; Linux's default is 10.
pub(super) const SHIFT: u32 = 7;
/// The shift where nothing else has set it. The size of bursts follows from it.
const ORDINARY_SHIFT: u32 = 10;
/// With small queues, the most bytes that the host's queue admits (`tcp_limit_output_bytes`).
const LIMIT: u64 = 4 << 20;

/// Counts the bytes of the connection's packets in the host's queue, and limits them. Linux counts
/// the memory of the packets instead. `queued_beside_payload` in the C sources gives the
/// difference.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HostQueue {
    is_small: bool,
    bytes: u64,
    /// The longest packet that was sent.
    longest: u64,
    /// Packets that entered the queue, and packets that are known to have left it.
    pub(super) entered: u32,
    left: u32,
}

impl HostQueue {
    pub(super) fn new(config: &TcpConfig) -> Self {
        Self { is_small: config.small_queues && config.is_modern(), ..Self::default() }
    }

    /// Whether the queue holds more bytes than its limit. The limit is what the connection is paced
    /// to send in 2^-[`SHIFT`] s, but at least two packets and at most [`LIMIT`] bytes. The result is
    /// doubled `doublings` times.
    pub(super) fn is_full(&self, pacing_rate: u64, doublings: u32) -> bool {
        let allowed = (pacing_rate >> SHIFT).max(2 * self.longest).min(LIMIT);
        self.is_small && self.bytes > allowed << doublings
    }

    /// Whether a packet is still in the queue. Without small queues the result is always `false`.
    pub(super) fn holds(&self, packet: u32) -> bool {
        self.is_small && packet.wrapping_sub(self.left).cast_signed() >= 0
    }

    pub(super) fn enter(&mut self, packet_len: usize) {
        self.entered = self.entered.wrapping_add(1);
        self.bytes += packet_len as u64;
        self.longest = self.longest.max(packet_len as u64);
    }

    fn leave(&mut self, packet_len: usize) {
        self.left = self.left.wrapping_add(1);
        self.bytes = self.bytes.saturating_sub(packet_len as u64);
    }

    /// Records that a packet was acknowledged, so it must have left the queue.
    pub(super) fn note_left(&mut self, packet: u32) {
        if self.holds(packet) {
            self.left = packet.wrapping_add(1);
        }
    }

    /// Takes back the packet that entered last, because the queue refused it.
    fn refuse(&mut self, packet_len: usize) {
        self.entered = self.entered.wrapping_sub(1);
        self.bytes = self.bytes.saturating_sub(packet_len as u64);
    }
}

/// The shift of the pacing rate that the algorithm sees. BBR reckons with bursts of that size, so it gets the shift of the
/// host's device: that of mac80211 only where small queues are on, as in the lab, whose devices are not Wi-Fi's.
pub(super) fn pacing_shift(config: &TcpConfig, algorithm: &Algorithm) -> u32 {
    let is_ordinary = algorithm.needs_rate() && !config.small_queues;
    if is_ordinary { ORDINARY_SHIFT } else { SHIFT }
}

/// The shift of the host's device: that of mac80211 where small queues are on.
pub(super) fn shift_of_device(config: &TcpConfig) -> u32 {
    if config.small_queues { SHIFT } else { ORDINARY_SHIFT }
}

impl Sender {
    /// Handles the departure of a packet of this connection from the host's queue. Packets depart
    /// in the order in which they entered. With [`TcpConfig::small_queues`] this must be called for
    /// each packet. Without it, the call has no effect.
    pub fn handle_departure(&mut self, _now: Instant, packet_len: usize) {
        self.host_queue.leave(packet_len);
    }

    /// Handles the refusal of the segment that was polled last, because the host's queue had no
    /// room.
    ///
    /// Linux sends the segment at the next ACK or timeout, and reduces the window (local
    /// congestion). The classic sender does not notice the refusal.
    pub fn handle_local_drop(&mut self, now: Instant, segment: &Segment) {
        self.counters.local_drops += 1;
        self.host_queue.refuse(segment.packet_len());
        self.note_refused(segment);
        if !self.config.is_linux() || segment.flags.syn {
            return; // a SYN has its own timer
        }
        self.advance(now);
        if self.take_back(now, segment) {
            self.output.blocked = true;
        }
        self.enter_cwr();
    }

    /// Corrects the record of the segment whose packet was refused, because this packet is not in
    /// the queue.
    fn note_refused(&mut self, segment: &Segment) {
        let number = self.stream.segment_from(segment.seq);
        let carried = segment.end() > segment.seq && !segment.flags.syn;
        if carried && self.board.is_out(number) {
            self.board.set_packet(number, self.host_queue.left.wrapping_sub(1));
        }
    }
}
