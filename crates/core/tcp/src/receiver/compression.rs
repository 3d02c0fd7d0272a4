//! Delayed ACKs for data that arrived out of order (Linux since 4.18, `compressed_ack`).

use wakeai_units::{Duration, Instant};

/// The number of ACKs that leave at once. It is enough to make the sender retransmit.
const UNCOMPRESSED: u8 = 3;
/// The most ACKs that are held back before one leaves.
const MAX_HELD: u32 = 44;
/// The longest delay. Where a twentieth of the RTT is shorter, that is the delay.
const MAX_DELAY: Duration = Duration::from_millis(1);

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
    /// Whether any ACK is delayed.
    pub(super) fn is_holding(&self) -> bool {
        self.held > 0
    }

    /// The time at which an ACK must leave.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.timer
    }

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
        let delay = rtt.map_or(MAX_DELAY, |rtt| (rtt / 20).min(MAX_DELAY));
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
mod tests {
    use super::*;

    const RTT: Option<Duration> = Some(Duration::from_millis(4));

    #[test]
    fn three_leave_at_once_and_then_one_per_twentieth_of_the_rtt() {
        let mut acks = Compression::default();
        let now = Instant::ZERO + Duration::from_secs(1);
        let at_once: Vec<bool> = (0..6).map(|_| acks.on_gap(now, 100, RTT)).collect();
        assert_eq!(at_once, [true, true, true, false, false, false]);
        assert_eq!(acks.next_timeout(), Some(now + Duration::from_micros(200)));
        assert_eq!((acks.on_sent(), acks.next_timeout()), (2, None));
    }

    #[test]
    fn at_most_44_acks_are_held_back_for_at_most_1_ms() {
        let mut acks = Compression::default();
        let rtt = Some(Duration::from_secs(1));
        let held = (0..100).position(|nth| acks.on_gap(Instant::ZERO, 100, rtt) && nth >= 3);
        assert_eq!(held, Some(47));
        assert_eq!(acks.next_timeout(), Some(Instant::ZERO + MAX_DELAY));
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
