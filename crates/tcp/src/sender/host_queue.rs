//! Our packets in the host's queue: TCP small queues.

use wakeai_units::Instant;

use super::Sender;
use crate::config::{Profile, TcpConfig};
use crate::segment::Segment;

/// How many bytes of our packets wait in the host's queue, and how many may. (Linux counts the memory that
/// they are kept in; who asks for more, asks in what is counted: `queued_beside_payload` in the C sources.)
#[derive(Clone, Copy, Debug)]
pub(super) struct HostQueue {
    is_small: bool,
    shift: u32,
    limit: u64,
    bytes: u64,
    /// The longest packet that was sent.
    longest: u64,
    /// Packets that went into the queue, and those that are known to have left it.
    entered: u32,
    left: u32,
}

impl HostQueue {
    pub(super) fn new(config: &TcpConfig) -> Self {
        Self {
            is_small: config.small_queues && config.profile == Profile::Linux,
            shift: config.small_queue_shift,
            limit: config.small_queue_limit,
            bytes: 0,
            longest: 0,
            entered: 0,
            left: 0,
        }
    }

    /// Whether the queue holds all that it should: more than two packets, and more than the pacing
    /// rate carries in the time that the driver asks for, doubled so many times.
    pub(super) fn is_full(&self, pacing_rate: u64, doublings: u32) -> bool {
        let allowed = (pacing_rate >> self.shift).max(2 * self.longest).min(self.limit);
        self.is_small && self.bytes > allowed << doublings
    }

    /// The number of the packet that enters next.
    pub(super) fn next_packet(&self) -> u32 {
        self.entered
    }

    /// Whether a packet has not left yet, where that is told.
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

    /// A packet was acknowledged, so it has left, whether that was told or not.
    pub(super) fn note_left(&mut self, packet: u32) {
        if self.holds(packet) {
            self.left = packet.wrapping_add(1);
        }
    }

    /// The packet that entered last was turned away.
    fn refuse(&mut self, packet_len: usize) {
        self.entered = self.entered.wrapping_sub(1);
        self.bytes = self.bytes.saturating_sub(packet_len as u64);
    }
}

impl Sender {
    /// A packet of this connection has left the host's queue, in the order in which they entered
    /// it. With [`TcpConfig::small_queues`] it must be told for each packet, whatever becomes of it
    /// after; without, it means nothing.
    pub fn handle_departure(&mut self, _now: Instant, packet_len: usize) {
        self.host_queue.leave(packet_len);
    }

    /// The host's queue had no room for the segment that was polled last.
    ///
    /// Linux hears of it: the segment is the next to be sent, at the next ACK or timeout, and the
    /// window is reduced (local congestion). A classic sender does not.
    pub fn handle_local_drop(&mut self, now: Instant, segment: &Segment) {
        self.counters.local_drops += 1;
        self.host_queue.refuse(segment.packet_len());
        self.note_refused(segment);
        if self.config.profile == Profile::Classic || segment.flags.syn {
            return; // a SYN has its own timer
        }
        self.algorithm.tcp_mstamp = super::microseconds(now);
        if self.take_back(now, segment) {
            self.output.blocked = true;
        }
        self.enter_cwr();
    }

    /// The queue does not hold what it refused.
    fn note_refused(&mut self, segment: &Segment) {
        let number = self.stream.segment_from(segment.seq);
        let carried = segment.end() > segment.seq && !segment.flags.syn;
        if carried && (self.board.first()..self.board.next()).contains(&number) {
            self.board.set_packet(number, self.host_queue.left.wrapping_sub(1));
        }
    }
}
