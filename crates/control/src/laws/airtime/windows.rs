//! Ceiling, floor and pacing of a tick, once its phase is known.

use wakeai_units::{Duration, Rate, Segments};

use super::Airtime;
use super::arithmetic::{PERMILLE, mean, scale, times};
use super::situation::Situation;

/// Between two decisions.
const TICK: Duration = Duration::from_millis(500);
/// Before anything has queued, the window may be four times what a round trip delivered, so that
/// slow start is not held back (its window doubles while the measured rate is half a round trip
/// old) …
const OPENING_CEILING: u32 = 4 * PERMILLE;
/// … and is at least twice that: `HyStart` is misled by the turns of the medium.
const OPENING_FLOOR: u32 = 2 * PERMILLE;
/// While the queue is not empty, the window does not fall below this part of `x·R`: what CUBIC
/// would leave after a loss is less, and the share would be lost with it.
const FLOOR: u32 = 850;
/// A floor pushes at most so many segments at once into the host's queue, or half a window.
const PUSH: Segments = Segments::new(256);
/// Ticks of loss recovery in a row after which the floor gives way: no loss is random for so long.
const PATIENCE: u32 = 3;

impl Airtime {
    pub(super) fn ceiling(&self, situation: &Situation) -> Segments {
        let rate = if situation.rtt.growth >= situation.target / 2 {
            situation.aim()
        } else {
            situation.lifted() // a share is a reason to queue more, not yet to send more
        };
        let path = situation.in_flight(rate, situation.rtt.min);
        let queue = situation.in_flight(situation.aim(), situation.target).max(Segments::new(2));
        let Some(probe) = self.probe else {
            let open = scale(path, OPENING_CEILING).saturating_add(queue);
            return open.min(opening_limit(situation, path, queue));
        };
        let exact = scale(path, PERMILLE + probe).saturating_add(queue);
        match self.ceiling.filter(|_| !situation.trouble) {
            // Half of the old ceiling: what a single tick delivers is a matter of luck. And
            // nothing asks for less while less than the target waits.
            Some(last) if situation.rtt.growth < situation.target => mean(last, exact).max(last),
            Some(last) if !situation.queue_is_far_too_long() => mean(last, exact),
            _ => exact,
        }
    }

    pub(super) fn floor(&self, situation: &Situation) -> Segments {
        let path = situation.in_flight(situation.lifted(), situation.rtt.min);
        if !situation.nothing_queues() {
            let yielded = self.trouble.saturating_sub(PATIENCE).min(31);
            return Segments::new(scale(path, FLOOR).get() >> yielded);
        }
        let push = situation.window.saturating_add(PUSH.max(scale(situation.window, PERMILLE / 2)));
        let wanted = match self.probe {
            None => {
                let wanted = scale(path, OPENING_FLOOR);
                wanted.min(opening_limit(situation, path, Segments::ZERO))
            }
            Some(probe) => scale(path, PERMILLE + probe),
        };
        wanted.min(push)
    }

    /// A bound on the rate, where a window cannot do it.
    ///
    /// Never so low that a segment waits for more than a tick: it would wait on when the bound is
    /// long lifted, and without an ACK nothing wakes it.
    pub(super) fn pacing(
        &self,
        situation: &Situation,
        ceiling: Segments,
        floor: Segments,
    ) -> Option<Rate> {
        let rate = self.paced_rate(situation, ceiling, floor)?;
        Some(rate.max(Rate::of(situation.mss, TICK)))
    }

    fn paced_rate(
        &self,
        situation: &Situation,
        ceiling: Segments,
        floor: Segments,
    ) -> Option<Rate> {
        if self.probe.is_none() {
            // Twice the window per round trip, as slow start sends, but without its bursts: what
            // they queue would look like the end of the opening.
            let window = situation.window.max(floor).bytes(situation.mss);
            let doubled = times(Rate::of(window, situation.rtt.current), 5, 2);
            return Some(doubled.max(times(situation.rate, 3, 1)));
        }
        let measured = situation.rate > Rate::ZERO;
        let too_small = ceiling < situation.least_window();
        if measured && too_small && situation.rtt.growth > situation.target {
            return Some(times(situation.rate.max(situation.share), 9, 8));
        }
        None
    }
}

/// No station delivers more than its part of its own PHY rate while all of them open together;
/// twice what it delivers is always allowed.
fn opening_limit(situation: &Situation, path: Segments, queue: Segments) -> Segments {
    let Some(link_rate) = situation.link_rate else {
        return Segments::MAX;
    };
    let part = link_rate / u64::from(situation.senders.max(1));
    let span = situation.rtt.min.saturating_add(situation.target);
    situation.in_flight(part, span).max(scale(path, 2 * PERMILLE).saturating_add(queue))
}
