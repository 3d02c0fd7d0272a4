//! The packets of several segments that Linux gives a device with segmentation offload (TSO, GSO).
//!
//! The segments of one packet leave together. The last one has PSH (since Linux 5.4), so that the receiver acknowledges
//! it at once. A packet that would be shorter than its rate allows may wait for the next acknowledgement, so that
//! pairs of segments stay pairs ([decision 027](../../../../../docs/decisions/027-acks-of-writes.md)).

use wakeai_connection::CongestionState;
use wakeai_units::Instant;

use super::host_queue::shift_of_device;
use super::{Sender, microseconds};

/// The fewest segments for which a packet waits (`tcp_min_tso_segs`).
const LEAST: u64 = 2;
/// The most bytes of a packet, headers included.
const MOST_BYTES: u64 = 65_536;
/// On a path without delay a packet may have [`MOST_BYTES`], whatever its rate. The part of it halves with each of
/// these, microseconds (2^`tcp_tso_rtt_log`).
const HALVES_AFTER_US: u32 = 512;
/// A packet that fills this part of the window does not wait (`tcp_tso_win_divisor`).
const WINDOW_DIVISOR: u64 = 3;
/// A packet does not wait where nothing has left for this long, microseconds.
const IDLE_US: u64 = 1_000;
/// A packet waits for an acknowledgement that is expected within this time or half of an RTT, microseconds (since Linux 6.18).
const SOON_US: u64 = 1_000;

/// The packet whose segments are leaving.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Packet {
    /// The position after its last full segment.
    end: u64,
    /// Whether its last segment has PSH.
    pushes: bool,
    /// The end of the last packet with a short segment.
    short_end: u64,
}

impl Packet {
    /// Whether the segment that ends here is the last one of a packet of several.
    pub(super) fn pushes_at(self, end: u64) -> bool {
        self.pushes && self.end == end
    }
}

/// What limits the next packet, in bytes.
#[derive(Clone, Copy, Debug)]
struct Room {
    /// The rest of the peer's window.
    window: u64,
    /// The rest of the congestion window.
    congestion: u64,
    /// What the application has written.
    written: u64,
}

impl Room {
    fn limit(self) -> u64 {
        self.window.min(self.congestion)
    }
}

impl Sender {
    /// Whether the next segment may leave as a part of its packet. Where a packet begins, its length is decided, or that it
    /// waits.
    pub(super) fn begin_packet(&mut self, now: Instant) -> bool {
        let has_packets = self.config.segmentation && self.config.is_modern();
        if !has_packets || self.nxt < self.packet.end {
            return true;
        }
        let mss = u64::from(self.config.mss);
        let most = self.most_segments();
        let written = self.stream.data_end.min(self.una + self.stream.buffer);
        let room = Room {
            window: self.peer_window.end(self.una).saturating_sub(self.nxt),
            congestion: u64::from(self.window_left()) * mss,
            written: written.saturating_sub(self.nxt),
        };
        if room.limit() < most * mss && self.waits_for_more(now, room) {
            return false;
        }
        // At least two packets are in flight.
        let half = u64::from(self.algorithm.snd_cwnd / 2).max(1);
        let segments = (room.limit().min(room.written) / mss).clamp(1, most.min(half));
        self.packet = self.packet.next(self.una, self.nxt, segments, mss, room);
        true
    }

    fn window_left(&self) -> u32 {
        self.algorithm.snd_cwnd.saturating_sub(self.board.in_flight())
    }

    /// The most segments of a packet: what the connection is paced to send in the time that the device's shift
    /// stands for, and more on short paths (`tcp_tso_autosize`).
    fn most_segments(&self) -> u64 {
        let by_rate = self.algorithm.sk_pacing_rate >> shift_of_device(&self.config);
        let by_path = MOST_BYTES.checked_shr(self.rtt.least_us() / HALVES_AFTER_US).unwrap_or(0);
        let bytes = by_rate.saturating_add(by_path).min(MOST_BYTES);
        (bytes / u64::from(self.config.mss)).max(LEAST)
    }

    /// Whether a short packet waits, because an acknowledgement that makes it longer is expected soon
    /// (`tcp_tso_should_defer`).
    fn waits_for_more(&self, now: Instant, room: Room) -> bool {
        let recovers = matches!(self.state, CongestionState::Recovery | CongestionState::Loss);
        let now_us = microseconds(now);
        let is_idle = now_us.saturating_sub(self.algorithm.last_sent_us) >= IDLE_US;
        let congestion = u64::from(self.algorithm.snd_cwnd) * u64::from(self.config.mss);
        let window = self.peer_window.bytes().min(congestion);
        if recovers || is_idle || room.limit() >= window / WINDOW_DIVISOR {
            return false;
        }
        // Nothing can be added to the last packet of a stream.
        if room.written <= room.limit() && self.stream.is_closing() {
            return false;
        }
        let smoothed_us = u64::from(self.rtt.smoothed_us());
        self.board.oldest().is_some_and(|oldest| {
            let expected_us = microseconds(oldest.sent_at) + smoothed_us;
            expected_us.saturating_sub(now_us) <= SOON_US.min(smoothed_us / 2)
        })
    }
}

impl Packet {
    /// The packet of so many full segments from `nxt` on.
    ///
    /// Where the peer's window ends within a segment, Linux fills it with a short segment, which ends the packet. It sends no
    /// second one before the first is acknowledged (Minshall's variant of Nagle's algorithm). Here segments are full, so that the
    /// short one is left out, but the packet ends like one of several segments.
    fn next(self, una: u64, nxt: u64, segments: u64, mss: u64, room: Room) -> Self {
        let end = nxt + segments * mss;
        let reaches_edge = room.window <= room.congestion
            && room.window < room.written
            && room.window / mss == segments;
        let short = reaches_edge && !room.window.is_multiple_of(mss) && una >= self.short_end;
        Self {
            end,
            pushes: segments > 1 || short,
            short_end: if short { end } else { self.short_end },
        }
    }
}
