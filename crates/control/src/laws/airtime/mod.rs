//! An equal share of the air, in whole aggregates, and a short queue: our own law.
//!
//! A station of weight `w` holds the window `W = w·X·(R + q)`: by Little's law what it delivers at
//! its share `w·X` of the air with `q` of queue on a path of `R`. `X` is what all deliver, in parts of what
//! each reaches alone, divided by the number of stations that want air: not what the station itself
//! delivers, which would confirm any inequality. With `ΣW = C·(R + q)` the growth of a common queue is
//! `q` (FAST TCP's equilibrium: Wei, Jin, Low and Hegde, 2006), and each station has its share.
//! `docs/concepts/laws.md` derives it, and says what each term does when it is taken away.

mod drain;
mod path;
mod release;
mod share;
mod target;
mod window;

use wakeai_units::{Duration, Instant, Rate, Segments};

use self::drain::Drain;
pub(crate) use self::path::{Path, common_growth};
use self::release::Release;
use self::share::Share;
use self::target::Bottleneck;
use crate::windowed::WindowedMax;
use wakeai_connection::CongestionState;

use crate::{Bounds, Law, Observation, Phase, Reason};

/// Between two decisions.
const TICK: Duration = Duration::from_millis(500);

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
    /// Two rounds, 20 ms to 75 ms.
    fn default() -> Self {
        Self {
            queue_rounds_percent: 200,
            queue_min: Duration::from_millis(20),
            queue_max: Duration::from_millis(75),
        }
    }
}

/// The law `airtime`.
///
/// Each tick: what the path is, what the share is, whether the growth is ours at all, and the
/// window that follows.
#[derive(Clone, Debug)]
pub struct Airtime {
    knobs: AirtimeKnobs,
    share: Share,
    /// The most that this station delivered lately: what it has proved that it can get.
    delivered: WindowedMax<Rate>,
    /// On a long path, until something queues.
    opening: bool,
    /// How much more than its share the station tries while the queue is empty, permille.
    probe: u32,
    /// When the probe may grow again: one round trip after it did.
    probe_next: Instant,
    /// The limit of the probe after the queue was empty for long, permille.
    probe_most: u32,
    /// Ticks in a row with next to no queue.
    empty_ticks: u32,
    /// The last ceiling, before it was rounded to aggregates.
    ceiling: Option<Segments>,
    /// What rounding has taken from the windows so far, less what it has given.
    owed: i64,
    drain: Drain,
    /// Ticks in a row with loss recovery.
    trouble: u32,
    release: Release,
    /// Ticks since it began to send.
    ticks: u32,
}

/// What a tick is decided on.
struct Situation {
    path: Path,
    /// What the share of the air delivers.
    share: Rate,
    /// The growth that is aimed at.
    target: Duration,
    /// What this station delivers.
    rate: Rate,
    /// The windows of the sending connections together.
    window: Segments,
    connections: u32,
    /// Stations that send, this one included.
    senders: u32,
    trouble: bool,
}

impl Airtime {
    /// The law with these knobs.
    pub fn new(knobs: AirtimeKnobs) -> Self {
        Self {
            knobs,
            share: Share::default(),
            delivered: WindowedMax::default(),
            opening: false,
            probe: window::NO_PROBE,
            probe_next: Instant::ZERO,
            probe_most: 0,
            empty_ticks: 0,
            ceiling: None,
            owed: 0,
            drain: Drain::default(),
            trouble: 0,
            release: Release::default(),
            ticks: 0,
        }
    }

    /// Nothing is being sent: what begins before the next tick finds room for its share, and no
    /// more, so that those who begin together do not flood the air before they know each other.
    fn idle(&mut self, seen: &Observation, reasons: &mut Vec<Reason>) -> Bounds {
        *self = Self::new(self.knobs.clone());
        reasons.push(Reason::Idle);
        share::of_newcomer(seen).map_or(Bounds::NONE, |share| {
            // All at their shares are as much as one alone.
            let total = seen.max_rate.unwrap_or(share);
            let target = target::queue(&self.knobs, seen, total, Bottleneck::Air);
            window::of_newcomer(share, target, seen)
        })
    }

    fn target(&self, seen: &Observation) -> Duration {
        target::queue(&self.knobs, seen, self.share.total, self.share.bottleneck(seen))
    }

    fn measure(&mut self, now: Instant, seen: &Observation, path: Path) -> Situation {
        self.ticks = self.ticks.saturating_add(1);
        let share = self.share.on_tick(now, self.ticks, seen);
        let target = self.target(seen);
        let trouble = seen.sending().any(|connection| {
            let state = connection.figures.congestion_state;
            matches!(state, CongestionState::Recovery | CongestionState::Loss)
        });
        self.trouble = if trouble { self.trouble.saturating_add(1) } else { 0 };
        let rate = seen.mean_rate.max(seen.delivery_rate);
        Situation {
            path,
            share,
            target,
            rate,
            window: seen.window(),
            senders: seen.senders,
            connections: u32::try_from(seen.sending().count()).unwrap_or(u32::MAX),
            trouble,
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
        reasons: &mut Vec<Reason>,
    ) -> Bounds {
        let sending = observation.sending().next().is_some();
        let Some(rtt) = observation.rtt.filter(|_| sending) else {
            return self.idle(observation, reasons);
        };
        let situation = self.measure(now, observation, Path::of(rtt, &observation.peers));
        let released = self.release.on_tick(now, &situation, self.share.used);
        let mut phase = if released { Phase::Released } else { self.advance(now, &situation) };
        let less = match phase {
            Phase::Steady | Phase::Probing => {
                self.drain.on_tick(now, self.ticks, &situation, observation.mss())
            }
            _ => None,
        };
        if less.is_some() {
            phase = Phase::Draining;
        }
        reasons.push(Reason::Airtime {
            senders: observation.senders,
            rate: situation.rate,
            share: situation.share,
            growth: situation.path.growth,
            target: situation.target,
            phase,
        });
        match (phase, less) {
            (Phase::Released, _) => self.released_window(now, &situation, observation),
            (Phase::Opening, _) => self.opening_window(&situation, observation),
            (_, Some(window)) => window::drained(window, &situation, observation),
            (_, None) => self.window(&situation, observation),
        }
    }
}
