//! What an acknowledgement says, cumulatively (RFC 9293) and selectively (RFC 2018, RFC 2883), and the order of the
//! steps that handle it, which is the kernel's.

use wakeai_connection::CongestionState;
use wakeai_units::Instant;

use super::{Retransmission, Sender};
use crate::segment::{Segment, Timestamp};

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
        self.rate.begin();
        if segment.ack < self.una {
            // A later acknowledgement has overtaken this one, so only its SACK blocks may be new.
            if !segment.sack.is_empty() {
                self.take_sacks(now, segment, &mut ack);
                self.alert(now, &mut ack);
            }
            return;
        }
        let (delivered, lost, out) = (self.board.delivered, self.board.lost, self.board.out());
        let in_flight = self.board.in_flight();
        ack.window_changed = self.peer_window.update(ack.advanced, segment.window);
        if ack.advanced {
            self.rto.in_a_row = 0;
            self.una = segment.ack;
        }
        self.persist.probes = 0;
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
        let counts = (self.board.delivered - delivered, self.board.lost - lost);
        let counts = if self.config.is_linux34() {
            (self.counted_by_acks(counts.0, in_flight, &ack), counts.1)
        } else {
            counts
        };
        self.tell_algorithm(now, counts, rtt_us, in_flight);
        if self.config.is_linux() {
            let window = self.algorithm.snd_cwnd.max(self.config.initial_window);
            self.stream.grow_buffer(window.max(self.rack.reordering + 1));
        }
    }

    /// The segments by which Linux 3.4 counts an acknowledgement where the window is not being reduced: none unless the
    /// window limits the sender, to within a burst, and the acknowledgement is cumulative; one in slow start, whatever
    /// it acknowledges. Congestion avoidance divided by a mean of the segments per ACK, which is as if it counted them.
    fn counted_by_acks(&self, delivered: u64, prior_in_flight: u32, ack: &Ack) -> u64 {
        const BURST: u32 = 3;
        const MOST_PER_ACK: u64 = 32;
        let sock = &*self.algorithm;
        if self.is_reducing() {
            delivered
        } else if !ack.acked || prior_in_flight + BURST < sock.snd_cwnd {
            0
        } else if sock.snd_cwnd < sock.snd_ssthresh {
            delivered.min(1)
        } else {
            delivered.min(MOST_PER_ACK)
        }
    }

    /// Whether this recovery has restarted the timeout already and must not do so again. Of the
    /// classic sender only the first partial acknowledgement of a recovery restarts the timeout. A
    /// long recovery then ends in slow start (RFC 6582 section 4, the impatient variant).
    fn is_out_of_patience(&mut self) -> bool {
        !self.config.is_linux()
            && self.state == CongestionState::Recovery
            && self.board.out() > 0
            && std::mem::replace(&mut self.episode.restarted_timer, true)
    }

    fn remove_acknowledged(&mut self, now: Instant, sacked_end: u64, ack: &mut Ack) {
        let mut overtaken = None;
        let least_us = self.rtt.least_us();
        while self.board.out() > 0 {
            let number = self.board.first;
            let end = self.stream.piece(number).end();
            if end > self.una {
                break;
            }
            let record = self.board.acknowledge();
            self.rate.acknowledge(number, !record.sacked);
            self.host_queue.note_left(record.packet);
            ack.acked = true;
            if record.sent_again {
                ack.retransmission_acked = true;
            } else if !record.sacked {
                ack.sample(record.sent_at);
                ack.original_delivered |= end <= self.episode.high;
                overtaken = overtaken.or(Some(number));
            }
            let answers_earlier = record.sent_again
                && self.timestamps.answers_before(Timestamp::clock_ms(record.sent_at));
            if !record.sacked && !answers_earlier {
                self.rack.deliver(now, number, record, least_us);
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
    /// (RFC 7323 section 4). So it does for the classic sender, as in Linux before 3.10; the age of
    /// the acknowledged segment is longer where acknowledgements are lost. The congestion control
    /// gets the RTT of the newest segment.
    fn sample_rtt(&mut self, now: Instant, ack: &mut Ack) -> Option<u32> {
        let since = |at: Instant| (now.saturating_since(at).as_micros()).min(1 << 28) as u32;
        let exact = ack.acked_sent.filter(|_| !ack.retransmission_acked);
        let newest = ack.sacked_sent.or(exact).map(|(_, newest)| since(newest));
        let oldest = exact.or(ack.sacked_sent).map(|(oldest, _)| since(oldest));
        let (oldest, newest) = match (oldest, newest) {
            (Some(oldest), Some(newest)) if self.config.is_modern() => (oldest, newest),
            _ if self.config.forgets_backoff && ack.retransmission_acked => return None,
            _ if ack.acked && self.timestamps.echoed != 0 => {
                let echoed_us = self.timestamps.rtt_us(now)?;
                // Linux 3.4 gives the congestion control the age of the newest segment.
                let own = self.config.is_linux34().then_some(newest).flatten();
                (echoed_us, own.unwrap_or(echoed_us))
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
            ack.sets_timer |=
                self.config.is_modern() && sent_at < self.board.record(self.board.first).sent_at;
        }
        Some(newest)
    }
}

/// Selective acknowledgements.
impl Sender {
    /// Enters the blocks of an acknowledgement into the scoreboard.
    pub(super) fn take_sacks(&mut self, now: Instant, segment: &Segment, ack: &mut Ack) {
        let blocks = &*segment.sack;
        let Some(&first) = blocks.first() else { return };
        let below_highest = self.board.sacked_end();
        let within_second = blocks.get(1).is_some_and(|b| b.0 <= first.0 && first.1 <= b.1);
        if first.1 <= segment.ack || within_second {
            self.take_dsack(first, ack);
        }
        for &block in blocks {
            self.take_block(now, block, below_highest, ack);
        }
        if ack.dsack {
            self.forget_needless(first.1);
        }
        self.last_sacks = segment.sack;
        if let Some(reordered) = ack.reordered {
            self.check_reordering(reordered);
        }
    }

    fn take_block(
        &mut self,
        now: Instant,
        (start, end): (u64, u64),
        below_highest: u64,
        ack: &mut Ack,
    ) {
        if end <= self.una || end > self.nxt || start >= end {
            return;
        }
        let until = self.stream.segment_until(end);
        // Most blocks are those of the previous acknowledgement, longer by a segment.
        let known = self.last_sacks.iter().find(|block| block.0 <= start && start < block.1);
        let mut from = match known {
            Some(block) => self.stream.segment_until(block.1),
            None => self.stream.segment_from(start),
        };
        while let Some(segment) = self.board.next_unsacked(from, until) {
            self.take_sack(now, segment, below_highest, ack);
            from = segment + 1;
        }
    }

    fn take_sack(&mut self, now: Instant, segment: u64, below_highest: u64, ack: &mut Ack) {
        let record = self.board.sack(segment);
        self.rate.sack(segment - self.board.first, segment);
        ack.sacked = true;
        self.counting.sack(segment);
        if !record.sent_again {
            if segment < below_highest {
                ack.see_reordered(segment);
            }
            ack.original_delivered |= self.stream.piece(segment).end() <= self.episode.high;
            ack.sample_sack(record.sent_at);
        } else if self.timestamps.answers_before(Timestamp::clock_ms(record.sent_at)) {
            return;
        }
        self.rack.deliver(now, segment, record, self.rtt.least_us());
    }

    /// Handles a D-SACK, which reports that the receiver got the positions of the block twice (RFC
    /// 2883).
    fn take_dsack(&mut self, (start, end): (u64, u64), ack: &mut Ack) {
        if start >= end || end - start > self.peer_window.largest {
            return;
        }
        let mss = u64::from(self.config.mss);
        let copies = (end - start).div_ceil(mss) as u32;
        if self.counters.dsacks + u64::from(copies) > self.counters.retransmits {
            return; // the network copied it
        }
        self.counters.dsacks += u64::from(copies);
        let of_probe = copies == 1 && self.tail_probe.end == Some(end);
        ack.dsack = true;
        ack.dsack_of_probe |= of_probe;
        ack.too_narrow |= self.rack.reordering_seen && !of_probe;
        self.board.delivered += u64::from(copies);
        if self.episode.undo_marker.is_some_and(|marker| end > marker) {
            self.episode.discount_retransmissions(copies);
        }
    }

    /// Stops counting the retransmission that ends at the position `end` as outstanding, because
    /// both copies have arrived.
    fn forget_needless(&mut self, end: u64) {
        let last = self.stream.segment_until(end).saturating_sub(1);
        if self.board.is_out(last) && self.board.record(last).sacked {
            self.board.forget_retransmission(last);
        }
    }
}
