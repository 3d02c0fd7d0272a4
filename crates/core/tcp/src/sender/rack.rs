//! RACK: losses found by time (RFC 8985 section 6).

use std::collections::VecDeque;

use wakeai_connection::CongestionState;
use wakeai_units::{Duration, Instant};

use super::Sender;
use super::scoreboard::Record;
use super::scoreboard::Scoreboard;
use super::timers::{SLACK, TimerKind};
use crate::config::TcpConfig;

/// The number of duplicate acknowledgements that indicate a loss while no reordering was seen (RFC
/// 5681's threshold).
const DUPLICATE_THRESHOLD: u32 = 3;
/// The largest degree of reordering that is assumed (Linux's `tcp_max_reordering`).
const MAX_REORDERING: u32 = 300;
/// The number of recoveries for which a widened reordering window lasts (RFC 8985 section 6.2, step
/// 4).
const PERSISTENCE: u32 = 16;
/// The widest reordering window, in quarters of the minimum RTT.
const MAX_STEPS: u32 = 255;

/// A transmission: the time at which it left, and its segment. Transmissions of the same time are
/// ordered by the number of the segment.
type Transmission = (Instant, u64);

/// The state that RFC 8985 keeps per connection.
///
/// Segments are judged in the order in which they were sent. First transmissions are sent in the
/// order of their numbers, so a single number says which of them are judged. Retransmissions wait
/// in a queue of their own. Each transmission is judged once, whatever the size of the reordering
/// window.
#[derive(Clone, Debug)]
pub(super) struct Rack {
    enabled: bool,
    /// The latest transmission that was delivered.
    newest: Transmission,
    /// The RTT of the transmission `newest`.
    rtt: Duration,
    /// Whether a segment was delivered since the last judgement.
    pub(super) advanced: bool,
    /// The degree to which the path reorders, in segments; at least [`DUPLICATE_THRESHOLD`].
    pub(super) reordering: u32,
    pub(super) reordering_seen: bool,
    /// The reordering window, in quarters of the minimum RTT.
    steps: u32,
    /// Recoveries until `steps` is 1 again.
    pub(super) persistence: u32,
    /// The end of the round in which the window was widened.
    widened_until: Option<u64>,
    /// First transmissions below this number are judged.
    judged: u64,
    retransmissions: VecDeque<Transmission>,
}

impl Rack {
    pub(super) fn new(config: &TcpConfig) -> Self {
        Self {
            enabled: config.has_rack(),
            newest: (Instant::ZERO, 0),
            rtt: Duration::ZERO,
            advanced: false,
            reordering: DUPLICATE_THRESHOLD,
            reordering_seen: false,
            steps: 1,
            persistence: 0,
            widened_until: None,
            judged: 0,
            retransmissions: VecDeque::new(),
        }
    }

    pub(super) fn is_enabled(&self) -> bool {
        self.enabled
    }

    /// The RTT of the latest of the delivered transmissions.
    pub(super) fn rtt(&self) -> Duration {
        self.rtt
    }

    /// Records that a segment is acknowledged, selectively or not (step 2). An acknowledgement that
    /// comes faster than the path allows answers an earlier transmission of the segment, and is
    /// ignored.
    pub(super) fn deliver(&mut self, now: Instant, segment: u64, record: Record, least_us: u32) {
        let rtt = now.saturating_since(record.sent_at);
        if record.marks.sent_again() && rtt < Duration::from_micros(u64::from(least_us)) {
            return;
        }
        self.advanced = true;
        self.rtt = rtt;
        self.newest = self.newest.max((record.sent_at, segment));
    }

    /// Records that a segment left again.
    pub(super) fn resend(&mut self, now: Instant, segment: u64) {
        if self.enabled {
            self.retransmissions.push_back((now, segment));
        }
    }

    /// Marks as lost the segments that were sent longer than `window` before the newest delivered
    /// transmission (step 5). Returns the number of these segments, and whether other segments may
    /// be lost soon.
    fn judge(&mut self, now: Instant, window: Duration, board: &mut Scoreboard) -> (u32, bool) {
        let (mut lost, mut undecided) = (0, false);
        self.judged = self.judged.max(board.first());
        while self.judged < board.next() {
            let record = board.record(self.judged);
            let marks = record.marks;
            if !(marks.sacked() || marks.lost() || marks.sent_again()) {
                match self.is_lost(now, window, (record.sent_at, self.judged)) {
                    Some(true) => lost += u32::from(board.lose(self.judged)),
                    verdict => {
                        undecided = verdict.is_some();
                        break;
                    }
                }
            }
            self.judged += 1;
        }
        while let Some(&(sent_at, segment)) = self.retransmissions.front() {
            if Self::is_out(board, sent_at, segment) {
                match self.is_lost(now, window, (sent_at, segment)) {
                    Some(true) => lost += u32::from(board.lose(segment)),
                    verdict => {
                        undecided |= verdict.is_some();
                        break;
                    }
                }
            }
            self.retransmissions.pop_front();
        }
        (lost, undecided)
    }

    /// Whether a retransmission is still out: it is the last transmission of its segment, and the
    /// segment is neither acknowledged nor lost.
    fn is_out(board: &Scoreboard, sent_at: Instant, segment: u64) -> bool {
        if segment < board.first() || segment >= board.next() {
            return false;
        }
        let record = board.record(segment);
        let gone = record.marks.lost() && !record.marks.retransmitted();
        record.sent_at == sent_at && !record.marks.sacked() && !gone
    }

    /// Whether a transmission is lost by now; `None` where no later transmission was delivered.
    fn is_lost(&self, now: Instant, window: Duration, transmission: Transmission) -> Option<bool> {
        (transmission < self.newest).then(|| transmission.0 + self.rtt + window <= now)
    }

    /// Widens the reordering window, at most once per round, where a D-SACK showed that it was too
    /// narrow (step 4).
    pub(super) fn adapt(&mut self, too_narrow: bool, una: u64, nxt: u64) {
        if self.widened_until.is_some_and(|end| una >= end) {
            self.widened_until = None;
        }
        if too_narrow && self.widened_until.is_none() {
            self.widened_until = Some(nxt);
            self.steps = (self.steps + 1).min(MAX_STEPS);
            self.persistence = PERSISTENCE;
        } else if self.persistence == 0 {
            self.steps = 1;
        }
    }

    /// Counts a recovery that was not spurious.
    pub(super) fn count_recovery(&mut self) {
        self.persistence = self.persistence.saturating_sub(1);
    }

    /// Counts a recovery that was spurious.
    pub(super) fn discount_recovery(&mut self) {
        self.persistence = (self.persistence + 1).min(PERSISTENCE);
    }

    /// Handles a timeout. `sacked_out` segments had arrived out of order before it. Where these are
    /// at least as many as the reordering degree, a smaller degree would have shown the loss in
    /// time, so the degree is reset.
    pub(super) fn doubt_reordering(&mut self, sacked_out: u32) {
        if sacked_out >= self.reordering {
            self.reordering = DUPLICATE_THRESHOLD;
        }
    }

    /// Records that a segment arrived after a segment that was sent `distance` segments later (step
    /// 3).
    pub(super) fn see_reordering(&mut self, distance: u64) {
        let distance = u32::try_from(distance).unwrap_or(u32::MAX);
        self.reordering = self.reordering.max(distance.min(MAX_REORDERING));
        self.reordering_seen = true;
    }
}

impl Sender {
    /// The reordering window: the time by which a segment may arrive later than its successors
    /// (step 4). It is zero as long as no reordering was seen and three duplicates indicate a loss.
    fn reordering_window(&self) -> Duration {
        let rack = &self.rack;
        let evident =
            self.state >= CongestionState::Recovery || self.board.sacked_out() >= rack.reordering;
        if !rack.reordering_seen && evident {
            return Duration::ZERO;
        }
        let window_us = (self.rtt.least_us() / 4).saturating_mul(rack.steps);
        Duration::from_micros(u64::from(window_us.min(self.rtt.smoothed_us())))
    }

    /// Judges the segments that are out, and returns the number of newly lost ones. Where others
    /// may be lost soon (step 5), it arms the reordering timer. The second result says whether it
    /// did.
    pub(super) fn judge_by_time(&mut self, now: Instant) -> (u32, bool) {
        let window = self.reordering_window();
        let (lost, undecided) = self.rack.judge(now, window, &mut self.board);
        self.lost += u64::from(lost);
        if undecided {
            let last = self.rack.newest.0 + self.rack.rtt + window;
            self.timer.set(TimerKind::Reordering, last + SLACK);
        }
        (lost, undecided)
    }

    /// Handles the expiry of the reordering timer.
    pub(super) fn handle_reordering_timeout(&mut self, now: Instant) {
        self.timer.clear();
        if self.judge_by_time(now).0 > 0 {
            if self.state != CongestionState::Recovery {
                self.enter_recovery();
            }
            self.output.retransmission = super::transmit::Retransmission::Lost;
        }
        if !self.timer.is(TimerKind::Reordering) {
            self.rearm_timeout(now);
        }
    }

    /// Records the reordering that a segment shows by arriving after later segments.
    pub(super) fn check_reordering(&mut self, segment: u64) {
        let end = self.board.sacked_end();
        if segment < end {
            self.rack.see_reordering(end - segment);
        }
    }
}
