//! Loss detection: by time and with a probe of the tail (RACK-TLP, RFC 8985), or by counting: for the classic sender by
//! RFC 6675, for Linux 3.4 from the highest segment that has arrived (FACK, Mathis and Mahdavi, SIGCOMM 1996).

use std::collections::VecDeque;

use wakeai_connection::{CongestionState, Signal};
use wakeai_units::{Duration, Instant};

use super::acknowledgement::Ack;
use super::rtt::RttEstimator;
use super::scoreboard::{Record, Scoreboard};
use super::timers::{SLACK, TimerKind};
use super::{Forced, Retransmission, Sender};
use crate::config::{INITIAL_TIMEOUT, MIN_TIMEOUT, TcpConfig};
use crate::segment::{SackBlocks, Segment};

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
#[derive(Clone, Debug, Default)]
pub(super) struct Rack {
    /// Whether losses are detected by time (RFC 8985) instead of by counting (RFC 6675).
    pub(super) enabled: bool,
    /// The latest transmission that was delivered.
    newest: Transmission,
    /// The RTT of the transmission `newest`.
    pub(super) rtt: Duration,
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
            enabled: config.is_modern(),
            reordering: DUPLICATE_THRESHOLD,
            steps: 1,
            ..Self::default()
        }
    }

    /// Records that a segment is acknowledged, selectively or not (step 2). An acknowledgement that
    /// comes faster than the path allows answers an earlier transmission of the segment, and is
    /// ignored.
    pub(super) fn deliver(&mut self, now: Instant, segment: u64, record: Record, least_us: u32) {
        let rtt = now.saturating_since(record.sent_at);
        if record.sent_again && rtt < Duration::from_micros(u64::from(least_us)) {
            return;
        }
        self.advanced = true;
        self.rtt = rtt;
        self.newest = self.newest.max((record.sent_at, segment));
    }

    /// Records that a segment left again.
    pub(super) fn resend(&mut self, now: Instant, segment: u64) {
        if self.enabled {
            let last = self.retransmissions.back();
            debug_assert!(last.is_none_or(|(at, _)| *at <= now), "they leave in order");
            self.retransmissions.push_back((now, segment));
        }
    }

    /// The reordering window: the time by which a segment may arrive later than its successors
    /// (step 4). It is zero as long as no reordering was seen and three duplicates indicate a loss.
    fn window(&self, state: CongestionState, sacked_out: u32, rtt: &RttEstimator) -> Duration {
        let is_evident = state >= CongestionState::Recovery || sacked_out >= self.reordering;
        if !self.reordering_seen && is_evident {
            return Duration::ZERO;
        }
        let window_us = (rtt.least_us() / 4).saturating_mul(self.steps);
        Duration::from_micros(u64::from(window_us.min(rtt.smoothed_us())))
    }

    /// Marks as lost the segments that were sent longer than `window` before the newest delivered
    /// transmission (step 5). Returns whether other segments may be lost soon.
    fn judge(&mut self, now: Instant, window: Duration, board: &mut Scoreboard) -> bool {
        let mut undecided = false;
        self.judged = self.judged.max(board.first);
        while self.judged < board.next() {
            let record = board.record(self.judged);
            if !(record.sacked || record.lost || record.sent_again) {
                match self.is_lost(now, window, (record.sent_at, self.judged)) {
                    Some(true) => board.lose(self.judged),
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
                    Some(true) => board.lose(segment),
                    verdict => {
                        undecided |= verdict.is_some();
                        break;
                    }
                }
            }
            self.retransmissions.pop_front();
        }
        undecided
    }

    /// Whether a retransmission is still out: it is the last transmission of its segment, and the
    /// segment is neither acknowledged nor lost.
    fn is_out(board: &Scoreboard, sent_at: Instant, segment: u64) -> bool {
        if !board.is_out(segment) {
            return false;
        }
        let record = board.record(segment);
        let gone = record.lost && !record.retransmitted;
        record.sent_at == sent_at && !record.sacked && !gone
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
        debug_assert!((1..=MAX_STEPS).contains(&self.steps) && self.persistence <= PERSISTENCE);
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
        debug_assert!((DUPLICATE_THRESHOLD..=MAX_REORDERING).contains(&self.reordering));
    }
}

/// A segment is lost when this many segments above it have arrived (RFC 6675's `DupThresh`).
const THRESHOLD: usize = 3;

/// The state of the loss detection by counting: the highest segments that were selectively acknowledged, and the
/// segment up to which losses are judged.
#[derive(Clone, Debug, Default)]
pub(super) struct Counting {
    /// Whether every segment counts as lost that is [`THRESHOLD`] or more below the highest one that arrived, whatever
    /// has arrived between (FACK), as long as no reordering was seen.
    forward: bool,
    /// FACK: the retransmissions that are out, each with the number that the next new segment then had.
    repeated: VecDeque<(u64, u64)>,
    /// The numbers of these segments plus one, the highest first; 0 where there is none.
    highest: [u64; THRESHOLD],
    judged: u64,
    /// Segments below this number are no longer retransmitted on suspicion.
    suspected: u64,
    /// The end of the recovery in which the rescue retransmission was sent.
    rescued: u64,
}

impl Counting {
    pub(super) fn new(config: &TcpConfig) -> Self {
        Self { forward: config.is_linux34(), ..Self::default() }
    }

    /// Records that a segment left again, when the next new segment had the number `next`.
    pub(super) fn resend(&mut self, segment: u64, next: u64) {
        if self.forward {
            self.repeated.push_back((next, segment));
        }
    }

    /// The retransmissions that are lost: of the segments that left after them, one that is not the next has arrived.
    /// Returns their number.
    fn judge_repeated(&mut self, board: &mut Scoreboard) -> u64 {
        let mut lost = 0;
        while let Some(&(next, segment)) = self.repeated.front()
            && next + 1 < board.sacked_end()
        {
            self.repeated.pop_front();
            if board.is_out(segment) {
                let record = board.record(segment);
                if record.retransmitted && !record.sacked {
                    board.lose(segment);
                    lost += 1;
                }
            }
        }
        lost
    }

    /// Counts a segment that is selectively acknowledged for the first time.
    pub(super) fn sack(&mut self, segment: u64) {
        let mut value = segment + 1;
        for place in &mut self.highest {
            if value > *place {
                std::mem::swap(place, &mut value);
            }
        }
        debug_assert!(self.highest.is_sorted_by(|higher, lower| higher >= lower));
    }

    /// Applies RFC 6675's `IsLost` to all segments that are out: a segment is lost when [`THRESHOLD`]
    /// segments above it have arrived. FACK applies its own rule while the path does not reorder.
    fn judge(&mut self, board: &mut Scoreboard, reorders: bool) {
        let end = if self.forward && !reorders {
            self.highest[0].saturating_sub(THRESHOLD as u64)
        } else {
            self.highest[THRESHOLD - 1].saturating_sub(1)
        };
        let mut from = self.judged.max(board.first);
        while let Some(segment) = board.next_unsacked(from, end) {
            if !board.record(segment).lost {
                board.lose(segment);
            }
            from = segment + 1;
        }
        self.judged = self.judged.max(end);
    }

    /// Rule 3 of `NextSeg`: the first segment that was sent once and has not arrived, while a later segment has
    /// arrived.
    fn next_suspect(&mut self, board: &Scoreboard) -> Option<u64> {
        let end = board.sacked_end();
        let mut from = self.suspected.max(board.first);
        while let Some(segment) = board.next_unsacked(from, end) {
            if !board.record(segment).sent_again {
                self.suspected = segment;
                return Some(segment);
            }
            from = segment + 1;
        }
        self.suspected = self.suspected.max(end);
        None
    }

    /// Rule 4: the last segment, once per recovery.
    fn next_rescue(&self, board: &Scoreboard, recovery_point: u64) -> Option<u64> {
        if self.rescued == recovery_point || board.out() == 0 {
            return None;
        }
        let last = board.next() - 1;
        let record = board.record(last);
        (!record.sacked && !record.sent_again).then_some(last)
    }
}

/// The tail loss probe that is out (RFC 8985 section 7.2).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TailLossProbe {
    /// `snd_nxt` when the unanswered probe was sent.
    pub(super) end: Option<u64>,
    /// Whether that probe was a retransmission.
    pub(super) repeats: bool,
}

/// Judging what is out.
impl Sender {
    /// Judges the segments that are out after an acknowledgement.
    pub(super) fn find_losses(&mut self, now: Instant, ack: &mut Ack) {
        if self.board.out() == 0 {
            return;
        }
        if !self.rack.enabled {
            self.counting.judge(&mut self.board, self.rack.reordering_seen);
            if self.state == CongestionState::Recovery && !self.rack.reordering_seen {
                let lost = self.counting.judge_repeated(&mut self.board);
                ack.retransmission_lost |= lost > 0;
                self.counters.lost_retransmits += lost;
            }
        } else if std::mem::take(&mut self.rack.advanced) {
            let retransmitted = self.board.retransmitted_out;
            ack.sets_timer &= !self.judge_by_time(now);
            if self.board.retransmitted_out < retransmitted {
                ack.retransmission_lost = true;
                self.counters.lost_retransmits +=
                    u64::from(retransmitted - self.board.retransmitted_out);
            }
        }
    }

    /// Judges by time. Where segments may be lost soon (step 5), it arms the reordering timer, and returns `true`.
    fn judge_by_time(&mut self, now: Instant) -> bool {
        let window = self.rack.window(self.state, self.board.sacked_out, &self.rtt);
        let undecided = self.rack.judge(now, window, &mut self.board);
        if undecided {
            let last = self.rack.newest.0 + self.rack.rtt + window;
            self.timer.set(TimerKind::Reordering, last + SLACK);
        }
        undecided
    }

    /// Handles the expiry of the reordering timer.
    pub(super) fn handle_reordering_timeout(&mut self, now: Instant) {
        self.timer.clear();
        let lost = self.board.lost;
        self.judge_by_time(now);
        if self.board.lost > lost {
            if self.state != CongestionState::Recovery {
                self.enter_recovery();
            }
            self.output.retransmission = Retransmission::Lost;
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

    /// Handles the expiry of the retransmission timer: all segments count as lost, except those that RACK finds too
    /// recent.
    pub(super) fn lose_all(&mut self, now: Instant) {
        let first = self.board.first;
        if self.board.out() > 0 && self.board.record(first).sacked {
            // The receiver discarded data that it had selectively acknowledged (RFC 2018 section
            // 8).
            self.board.unsack_all();
            self.last_sacks = SackBlocks::NONE;
            self.counting = Counting::new(&self.config);
        }
        let mut from = first;
        while let Some(segment) = self.board.next_unsacked(from, self.board.next()) {
            let sent_at = self.board.record(segment).sent_at;
            let is_recent = self.rack.enabled && sent_at + self.rack.rtt > now;
            if segment == first || !is_recent {
                self.board.lose(segment);
            }
            from = segment + 1;
        }
    }

    /// Retransmits a segment that may be lost, where a recovery has neither a lost segment to
    /// retransmit nor new data to send. These are rules 3 and 4 of RFC 6675's `NextSeg`; Linux 3.4 has
    /// the first of the two.
    pub(super) fn send_supposed(&mut self, now: Instant) -> Option<Segment> {
        let is_free =
            self.state == CongestionState::Recovery && self.stream.next_piece(self.nxt).is_none();
        if self.rack.enabled || !is_free || self.board.next_waiting().is_some() {
            return None;
        }
        let suspect = self.counting.next_suspect(&self.board);
        let rescue = || self.counting.next_rescue(&self.board, self.episode.high);
        let segment = suspect.or_else(|| if self.config.is_linux34() { None } else { rescue() })?;
        if !self.may_send_again(now, segment) {
            return None;
        }
        if suspect.is_some() {
            self.counting.suspected = segment + 1;
        } else {
            self.counting.rescued = self.episode.high;
        }
        Some(self.send_again(now, segment, false))
    }
}

/// Probing for the loss of a flight's tail (RFC 8985 section 7).
impl Sender {
    /// Arms the tail loss timer where a probe may be sent, and returns whether it did. The timer
    /// expires in two RTTs. For a single segment it takes longer, because the acknowledgement of a
    /// single segment may be delayed. It never expires later than the retransmission timeout. With
    /// `anew` that timeout counts from now, and otherwise from the transmission of the oldest
    /// segment.
    pub(super) fn schedule_probe(&mut self, now: Instant, anew: bool) -> bool {
        let may_probe = matches!(self.state, CongestionState::Open | CongestionState::Cwr);
        if !self.rack.enabled || !may_probe || self.board.out() == 0 {
            return false;
        }
        let smoothed = Duration::from_micros(u64::from(self.rtt.smoothed_us()));
        let patience = if smoothed.is_zero() {
            INITIAL_TIMEOUT
        } else if self.board.out() == 1 {
            smoothed * 2 + MIN_TIMEOUT
        } else {
            smoothed * 2 + SLACK
        };
        let timeout_at = if anew { now + self.rto.timeout } else { self.head_times_out_at() };
        let mut at = now + patience;
        if timeout_at > now {
            at = at.min(timeout_at);
        }
        self.timer.set(TimerKind::TailLoss, at);
        true
    }

    /// Sends a probe (new data or the last segment) that makes the peer acknowledge the end of what
    /// was sent. Only one probe is out at a time.
    pub(super) fn handle_tail_loss_timeout(&mut self, now: Instant) {
        if self.tail_probe.end.is_none() {
            self.output.forced = Some(Forced::TailLossProbe);
        } else {
            self.rearm_timeout(now);
        }
    }

    /// Notes that a probe was sent.
    pub(super) fn note_probe(&mut self, now: Instant, repeats: bool) {
        self.counters.tail_loss_probes += 1;
        self.tail_probe.repeats = repeats;
        self.tail_probe.end = Some(self.nxt);
        self.timer.clear();
        self.rearm_timeout(now);
    }

    /// Handles an acknowledgement of the probe (RFC 8985 section 7.4). Where the probe has repaired
    /// a loss, the window is reduced.
    pub(super) fn judge_probe(&mut self, acknowledged: u64, ack: &Ack) {
        let Some(end) = self.tail_probe.end else { return };
        if acknowledged < end {
            return;
        }
        if !self.tail_probe.repeats || ack.dsack_of_probe {
            self.tail_probe.end = None;
        } else if acknowledged > end {
            self.counters.tail_losses += 1;
            self.begin_reduction();
            self.change_state_upon(CongestionState::Cwr, Some(Signal::TailLossProbe));
            self.keep_open();
        } else if ack.is_duplicate() && !ack.sacked {
            self.tail_probe.end = None; // both copies arrived
        }
    }
}
