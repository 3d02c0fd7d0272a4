//! Samples of the delivery rate (draft-cheng-iccrg-delivery-rate-estimation), for algorithms that need them.

use std::collections::VecDeque;

use wakeai_algorithms::RateSample;
use wakeai_units::{Duration, Instant};

use super::Sender;

/// What was known when a segment was sent last.
#[derive(Clone, Copy, Debug)]
struct Mark {
    sent_at: Instant,
    /// The draft's `P.first_sent_time`.
    first_sent_at: Instant,
    /// The draft's `P.delivered_time`.
    delivered_at: Instant,
    /// The draft's `P.delivered`: the segments delivered until then.
    delivered: u64,
    is_app_limited: bool,
}

/// The state of the estimation.
#[derive(Clone, Debug, Default)]
pub(super) struct DeliveryRate {
    /// Whether the algorithm needs samples. If not, nothing is recorded.
    pub(super) enabled: bool,
    /// The marks of the segments that are out, in their order.
    marks: VecDeque<Mark>,
    /// The time of the last delivery; the draft's `C.delivered_time`.
    pub(super) delivered_at: Instant,
    /// When the segment that was delivered last was sent; the draft's `C.first_sent_time`.
    first_sent_at: Instant,
    /// The count of delivered segments up to which the application limits the sender.
    pub(super) app_limited: Option<u64>,
    /// Of the segments that the present ACK delivers, the one that was sent last, by its mark and number.
    newest: Option<(Mark, u64)>,
}

impl DeliveryRate {
    pub(super) fn new(enabled: bool) -> Self {
        Self { enabled, ..Self::default() }
    }

    /// Records a transmission: of a new segment, or again of the segment `again`, counted from the oldest that is out.
    pub(super) fn send(&mut self, now: Instant, again: Option<u64>, delivered: u64) {
        if !self.enabled {
            return;
        }
        if self.marks.is_empty() {
            (self.first_sent_at, self.delivered_at) = (now, now);
        }
        let mark = Mark {
            sent_at: now,
            first_sent_at: self.first_sent_at,
            delivered_at: self.delivered_at,
            delivered,
            is_app_limited: self.app_limited.is_some(),
        };
        match again {
            None => self.marks.push_back(mark),
            Some(index) => self.marks[index as usize] = mark,
        }
    }

    /// Takes back the last new segment, because it did not leave the host.
    pub(super) fn unsend(&mut self) {
        self.marks.pop_back();
    }

    /// Begins an acknowledgement.
    pub(super) fn begin(&mut self) {
        self.newest = None;
    }

    /// Records that a segment is selectively acknowledged; `index` counts from the oldest that is out.
    pub(super) fn sack(&mut self, index: u64, number: u64) {
        if self.enabled {
            self.deliver(self.marks[index as usize], number);
        }
    }

    /// Records that the oldest segment is acknowledged. Where it was selectively acknowledged before, it is not
    /// `delivered` now.
    pub(super) fn acknowledge(&mut self, number: u64, delivered: bool) {
        if let Some(mark) = self.marks.pop_front()
            && delivered
        {
            self.deliver(mark, number);
        }
    }

    fn deliver(&mut self, mark: Mark, number: u64) {
        let is_newer = |(newest, of): (Mark, u64)| (mark.sent_at, number) > (newest.sent_at, of);
        if self.newest.is_none_or(is_newer) {
            self.newest = Some((mark, number));
            self.first_sent_at = mark.sent_at;
        }
    }

    /// Adds the rate to the sample of an ACK, after which `delivered` segments are delivered in total.
    fn generate(&mut self, now: Instant, delivered: u64, least_us: u32, sample: &mut RateSample) {
        if self.app_limited.is_some_and(|until| delivered > until) {
            self.app_limited = None;
        }
        if sample.acked_sacked > 0 {
            self.delivered_at = now;
        }
        let Some((mark, _)) = self.newest else { return };
        sample.prior_delivered = mark.delivered as u32;
        sample.is_app_limited = u32::from(mark.is_app_limited);
        sample.delivered = (delivered - mark.delivered) as i32;
        let sending = mark.sent_at.saturating_since(mark.first_sent_at);
        let acknowledging = now.saturating_since(mark.delivered_at);
        let interval = sending.max(acknowledging);
        // Segments are not delivered faster than in the smallest RTT. A shorter interval comes from an ACK of a
        // segment that was taken for lost.
        if interval >= Duration::from_micros(u64::from(least_us)) {
            sample.interval_us = interval.as_micros().cast_signed();
        }
    }
}

impl Sender {
    /// Tells the algorithm of an acknowledgement, which delivered `acked` segments and showed `lost` losses.
    pub(super) fn tell_algorithm(
        &mut self,
        now: Instant,
        (acked, lost): (u64, u64),
        rtt_us: Option<u32>,
        prior_in_flight: u32,
    ) {
        let mut sample = RateSample::without_rate(acked as u32, lost as u32, rtt_us);
        if self.rate.enabled {
            sample.prior_in_flight = prior_in_flight;
            let least_us = self.rtt.least_us();
            self.rate.generate(now, self.board.delivered, least_us, &mut sample);
        }
        self.publish();
        self.algorithm.on_rate_sample(&sample);
    }

    /// Notes, before the application writes, whether it limits the sender: less than a segment waits, the window has
    /// room, and lost segments have been sent again.
    pub(super) fn check_app_limited(&mut self) {
        let waits = self.written_end().saturating_sub(self.nxt);
        let in_flight = self.board.in_flight();
        if self.rate.enabled
            && waits < u64::from(self.config.mss)
            && in_flight < self.algorithm.snd_cwnd
            && self.board.lost_out <= self.board.retransmitted_out
        {
            self.rate.app_limited = Some(self.board.delivered + u64::from(in_flight));
        }
    }
}
