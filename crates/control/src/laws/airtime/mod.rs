//! A share of the air and a short queue: our own law.
//!
//! With `x` the delivery rate, `R` the minimum RTT and `q` the RTT growth, a window is
//! `W = x·(R + q)` (Little), so a station that holds `W = x·R + x·q_target` has `q_target` of its
//! own waiting: FAST TCP's equilibrium (Wei, Jin, Low and Hegde, 2006). Since `x` is what was
//! delivered, no window of ours ever asks for more than the air has just carried, but for a
//! deliberate probe while the queue is empty.

mod arithmetic;
mod phases;
mod share;
mod situation;
mod windows;

use std::collections::VecDeque;

use wakeai_units::{Duration, Instant, Rate, Segments};

use crate::{Bounds, Law, Narrator, Observation, Reason};

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
