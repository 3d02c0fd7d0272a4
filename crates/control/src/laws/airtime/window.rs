//! Ceiling, floor and pacing of a tick.

use wakeai_units::{Duration, Instant, Rate, Segments};

use super::{Airtime, Situation, target};
use crate::{Bounds, Observation, Phase};

/// Permille of the share: no more than that.
pub(super) const NO_PROBE: u32 = 1000;
/// While less than half of the target waits, so much more each round trip …
const PROBE_STEP: u32 = 1125;
/// … up to this.
const PROBE_MOST: u32 = 1250;
/// On a shorter path the queue that is aimed at is nearly a window by itself.
const OPENING_RTT: Duration = Duration::from_millis(150);
/// What queues on a path that nobody has measured may stand on.
const NEWCOMER_RTT: Duration = Duration::from_millis(100);
/// The queue that a window may hold beyond what this station has proved to get, percent of the target: what
/// others tell may be old, or wrong, and must not fill a queue.
const PROVED_PERCENT: u64 = 150;
/// Ticks of loss recovery in a row after which the floor gives way: no loss is random for so long.
const PATIENCE: u32 = 3;
/// A release gives back what was lost for so long.
const RECOVERY: Duration = Duration::from_secs(5);
/// Between two decisions.
const TICK: Duration = Duration::from_millis(500);
/// A floor pushes at most so many segments at once into the host's queue, or half a window.
const PUSH: u32 = 256;

fn times(rate: Rate, numerator: u64, denominator: u64) -> Rate {
    rate.mul_div(numerator, denominator).unwrap_or(rate)
}

fn scale(window: Segments, permille: u32) -> Segments {
    let scaled = u64::from(window.get()) * u64::from(permille) / 1000;
    Segments::new(u32::try_from(scaled).unwrap_or(u32::MAX))
}

fn mean(one: Segments, other: Segments) -> Segments {
    Segments::new(one.get() / 2 + other.get() / 2 + (one.get() & other.get() & 1))
}

/// Bounds of what begins to send at this share.
pub(super) fn of_newcomer(share: Rate, queue: Duration, seen: &Observation) -> Bounds {
    let window = Segments::in_flight(share, NEWCOMER_RTT + queue, seen.mss());
    Bounds::window(Segments::ZERO, window.max(Segments::new(10)))
}

impl Situation {
    fn queue_is_empty(&self) -> bool {
        !self.trouble && self.path.growth < self.target / 2
    }

    /// There is no more queue than a burst of slow start leaves behind.
    fn nothing_queues(&self) -> bool {
        !self.trouble && self.path.growth < self.target.max(self.path.min / 16)
    }

    /// Fewer than four segments in flight cannot lose one without a timeout.
    fn least_window(&self) -> Segments {
        Segments::new(self.connections.saturating_mul(2).max(4))
    }
}

impl Airtime {
    pub(super) fn advance(&mut self, now: Instant, situation: &Situation) -> Phase {
        let first = self.ticks == 1;
        self.delivered.push(now, situation.rate.bits_per_second());
        self.opening = (self.opening || first)
            && situation.path.min >= OPENING_RTT
            && situation.nothing_queues();
        if self.opening {
            return Phase::Opening;
        }
        if situation.queue_is_empty() {
            if now >= self.probe_next {
                self.probe_next = now + situation.path.current;
                self.probe = (self.probe * PROBE_STEP / 1000).min(PROBE_MOST);
            }
        } else if situation.path.growth > situation.target {
            self.probe = NO_PROBE;
        }
        if self.probe > NO_PROBE { Phase::Probing } else { Phase::Steady }
    }

    pub(super) fn window(&mut self, situation: &Situation, seen: &Observation) -> Bounds {
        let mss = seen.mss();
        let Situation { path, target, share, .. } = *situation;
        let fair = scale(Segments::in_flight(share, path.min + target, mss), self.probe);
        let wanted = match self.proved(situation) {
            Some(rate) => {
                let queue = target.mul_div(PROVED_PERCENT, 100).unwrap_or(target);
                fair.min(scale(Segments::in_flight(rate, path.min + queue, mss), self.probe))
            }
            // Nothing was delivered yet: twice the window in a round trip, as slow start has it.
            None => fair.min(scale(situation.window, 2000)),
        };
        let smooth = self.ceiling.map_or(wanted, |last| mean(last, wanted));
        self.ceiling = Some(smooth);
        let least = situation.least_window();
        let whole = whole_aggregates(smooth, seen);
        let floor = Segments::new(whole.get() >> self.trouble.saturating_sub(PATIENCE).min(31));
        let too_small = smooth < least && path.growth > target;
        let pacing =
            too_small.then(|| times(share.max(situation.rate), 9, 8).max(Rate::of(mss, TICK)));
        let small_queue = target::aggregate(seen.own.link_rate).unwrap_or_default();
        Bounds { pacing, small_queue, ..Bounds::window(floor, whole.max(least)) }
    }

    /// Nothing is bound. For some seconds a floor gives back what was lost while the windows were held:
    /// what the station delivered before, at the RTT as it is now.
    pub(super) fn released_window(
        &mut self,
        now: Instant,
        situation: &Situation,
        seen: &Observation,
    ) -> Bounds {
        if now.saturating_since(self.release.began()) > RECOVERY || self.trouble > PATIENCE {
            return Bounds::NONE;
        }
        let before = Rate::from_bps(self.delivered.latest());
        let window = Segments::in_flight(before, situation.path.current, seen.mss());
        Bounds::window(window, Segments::MAX)
    }

    /// The most that this station delivered lately, or that the middle one of its peers does.
    fn proved(&mut self, situation: &Situation) -> Option<Rate> {
        let own = self.delivered.latest().max(situation.rate.bits_per_second());
        let proved = Rate::from_bps(own).max(self.share.middle());
        (proved > Rate::ZERO).then_some(proved)
    }

    pub(super) fn opening_window(&mut self, situation: &Situation, seen: &Observation) -> Bounds {
        let (mss, path) = (seen.mss(), situation.path);
        let rate = if situation.rate > Rate::ZERO {
            situation.rate
        } else {
            Rate::of(situation.window.bytes(mss), path.current)
        };
        let flying = Segments::in_flight(rate, path.min, mss);
        let queue = Segments::in_flight(situation.share.max(rate), situation.target, mss);
        let limit = seen.own.link_rate.map_or(Segments::MAX, |link_rate| {
            let part = link_rate / u64::from(seen.senders.max(1));
            let most = Segments::in_flight(part, path.min + situation.target, mss);
            most.max(scale(flying, 2000).saturating_add(queue))
        });
        let ceiling = scale(flying, 4000).saturating_add(queue).min(limit);
        let ceiling = ceiling.max(situation.least_window());
        let push = Segments::new(PUSH.max(situation.window.get() / 2));
        let floor = scale(flying, 2000).min(limit).min(situation.window.saturating_add(push));
        let window = situation.window.max(floor).bytes(mss);
        let doubled = times(Rate::of(window, path.current), 5, 2);
        self.ceiling = Some(ceiling);
        let pacing = Some(doubled.max(times(rate, 3, 1)));
        Bounds { pacing, ..Bounds::window(floor, ceiling) }
    }
}

/// Bytes of a packet that an aggregate holds beside its segment: headers of TCP/IP and 802.11, delimiter and
/// padding of the subframe (802.11-2020 §9.7).
const BESIDE_PAYLOAD: u64 = 92;

/// A window of whole aggregates, where it holds one: what is left over would take a turn of its own, with all
/// that a turn costs.
fn whole_aggregates(window: Segments, seen: &Observation) -> Segments {
    let packet = seen.mss().get() + BESIDE_PAYLOAD;
    let aggregate = target::aggregate(seen.own.link_rate).map_or(0, |bytes| bytes.get() / packet);
    let wanted = u64::from(window.get());
    if aggregate < 2 || wanted < aggregate {
        return window;
    }
    let whole = (wanted + aggregate / 2) / aggregate * aggregate;
    Segments::new(u32::try_from(whole).unwrap_or(u32::MAX))
}
