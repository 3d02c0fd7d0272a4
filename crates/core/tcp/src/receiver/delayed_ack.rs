//! The time at which an acknowledgement leaves (RFC 9293 section 3.8.6.3, as Linux does it).
//!
//! At first every segment is acknowledged at once (a quick ACK), so that slow start is not slowed
//! down. There are quick ACKs for half a window, at most 16, and one whenever the window has
//! opened. Later every second full segment is acknowledged at once, and any other after 40 ms. An
//! ACK with information for the sender also leaves at once: for data out of order, a gap that was
//! filled, or data that arrived twice. So does the ACK of data that ends a write of the application
//! (PSH), once the receiving application has read everything. But of many ACKs for data out of order, all after the first
//! three are delayed by at most 1 ms (Linux since 4.18). The classic profile has neither quick ACKs
//! nor this delay.

use wakeai_units::{Duration, Instant};

use crate::config::TcpConfig;
use crate::segment::Segment;

/// The most quick ACKs in a row.
const MAX_QUICK: u64 = 16;
/// The segment size of a peer that announced none, by RFC 9293.
const DEFAULT_MSS: u64 = 536;
/// The shortest wait of a delayed ACK.
const MIN_DELAY: Duration = Duration::from_millis(40);
/// The longest wait of a delayed ACK (500 ms in RFC 9293).
const MAX_DELAY: Duration = Duration::from_millis(200);

/// The receiver's state on which the decision depends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Situation {
    /// The next position that is expected.
    pub(super) next: u64,
    /// Bytes in order that are not yet acknowledged.
    pub(super) unacknowledged: u64,
    /// Whether the application has taken everything, or the window can advance by all that has
    /// arrived.
    pub(super) window_moves: bool,
    /// Whether data is held behind a gap.
    pub(super) gap: bool,
    /// The RTT of the handshake, where it is known.
    pub(super) handshake_rtt: Option<Duration>,
    /// The RTT that the data shows, where it is known.
    pub(super) data_rtt: Option<Duration>,
}

/// Whether an ACK is due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Need {
    #[default]
    Nothing,
    /// An ACK is due and may wait.
    Later,
    /// An ACK is due at once.
    Now,
    /// An ACK is due at once although nothing new arrived. It does not use up a quick ACK.
    Answer,
}

/// The delayed ACK of one receiver.
#[derive(Clone, Debug, Default)]
pub(super) struct DelayedAck {
    linux: bool,
    need: Need,
    /// Quick ACKs left.
    quick: u64,
    /// Whether the other direction is active, so that an ACK can travel with its data.
    pingpong: bool,
    /// Whether a segment arrived that was not full, or that ended a write of the application (PSH).
    /// Such a segment may be the last one for now.
    pushed: bool,
    /// The delay of an ACK (Linux's `ato`); zero before the first data.
    delay: Duration,
    /// The time at which a delayed ACK must leave.
    timer: Option<Instant>,
    last_data: Instant,
    /// Segments since the last ACK.
    segments: u32,
    /// The size of a full segment, as far as the receiver knows (Linux's `rcv_mss`).
    pub(super) segment_size: u64,
    mss: u64,
    compression: Compression,
}

impl DelayedAck {
    /// The state of a connection on which nothing has arrived.
    pub(super) fn new(config: &TcpConfig) -> Self {
        Self {
            linux: config.is_linux(),
            segment_size: DEFAULT_MSS.min(u64::from(config.mss)),
            mss: u64::from(config.mss),
            ..Self::default()
        }
    }

    /// Whether an ACK is due at once.
    pub(super) fn is_due(&self) -> bool {
        matches!(self.need, Need::Now | Need::Answer)
    }

    /// Whether ACKs for data out of order are being held back.
    pub(super) fn is_compressing(&self) -> bool {
        self.compression.held > 0
    }

    /// The time at which a delayed ACK must leave.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.timer.into_iter().chain(self.compression.timer).min()
    }

    /// Handles data that arrived in order. `window` is the last window, and `timeout` the receiver's
    /// own retransmission timeout.
    pub(super) fn on_data(
        &mut self,
        now: Instant,
        segment: &Segment,
        window: u64,
        timeout: Duration,
    ) {
        let len = u64::from(segment.len);
        self.schedule();
        // Of full segments PSH counts since Linux 6.6 (4720852ed9af): a sender that waits for the
        // ACK of a write of whole segments would otherwise wait for the delayed ACK's timer.
        self.pushed |= segment.flags.psh || len < self.segment_size;
        self.segment_size = self.segment_size.max(len.min(self.mss));
        if self.linux {
            self.adapt(now, window, timeout);
        }
        self.last_data = now;
    }

    /// Adapts the delay to the time between segments. The delay shrinks to the minimum while
    /// segments arrive fast.
    fn adapt(&mut self, now: Instant, window: u64, timeout: Duration) {
        if self.delay.is_zero() {
            self.allow_quick(window);
            self.delay = MIN_DELAY;
            return;
        }
        let between = now.saturating_since(self.last_data);
        if between <= MIN_DELAY / 2 {
            self.delay = self.delay / 2 + MIN_DELAY / 2;
        } else if between < self.delay {
            self.delay = (self.delay / 2 + between).min(timeout);
        } else if between > timeout {
            // After such a pause the sender restarts with a small window and needs ACKs to grow.
            self.allow_quick(window);
        }
    }

    /// Allows quick ACKs for half a window, at most 16.
    fn allow_quick(&mut self, window: u64) {
        let half_window = window / (2 * self.segment_size);
        let quick = if half_window == 0 { 2 } else { half_window.min(MAX_QUICK) };
        self.quick = self.quick.max(quick);
        debug_assert!(self.quick <= MAX_QUICK + 1, "{} quick ACKs", self.quick);
    }

    /// Asks for quick ACKs, because the window has opened.
    pub(super) fn on_window_growth(&mut self) {
        if self.linux {
            self.quick |= 1;
        }
    }

    /// Ends the quick ACKs, because the buffer is half full.
    pub(super) fn on_crowded(&mut self) {
        self.quick = 0;
    }

    /// Asks for an ACK of data behind a gap, or of a FIN. It may wait.
    pub(super) fn schedule(&mut self) {
        self.need = match self.need {
            Need::Nothing | Need::Later => Need::Later,
            Need::Answer | Need::Now => Need::Now,
        };
        self.segments += 1;
    }

    /// Asks for an ACK at once, because a gap was filled or a segment arrived that always needs an
    /// answer.
    pub(super) fn force(&mut self) {
        self.need = Need::Now;
    }

    /// Requests an ACK at once although nothing new arrived.
    pub(super) fn answer(&mut self) {
        self.need = match self.need {
            Need::Nothing | Need::Answer => Need::Answer,
            Need::Later | Need::Now => Need::Now,
        };
    }

    /// Asks for quick ACKs, because a duplicate or unacceptable segment arrived: the sender may
    /// have lost ACKs.
    pub(super) fn become_quick(&mut self, window: u64) {
        if self.linux {
            self.allow_quick(window);
            self.pingpong = false;
            self.delay = MIN_DELAY;
        }
    }

    /// Handles the sender's FIN, which this end will answer soon.
    pub(super) fn on_fin(&mut self) {
        self.schedule();
        self.pingpong = true;
    }

    /// Decides, at the end of a segment, whether its ACK leaves now or later.
    pub(super) fn decide(&mut self, now: Instant, situation: Situation) {
        if self.need != Need::Later {
            return;
        }
        if self.linux {
            self.decide_linux(now, situation);
        } else if situation.gap || self.segments >= 2 {
            self.need = Need::Now;
        } else {
            self.timer.get_or_insert(now + MIN_DELAY);
        }
    }

    fn decide_linux(&mut self, now: Instant, situation: Situation) {
        let quick = self.quick > 0 && !self.pingpong;
        let second = situation.unacknowledged > self.segment_size && situation.window_moves;
        if quick || second {
            self.need = Need::Now;
        } else if situation.gap {
            let rtts = [situation.data_rtt, situation.handshake_rtt];
            let rtt = rtts.into_iter().flatten().min();
            if self.compression.on_gap(now, situation.next, rtt) {
                self.need = Need::Now;
            }
        } else {
            self.delay(now, situation.handshake_rtt);
        }
    }

    /// Delays the ACK, by no longer than an RTT where the RTT is known.
    fn delay(&mut self, now: Instant, rtt: Option<Duration>) {
        let bound = rtt.map_or(MAX_DELAY, |rtt| rtt.clamp(MIN_DELAY, MAX_DELAY));
        let delay = self.delay.min(bound.max(MIN_DELAY));
        match self.timer {
            // The timer expires soon in any case.
            Some(at) if at <= now + delay / 4 => self.need = Need::Now,
            Some(at) if at <= now + delay => {}
            _ => self.timer = Some(now + delay),
        }
    }

    /// Handles a read of the application. `drained` is true where the buffer is empty now.
    pub(super) fn on_read(&mut self, unacknowledged: u64, drained: bool) {
        if self.need != Need::Later || !self.linux {
            return;
        }
        let last_for_now = self.pushed && !self.pingpong && drained;
        if unacknowledged > self.segment_size || last_for_now {
            self.need = Need::Now;
        }
    }

    /// Handles the timers that are due, and returns whether an ACK became due.
    pub(super) fn handle_timeout(&mut self, now: Instant, timeout: Duration) -> bool {
        let late = |timer: Option<Instant>| timer.is_some_and(|at| at <= now);
        if late(self.compression.timer) {
            self.need = Need::Now;
        }
        if !late(self.timer) {
            return false;
        }
        self.timer = None;
        if self.linux {
            self.inflate(timeout);
        }
        let due = self.need != Need::Nothing;
        if due {
            self.need = Need::Now;
        }
        due
    }

    /// Adapts the delay after it has expired. Either the delay was too short, or this end sent no
    /// data that an ACK could travel with.
    fn inflate(&mut self, timeout: Duration) {
        if self.pingpong {
            self.pingpong = false;
            self.delay = MIN_DELAY;
        } else {
            self.delay = (self.delay * 2).min(timeout);
        }
    }

    /// Cancels all ACKs, for a connection that has ended.
    pub(super) fn cancel(&mut self) {
        self.on_sent();
        self.quick = 0;
    }

    /// Records that a segment with an acknowledgement has left. Returns the number of delayed ACKs
    /// that it replaced.
    pub(super) fn on_sent(&mut self) -> u32 {
        if matches!(self.need, Need::Later | Need::Now) && self.quick > 0 {
            self.quick -= 1;
            if self.quick == 0 {
                self.delay = MIN_DELAY;
            }
        }
        self.need = Need::Nothing;
        self.pushed = false;
        self.segments = 0;
        self.timer = None;
        self.compression.on_sent()
    }
}

// The compression of ACKs for data that arrived out of order (Linux since 4.18, `compressed_ack`).

/// The number of ACKs that leave at once. It is enough to make the sender retransmit.
const UNCOMPRESSED: u8 = 3;
/// The most ACKs that are held back before one leaves.
const MAX_HELD: u32 = 44;
/// The longest delay. Where a twentieth of the RTT is shorter, that is the delay.
const MAX_COMPRESSION_DELAY: Duration = Duration::from_millis(1);

/// The ACKs that a receiver delays.
#[derive(Clone, Debug, Default)]
pub(super) struct Compression {
    held: u32,
    timer: Option<Instant>,
    /// ACKs that left at once since `next` moved.
    sent: u8,
    next: u64,
}

impl Compression {
    /// Decides whether an ACK leaves now for data that arrived while `next` is missing.
    pub(super) fn on_gap(&mut self, now: Instant, next: u64, rtt: Option<Duration>) -> bool {
        if self.next != next {
            self.next = next;
            self.sent = 0;
        }
        if self.sent < UNCOMPRESSED {
            self.sent += 1;
            return true;
        }
        if self.held >= MAX_HELD {
            return true;
        }
        self.held += 1;
        let delay = rtt.map_or(MAX_COMPRESSION_DELAY, |rtt| (rtt / 20).min(MAX_COMPRESSION_DELAY));
        self.timer.get_or_insert(now + delay);
        false
    }

    /// Records that an ACK has left. Returns the number of delayed ACKs that it replaced.
    pub(super) fn on_sent(&mut self) -> u32 {
        self.timer = None;
        std::mem::take(&mut self.held).saturating_sub(1)
    }
}

#[cfg(test)]
mod compression_tests {
    use super::*;

    const RTT: Option<Duration> = Some(Duration::from_millis(4));

    #[test]
    fn three_leave_at_once_and_then_one_per_twentieth_of_the_rtt() {
        let mut acks = Compression::default();
        let now = Instant::ZERO + Duration::from_secs(1);
        let at_once: Vec<bool> = (0..6).map(|_| acks.on_gap(now, 100, RTT)).collect();
        assert_eq!(at_once, [true, true, true, false, false, false]);
        assert_eq!(acks.timer, Some(now + Duration::from_micros(200)));
        assert_eq!((acks.on_sent(), acks.timer), (2, None));
    }

    #[test]
    fn at_most_44_acks_are_held_back_for_at_most_1_ms() {
        let mut acks = Compression::default();
        let rtt = Some(Duration::from_secs(1));
        let held = (0..100).position(|nth| acks.on_gap(Instant::ZERO, 100, rtt) && nth >= 3);
        assert_eq!(held, Some(47));
        assert_eq!(acks.timer, Some(Instant::ZERO + MAX_COMPRESSION_DELAY));
    }

    #[test]
    fn they_are_counted_anew_when_part_of_the_gap_is_filled() {
        let mut acks = Compression::default();
        for _ in 0..3 {
            acks.on_gap(Instant::ZERO, 100, RTT);
        }
        assert!(!acks.on_gap(Instant::ZERO, 100, RTT));
        assert!(acks.on_gap(Instant::ZERO, 200, RTT));
    }
}
