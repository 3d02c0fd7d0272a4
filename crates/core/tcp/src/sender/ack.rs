//! Handles an acknowledgement, with the same order of steps as the kernel.

use wakeai_connection::CongestionState;
use wakeai_units::Instant;

use super::Sender;
use super::stamp;
use super::transmit::Retransmission;
use crate::segment::Segment;

/// The findings from one acknowledgement.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub(super) struct Ack {
    /// The acknowledgement advances `snd_una`.
    pub(super) advanced: bool,
    /// The acknowledgement covers at least one whole segment.
    pub(super) acked: bool,
    pub(super) window_changed: bool,
    /// It selectively acknowledges segments that were not acknowledged before.
    pub(super) sacked: bool,
    /// It acknowledges a segment that was sent once, before the present recovery began.
    pub(super) original_delivered: bool,
    /// It acknowledges a segment that was sent more than once.
    pub(super) retransmission_acked: bool,
    pub(super) dsack: bool,
    pub(super) dsack_of_probe: bool,
    /// A D-SACK shows that the reordering window was too narrow.
    pub(super) too_narrow: bool,
    /// It shows that a retransmission was lost.
    pub(super) retransmission_lost: bool,
    /// It restarts the timer.
    pub(super) sets_timer: bool,
    /// The first segment that arrived after later segments, as far as this acknowledgement shows.
    pub(super) reordered: Option<u64>,
    /// The send times of the oldest and of the newest acknowledged segment that was sent once.
    acked_sent: Option<(Instant, Instant)>,
    /// The same send times for the selectively acknowledged segments.
    sacked_sent: Option<(Instant, Instant)>,
}

impl Ack {
    pub(super) fn see_reordered(&mut self, segment: u64) {
        self.reordered = Some(self.reordered.map_or(segment, |first| first.min(segment)));
    }

    pub(super) fn sample_sack(&mut self, sent_at: Instant) {
        let (oldest, newest) = self.sacked_sent.unwrap_or((sent_at, sent_at));
        self.sacked_sent = Some((oldest.min(sent_at), newest.max(sent_at)));
    }

    fn sample(&mut self, sent_at: Instant) {
        let (oldest, newest) = self.acked_sent.unwrap_or((sent_at, sent_at));
        self.acked_sent = Some((oldest, newest.max(sent_at)));
    }

    /// Whether it acknowledges nothing new and leaves the window unchanged. Such an acknowledgement
    /// only shows that a segment arrived.
    pub(super) fn is_duplicate(&self) -> bool {
        !(self.advanced || self.acked || self.window_changed || self.dsack)
    }

    /// Whether it may show a loss or reordering.
    fn is_dubious(&self, state: CongestionState) -> bool {
        state != CongestionState::Open
            || self.sacked
            || self.dsack
            || !(self.acked || self.advanced || self.window_changed)
    }
}

impl Sender {
    pub(super) fn handle_ack(&mut self, now: Instant, segment: &Segment) {
        if segment.ack > self.nxt {
            return; // acknowledges what was never sent
        }
        let mut ack = Ack { advanced: segment.ack > self.una, ..Ack::default() };
        if segment.ack < self.una {
            // A later acknowledgement has overtaken this one, so only its SACK blocks may be new.
            if !segment.sack.is_empty() {
                self.take_sacks(now, segment, &mut ack);
                self.alert(now, &mut ack);
            }
            return;
        }
        let (delivered, lost, out) = (self.delivered, self.lost, self.board.out());
        ack.window_changed = self.peer_window.update(ack.advanced, segment.window);
        if ack.advanced {
            self.timeouts_in_a_row = 0;
            self.una = segment.ack;
        }
        self.timer.window_probes = 0;
        let sacked_end = self.board.sacked_end();
        self.output.retransmission = Retransmission::Nothing;
        self.take_sacks(now, segment, &mut ack);
        if out == 0 {
            if ack.dsack {
                self.alert(now, &mut ack);
            }
            self.restart_persist(now);
            return;
        }
        self.remove_acknowledged(now, sacked_end, &mut ack);
        let rtt_us = self.sample_rtt(now, &mut ack);
        if ack.acked && self.config.forgets_backoff {
            self.reset_timeout();
        }
        self.rack.adapt(ack.too_narrow, self.una, self.nxt);
        self.judge_probe(segment.ack, &ack);
        if ack.is_dubious(self.state) {
            self.alert(now, &mut ack);
        }
        if ack.sets_timer && !self.is_out_of_patience() {
            self.set_timer(now);
        }
        self.publish();
        let (delivered, lost) = (self.delivered - delivered, self.lost - lost);
        self.algorithm.on_ack(delivered as u32, lost as u32, rtt_us);
        if self.config.autotuned_buffers {
            let window = self.algorithm.snd_cwnd.max(self.config.initial_window);
            self.stream.grow_buffer(window.max(self.rack.reordering + 1));
        }
    }

    /// Whether this recovery has restarted the timeout already and must not do so again.
    fn is_out_of_patience(&mut self) -> bool {
        self.config.impatient
            && self.state == CongestionState::Recovery
            && self.board.out() > 0
            && std::mem::replace(&mut self.episode.restarted_timer, true)
    }

    fn remove_acknowledged(&mut self, now: Instant, sacked_end: u64, ack: &mut Ack) {
        let mut overtaken = None;
        let least_us = self.rtt.least_us();
        while self.board.first() < self.board.next() {
            let number = self.board.first();
            let end = self.stream.piece(number).end();
            if end > self.una {
                break;
            }
            let record = self.board.acknowledge();
            self.host_queue.note_left(record.packet);
            let marks = record.marks;
            ack.acked = true;
            if marks.sent_again() {
                ack.retransmission_acked = true;
            } else if !marks.sacked() {
                ack.sample(record.sent_at);
                ack.original_delivered |= end <= self.episode.high;
                overtaken = overtaken.or(Some(number));
            }
            if !marks.sacked() {
                self.delivered += 1;
                if !(marks.sent_again() && self.is_answer_to_earlier(record.sent_at)) {
                    self.rack.deliver(now, number, record, least_us);
                }
            }
        }
        ack.sets_timer |= ack.acked;
        if let Some(number) = overtaken
            && number < sacked_end
        {
            self.rack.see_reordering(sacked_end - number);
        }
    }

    /// Takes the RTT sample that the acknowledgement gives (RFC 6298 section 3, Karn's algorithm).
    /// Where all acknowledged segments were sent more than once, the timestamp gives the sample
    /// (RFC 7323 section 4). The congestion control gets the RTT of the newest segment.
    fn sample_rtt(&mut self, now: Instant, ack: &mut Ack) -> Option<u32> {
        let since = |at: Instant| (now.saturating_since(at).as_micros()).min(1 << 28) as u32;
        let exact = ack.acked_sent.filter(|_| !ack.retransmission_acked);
        let newest = ack.sacked_sent.or(exact).map(|(_, newest)| since(newest));
        let oldest = exact.or(ack.sacked_sent).map(|(oldest, _)| since(oldest));
        let (oldest, newest) = match (oldest, newest) {
            (Some(oldest), Some(newest)) if !self.config.rtt_by_timestamps => (oldest, newest),
            _ if self.config.forgets_backoff && ack.retransmission_acked => return None,
            _ if ack.acked && self.echoed != 0 => {
                let echoed_us = self.echoed_rtt_us(now)?;
                (echoed_us, echoed_us)
            }
            _ => return None,
        };
        self.rtt.sample(now, oldest, newest, self.una, self.nxt);
        self.reset_timeout();
        if let Some((sent_at, _)) = ack.sacked_sent
            && self.board.out() > 0
        {
            // The timer restarts where the selectively acknowledged segments were sent before the
            // last transmission of the oldest outstanding segment. Segments that were sent later
            // must not restart it, or a lost retransmission would never time out.
            ack.sets_timer |= self.config.restart_on_retransmission
                && sent_at < self.board.record(self.board.first()).sent_at;
        }
        Some(newest)
    }

    /// The RTT by the echoed timestamp, in whole milliseconds and at least one.
    pub(super) fn echoed_rtt_us(&self, now: Instant) -> Option<u32> {
        let elapsed_ms = stamp(now).wrapping_sub(self.echoed);
        (elapsed_ms < 1 << 18).then_some(elapsed_ms.max(1) * 1_000)
    }

    /// Resets the timeout to the present RTT estimate, without backoff.
    pub(super) fn reset_timeout(&mut self) {
        self.timeout = self.rtt.timeout().unwrap_or(self.config.initial_timeout);
        let sock = &mut *self.algorithm;
        sock.srtt_us = self.rtt.smoothed_us_by_8();
        sock.rttvar_us = self.rtt.variation_us();
    }
}
