//! A share of the air and a short queue: our own law.
//!
//! With `x` the delivery rate, `R` the minimum RTT and `q` the RTT growth, a window is
//! `W = x·(R + q)` (Little), so a station that holds `W = x·R + x·q_target` has `q_target` of its
//! own waiting: FAST TCP's equilibrium (Wei, Jin, Low and Hegde, 2006). Since `x` is what was
//! delivered, no window of ours ever asks for more than the air has just carried, but for a
//! deliberate probe while the queue is empty.

mod share;

use std::collections::VecDeque;

use wakeai_units::{Bytes, Duration, Instant, Rate, Segments};

use crate::{Bounds, CongestionState, Law, Narrator, Observation, Phase, Reason, RttView};
use share::{fair_share, queue_target};

/// The knobs of [`Airtime`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AirtimeKnobs {
    /// The RTT growth to aim at, in rounds of all stations' longest turns, in hundredths.
    pub queue_rounds_percent: u32,
    /// The least RTT growth to aim at.
    pub queue_min: Duration,
    /// The most.
    pub queue_max: Duration,
}

impl Default for AirtimeKnobs {
    /// Two rounds, 20 ms to 100 ms.
    fn default() -> Self {
        Self {
            queue_rounds_percent: 200,
            queue_min: Duration::from_millis(20),
            queue_max: Duration::from_millis(100),
        }
    }
}

const PERMILLE: u32 = 1000;
/// Before anything has queued, the window may be four times what a round trip delivered, so that
/// slow start is not held back (its window doubles while the measured rate is half a round trip
/// old) …
const OPENING_CEILING: u32 = 4 * PERMILLE;
/// … and is at least twice that: `HyStart` is misled by the turns of the medium.
const OPENING_FLOOR: u32 = 2 * PERMILLE;
/// On a shorter path the queue that is aimed at is nearly a window by itself: a probe is enough.
const OPENING_RTT: Duration = Duration::from_millis(150);
/// The first step of a later probe, of `x·R`; it doubles each round trip that the queue stays empty.
const PROBE_START: u32 = 125;
const PROBE_MOST: u32 = PERMILLE;
/// While the queue is not empty, the window does not fall below this part of `x·R`: what CUBIC
/// would leave after a loss is less, and the share would be lost with it.
const FLOOR: u32 = 850;
/// A floor pushes at most so many segments at once into the host's queue, or half a window.
const PUSH: Segments = Segments::new(256);
/// Ticks of loss recovery in a row after which the floor gives way: no loss is random for so long.
const PATIENCE: u32 = 3;
/// Queue that has not obeyed for this long (or two round trips) is not ours, or the path is longer.
const OBEY_WITHIN: Duration = Duration::from_secs(2);
/// Queues come and go; growth that has only stood for this long may be a longer path.
const STAND_AT_MOST: Duration = Duration::from_secs(10);
/// To a quarter, at which the RTT watch judges, and once more.
const MOST_HALVINGS: u32 = 3;

/// The law `airtime`.
///
/// Each tick: measure, decide the phase (opening, steady, probing, draining), hold the window.
#[derive(Clone, Debug)]
pub struct Airtime {
    knobs: AirtimeKnobs,
    /// Rates of the last ticks with their times.
    rates: VecDeque<(Instant, Rate)>,
    /// How much more than `x·R` to try, permille; `None` before anything has queued.
    probe: Option<u32>,
    /// When the probe may grow again: one round trip after it did.
    round_end: Instant,
    /// Since when the growth has been far above its target.
    high_since: Option<Instant>,
    /// Since when the growth has not been clearly below its target.
    standing_since: Option<Instant>,
    drain: Option<Drain>,
    /// The minimum RTT of the last tick.
    min_rtt: Duration,
    /// The last ceiling.
    ceiling: Option<Segments>,
    /// Ticks in a row with loss recovery.
    trouble: u32,
}

/// A deliberate reduction.
#[derive(Clone, Copy, Debug)]
struct Drain {
    cap: Segments,
    halvings: u32,
    next: Instant,
}

/// What a tick is decided on.
struct Situation {
    rtt: RttView,
    target: Duration,
    mss: Bytes,
    senders: u32,
    link_rate: Option<Rate>,
    /// Windows of the sending connections, and how many there are.
    window: Segments,
    connections: u32,
    /// Delivered over a round trip or a tick, whichever is longer.
    rate: Rate,
    /// The part of the air that is ours.
    share: Rate,
    /// A connection repairs losses.
    trouble: bool,
}

impl Situation {
    /// The queue is so short that there may be air left.
    fn queue_is_empty(&self) -> bool {
        !self.trouble && self.rtt.growth < self.target / 2
    }

    /// There is no more queue than a burst of slow start leaves behind.
    fn nothing_queues(&self) -> bool {
        !self.trouble && self.rtt.growth < self.target.max(self.rtt.min / 16)
    }

    fn queue_is_far_too_long(&self) -> bool {
        self.rtt.growth > self.target * 2 + self.rtt.min / 4
    }

    /// The rate to aim at: half way from ours to the share. Who has more yields only while there
    /// is a queue, so a share that others leave unused is not wasted; who has less asks for more
    /// only while the queue is short.
    fn aim(&self) -> Rate {
        if self.rate > self.share && self.rtt.growth >= self.target / 2 {
            self.share + (self.rate - self.share) / 2
        } else if self.rate < self.share && self.rtt.growth < self.target + self.target / 4 {
            self.rate + (self.share - self.rate) / 2
        } else {
            self.rate
        }
    }

    /// The rate to hold a window for: what was delivered. But on a path that holds more than the
    /// queue does, who is far below its share is lifted towards it while nothing queues: CUBIC by
    /// itself takes minutes to come back from a small window there, and meanwhile every tick in
    /// which others fill its part confirms them.
    fn lifted(&self) -> Rate {
        let far_below = self.rate < times(self.share, 3, 4);
        let long = self.rtt.min > self.target;
        if far_below && long && self.queue_is_empty() { self.aim() } else { self.rate }
    }

    fn in_flight(&self, rate: Rate, span: Duration) -> Segments {
        Segments::in_flight(rate, span, self.mss)
    }

    /// Fewer than four segments in flight cannot lose one without a timeout.
    fn least_window(&self) -> Segments {
        Segments::new(self.connections.saturating_mul(2).max(4))
    }
}

impl Airtime {
    /// The law with these knobs.
    pub fn new(knobs: AirtimeKnobs) -> Self {
        Self {
            knobs,
            rates: VecDeque::new(),
            probe: None,
            round_end: Instant::ZERO,
            high_since: None,
            standing_since: None,
            drain: None,
            min_rtt: Duration::ZERO,
            ceiling: None,
            trouble: 0,
        }
    }

    fn measure(&mut self, now: Instant, seen: &Observation, rtt: RttView) -> Situation {
        let (mss, target) = (seen.mss(), queue_target(&self.knobs, seen));
        if !self.rates.is_empty() || seen.delivery_rate > Rate::ZERO {
            self.rates.push_back((now, seen.delivery_rate));
        }
        while self.rates.len() > 1
            && self.rates.front().is_some_and(|(at, _)| now.saturating_since(*at) >= rtt.current)
        {
            self.rates.pop_front();
        }
        let sum: Rate = self.rates.iter().map(|(_, rate)| *rate).sum();
        let rate = match self.rates.len() as u64 {
            // Nothing is measured yet: one window per round trip, but for slow start's overshoot,
            // which has to drain before anybody can learn the path's RTT.
            0 if rtt.growth < target / 2 => Rate::of(seen.window().bytes(mss), rtt.current),
            0 => Rate::ZERO,
            ticks => sum / ticks,
        };
        Situation {
            rtt,
            target,
            mss,
            senders: seen.senders,
            link_rate: seen.own.link_rate,
            window: seen.window(),
            connections: u32::try_from(seen.sending().count()).unwrap_or(u32::MAX),
            rate,
            share: fair_share(seen),
            trouble: seen.sending().any(|connection| {
                let state = connection.congestion_state;
                matches!(state, CongestionState::Recovery | CongestionState::Loss)
            }),
        }
    }

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

    fn advance(&mut self, now: Instant, situation: &Situation) -> Phase {
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

    fn ceiling(&self, situation: &Situation) -> Segments {
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

    fn floor(&self, situation: &Situation) -> Segments {
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
    fn pacing(&self, situation: &Situation, ceiling: Segments, floor: Segments) -> Option<Rate> {
        if self.probe.is_none() {
            // Twice the window per round trip, as slow start sends, but without its bursts: what
            // they queue would look like the end of the opening.
            let window = situation.window.max(floor).bytes(situation.mss);
            let doubled = times(Rate::of(window, situation.rtt.current), 5, 2);
            return Some(doubled.max(times(situation.rate, 3, 1)));
        }
        if ceiling < situation.least_window() && situation.rtt.growth > situation.target {
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

fn times(rate: Rate, numerator: u64, denominator: u64) -> Rate {
    rate.mul_div(numerator, denominator).unwrap_or(rate)
}

fn scale(window: Segments, permille: u32) -> Segments {
    let scaled = u64::from(window.get()) * u64::from(permille) / u64::from(PERMILLE);
    Segments::new(u32::try_from(scaled).unwrap_or(u32::MAX))
}

fn mean(one: Segments, other: Segments) -> Segments {
    Segments::new(one.get() / 2 + other.get() / 2 + (one.get() & other.get() & 1))
}

impl Law for Airtime {
    fn name(&self) -> &'static str {
        "airtime"
    }

    fn on_tick(
        &mut self,
        now: Instant,
        observation: &Observation,
        narrator: &mut dyn Narrator,
    ) -> Bounds {
        let sending = observation.sending().next().is_some();
        let Some(rtt) = observation.rtt.filter(|_| sending) else {
            *self = Self::new(self.knobs.clone());
            narrator.narrate(Reason::Idle);
            return Bounds::NONE;
        };
        let situation = self.measure(now, observation, rtt);
        let phase = self.advance(now, &situation);
        let mut ceiling = self.ceiling(&situation);
        if let Some(drain) = &self.drain {
            ceiling = ceiling.min(drain.cap);
        }
        let floor = self.floor(&situation);
        let pacing = self.pacing(&situation, ceiling, floor);
        let ceiling = ceiling.max(situation.least_window());
        self.ceiling = Some(ceiling);
        narrator.narrate(Reason::Airtime {
            senders: observation.senders,
            rate: situation.rate,
            share: situation.share,
            growth: rtt.growth,
            target: situation.target,
            phase,
        });
        Bounds { pacing, ..Bounds::window(floor, ceiling) }
    }
}
