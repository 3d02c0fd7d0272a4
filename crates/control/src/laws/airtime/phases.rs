//! Opening, steady, probing, draining: which of them it is now.

use wakeai_units::{Duration, Instant};

use super::arithmetic::{PERMILLE, scale};
use super::situation::Situation;
use super::{Airtime, Drain};
use crate::Phase;

/// On a shorter path the queue that is aimed at is nearly a window by itself: a probe is enough.
const OPENING_RTT: Duration = Duration::from_millis(150);
/// The first step of a later probe, of `x·R`; it doubles each round trip that the queue stays empty.
const PROBE_START: u32 = 125;
const PROBE_MOST: u32 = PERMILLE;
/// Queue that has not obeyed for this long (or two round trips) is not ours, or the path is longer.
const OBEY_WITHIN: Duration = Duration::from_secs(2);
/// Queues come and go; growth that has only stood for this long may be a longer path.
const STAND_AT_MOST: Duration = Duration::from_secs(10);
/// To a quarter, at which the RTT watch judges, and once more.
const MOST_HALVINGS: u32 = 3;

impl Airtime {
    /// Whether to halve the window to see what happens: a queue of ours shortens, a path does not,
    /// and then the RTT watch learns its minimum anew.
    fn has_to_drain(&mut self, now: Instant, situation: &Situation) -> bool {
        let growth = situation.rtt.growth;
        let lasts = |since: &mut Option<Instant>, holds: bool, span: Duration| {
            if !holds {
                *since = None;
                return false;
            }
            let span = span.max(situation.rtt.current.saturating_mul(2));
            now.saturating_since(*since.get_or_insert(now)) > span
        };
        let too_long = situation.queue_is_far_too_long();
        let stands = growth > situation.target / 2;
        let disobeys = lasts(&mut self.high_since, too_long, OBEY_WITHIN);
        lasts(&mut self.standing_since, stands, STAND_AT_MOST) || disobeys
    }

    /// The next halving, one round trip after the one before; after the last it gives up for a while.
    fn drain(&mut self, now: Instant, situation: &Situation) {
        let next = now + situation.rtt.current;
        match &mut self.drain {
            None => {
                let cap = scale(situation.window, PERMILLE / 2);
                self.drain = Some(Drain { cap, halvings: 1, next });
            }
            Some(drain) if now < drain.next => {}
            Some(drain) if drain.halvings < MOST_HALVINGS => {
                let cap = scale(drain.cap, PERMILLE / 2);
                *drain = Drain { cap, halvings: drain.halvings + 1, next };
            }
            Some(_) => (self.drain, self.high_since, self.standing_since) = (None, None, None),
        }
    }

    pub(super) fn advance(&mut self, now: Instant, situation: &Situation) -> Phase {
        if self.min_rtt.is_zero() {
            self.probe = (situation.rtt.min < OPENING_RTT).then_some(PROBE_MOST);
        } else if situation.rtt.min > self.min_rtt + self.min_rtt / 4 {
            // The path is longer than it was: what was learnt of it is void.
            (self.probe, self.ceiling) = (Some(PROBE_MOST), None);
            (self.high_since, self.standing_since) = (None, None);
            self.drain = None;
        }
        self.min_rtt = situation.rtt.min;
        if now >= self.round_end {
            self.round_end = now + situation.rtt.current;
            self.probe = match self.probe {
                None if situation.nothing_queues() => None,
                Some(probe) if situation.queue_is_empty() => {
                    Some((probe * 2).clamp(PROBE_START, PROBE_MOST))
                }
                _ => Some(0),
            };
        } else if !situation.nothing_queues() {
            self.probe = Some(0);
        }
        self.trouble = if situation.trouble { self.trouble.saturating_add(1) } else { 0 };
        if self.has_to_drain(now, situation) {
            self.drain(now, situation);
        } else {
            self.drain = None;
        }
        if self.drain.is_some() {
            return Phase::Draining;
        }
        match self.probe {
            None => Phase::Opening,
            Some(0) => Phase::Steady,
            Some(_) => Phase::Probing,
        }
    }
}
