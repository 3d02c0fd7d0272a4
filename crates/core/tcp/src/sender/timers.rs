//! The timer of a connection, the handling of its expiry, the retransmission timeout with its backoff (RFC 6298
//! section 5), and the probes of a closed window. As in Linux, a connection has only one timer.

use wakeai_connection::EventKind;
use wakeai_units::{Duration, Instant};

use super::{Forced, Retransmission, Sender, SenderPhase};
use crate::config::{INITIAL_TIMEOUT, MIN_TIMEOUT, TcpConfig};

/// The event for which the timer waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimerKind {
    /// An answer to the SYN.
    Syn,
    /// An acknowledgement (RFC 6298).
    Retransmission,
    /// An acknowledgement of the last segments sent, which may be lost (RFC 8985 section 7).
    TailLoss,
    /// The arrival of segments that others have overtaken (RFC 8985 section 6).
    Reordering,
    /// The peer's window to open (RFC 9293 section 3.8.6.1).
    Persist,
    /// The peer's FIN.
    PeerFin,
}

/// The margin that Linux adds to a timer: two ticks of a kernel with 250 Hz, as in most distributions and
/// phones.
pub(super) const SLACK: Duration = Duration::from_millis(8);
/// The delay of a timer whose time has already passed.
const AT_ONCE: Duration = Duration::from_millis(1);
/// The wait after the host's queue refused a timeout's retransmission, as in Linux.
pub(super) const LOCAL_RETRY: Duration = Duration::from_millis(500);

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Timer {
    armed: Option<(TimerKind, Instant)>,
}

impl Timer {
    pub(super) fn set(&mut self, kind: TimerKind, at: Instant) {
        self.armed = Some((kind, at));
    }

    pub(super) fn clear(&mut self) {
        self.armed = None;
    }

    pub(super) fn is(&self, kind: TimerKind) -> bool {
        self.armed.is_some_and(|(armed, _)| armed == kind)
    }

    pub(super) fn is_armed(&self) -> bool {
        self.armed.is_some()
    }

    fn due(&self, now: Instant) -> Option<TimerKind> {
        self.armed.filter(|&(_, at)| at <= now).map(|(kind, _)| kind)
    }
}

/// The retransmission timeout, with its backoff.
#[derive(Clone, Copy, Debug)]
pub(super) struct RetransmissionTimeout {
    pub(super) timeout: Duration,
    longest: Duration,
    /// Timeouts since something new was acknowledged.
    pub(super) in_a_row: u32,
}

impl RetransmissionTimeout {
    pub(super) fn new(config: &TcpConfig) -> Self {
        Self { timeout: INITIAL_TIMEOUT, longest: config.max_timeout, in_a_row: 0 }
    }

    /// Doubles the timeout (RFC 6298 section 5.5).
    pub(super) fn back_off(&mut self) {
        self.timeout = self.timeout.saturating_mul(2).min(self.longest);
    }
}

/// The probes of a closed window (RFC 9293 section 3.8.6.1).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Persist {
    /// Probes without an answer.
    pub(super) probes: u32,
    /// The number of times that the interval between probes was doubled.
    backoff: u32,
}

impl Sender {
    /// The time of the next timeout, provided that no segment arrives.
    pub fn next_timeout(&self) -> Option<Instant> {
        let timer = self.timer.armed.map(|(_, at)| at);
        timer.into_iter().chain(self.pacing.next_timeout()).min()
    }

    /// Handles the timer that is due at `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        let Some(kind) = self.timer.due(now) else { return };
        self.output.blocked = false;
        self.advance(now);
        match kind {
            TimerKind::Syn => self.handle_syn_timeout(now),
            TimerKind::Retransmission => self.handle_retransmission_timeout(now),
            TimerKind::TailLoss => self.handle_tail_loss_timeout(now),
            TimerKind::Reordering => self.handle_reordering_timeout(now),
            TimerKind::Persist => self.handle_persist_timeout(now),
            TimerKind::PeerFin => self.close_connection(),
        }
        self.assert_order();
    }

    fn handle_retransmission_timeout(&mut self, now: Instant) {
        self.timer.clear();
        if self.board.out() == 0 {
            return;
        }
        if self.rto.in_a_row >= self.config.retries {
            self.fail();
            return;
        }
        self.counters.timeouts += 1;
        self.enter_loss(now);
        self.rto.in_a_row += 1;
        self.counters.timeouts_in_a_row = self.counters.timeouts_in_a_row.max(self.rto.in_a_row);
        self.events.push_back(EventKind::Timeout);
        self.output.forced = Some(Forced::Head);
        self.output.retransmission = Retransmission::Nothing;
        self.rto.back_off();
        self.timer.set(TimerKind::Retransmission, now + self.rto.timeout);
    }

    /// Resets the timeout to the present RTT estimate, without backoff.
    pub(super) fn reset_timeout(&mut self) {
        self.rto.timeout = self.rtt.timeout().unwrap_or(INITIAL_TIMEOUT);
        let sock = &mut *self.algorithm;
        sock.srtt_us = self.rtt.smoothed_us_by_8;
        sock.rttvar_us = self.rtt.variation_us;
    }

    /// Restarts the timer after an acknowledgement. Where a tail loss probe may be sent, the timer
    /// is set for the probe.
    pub(super) fn set_timer(&mut self, now: Instant) {
        if !self.schedule_probe(now, true) {
            self.rearm_timeout(now);
        }
    }

    /// Arms the retransmission timer. The timeout counts from now. Where a shorter timer ran
    /// meanwhile, it counts from the transmission of the oldest segment.
    pub(super) fn rearm_timeout(&mut self, now: Instant) {
        if self.board.out() == 0 {
            if self.phase == SenderPhase::Established {
                self.timer.clear();
            }
            return;
        }
        let was_shorter =
            self.timer.is(TimerKind::TailLoss) || self.timer.is(TimerKind::Reordering);
        let at = if was_shorter {
            self.head_times_out_at().max(now + AT_ONCE)
        } else {
            now + self.rto.timeout
        };
        self.timer.set(TimerKind::Retransmission, at);
    }

    /// The time at which the oldest segment has been out for the retransmission timeout.
    pub(super) fn head_times_out_at(&self) -> Instant {
        self.board.record(self.board.first).sent_at + self.rto.timeout
    }

    /// Arms the timer of the next window probe.
    pub(super) fn arm_persist(&mut self, now: Instant) {
        let base = self.rto.timeout.max(MIN_TIMEOUT);
        let wait = base.saturating_mul(1 << self.persist.backoff.min(32));
        self.timer.set(TimerKind::Persist, now + wait.min(self.config.max_timeout));
    }

    /// Handles an acknowledgement that arrives while no data is outstanding.
    pub(super) fn restart_persist(&mut self, now: Instant) {
        if !self.timer.is(TimerKind::Persist) {
            return;
        }
        if self.window_takes_more() {
            self.persist.backoff = 0;
            self.timer.clear();
        } else {
            self.arm_persist(now);
        }
    }

    pub(super) fn handle_persist_timeout(&mut self, now: Instant) {
        self.timer.clear();
        if self.board.out() > 0
            || !self.has_new_data() && self.stream.next_piece(self.nxt).is_none()
        {
            self.persist = Persist::default();
            return;
        }
        if self.persist.probes >= self.config.retries {
            self.fail();
        } else if !self.window_takes_more() {
            self.output.forced = Some(Forced::WindowProbe);
            self.persist.probes += 1;
            self.persist.backoff += 1;
            self.arm_persist(now);
        }
    }
}
