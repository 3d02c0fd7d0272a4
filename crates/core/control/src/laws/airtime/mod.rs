//! The law `airtime` gives each station that sends or receives an equal share of the airtime, with the
//! queue that the goodput needs and no more.
//!
//! The window of a station is `W = w·X·(R + q)`. `w` is the weight of the station: the rate that it
//! reaches alone, if all senders announce that rate; else what a station should reach alone at its
//! PHY rate, if three quarters of them announce theirs; else the same for all. `X` is the part of the air that each sender may
//! have: the sum over all senders of rate / weight, divided by the number of senders. `R` is the RTT of the station's
//! path without queues, and `q` is the target queueing delay.
//!
//! The share of the station is the rate `w·X`. By Little's law, `W` is the window of a station that
//! delivers this rate with the queueing delay `q`.
//!
//! The window follows the station's share, and not the rate that the station delivers itself. A
//! window that followed its own rate would keep a slow station slow, and so preserve any
//! inequality.
//!
//! Let `C` be the total capacity, which is the sum of all shares `w·X`. The windows of stations
//! with the same `R` add up to `C·(R + q)`. Where the packets of all stations wait in one queue,
//! `C·R` of this sum is on the path and `C·q` waits in the queue. So the queueing delay is `q` (the
//! equilibrium of FAST TCP: Wei, Jin, Low and Hegde, 2006), and each station has its share.
//! `docs/concepts/laws.md` derives this, and shows the effect of each term.

mod aggregate;
mod backoff;
mod channel;
mod drain;
mod neighbours;
mod path;
mod rate;
mod share;
mod strangers;
mod target;
mod upload_trial;
mod window;

use wakeai_connection::{CongestionState, Direction};
use wakeai_units::{Bytes, Duration, Instant, Rate, Segments};

use self::channel::Queue;
use self::drain::Drain;
use self::neighbours::Neighbours;
pub(crate) use self::path::Path;
use self::rate::RateLimit;
use self::share::{AirtimeShare, Bottleneck, Follows};
use self::strangers::{Contest, Release};
use self::upload_trial::{Tried, UploadTrial};
use crate::driver::TICK;
use crate::observation::Side;
use crate::rates::MEAN_TICKS;
use crate::windowed::WindowedMax;
use crate::{AirtimeState, Basis, Bounds, Law, Limit, Observation, Phase};

/// After this many ticks the rates, which are means of so many, show a change whole: that a station has
/// begun to send, or that its window is another one.
const SETTLED_TICKS: u32 = MEAN_TICKS;
/// After this many ticks a station knows what the others deliver: theirs were settled when it had heard of them.
const KNOWN_TICKS: u32 = 2 * SETTLED_TICKS;
/// A station is behind where it delivers less than this percentage of its share.
const BEHIND_PERCENT: u64 = 80;

/// The knobs of [`Airtime`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AirtimeKnobs {
    /// In busy air the target is the time in which this percentage of a round passes, without the
    /// path. In a round each sending station sends one nearly full aggregate.
    pub queue_rounds_percent: u32,
    /// The least target queueing delay.
    pub queue_min: Duration,
    /// The largest target queueing delay in busy air, and the target beside stations that hold a
    /// longer queue.
    pub queue_max: Duration,
    /// Whether the law governs what the station receives, too. Otherwise that is neither bounded nor
    /// counted nor announced, as by agents that know uploads alone.
    pub downloads: bool,
}

impl Default for AirtimeKnobs {
    /// One round, at least 1 ms and at most 75 ms, in both directions.
    fn default() -> Self {
        Self {
            queue_rounds_percent: 100,
            queue_min: Duration::from_millis(1),
            queue_max: Duration::from_millis(75),
            downloads: true,
        }
    }
}

/// The law `airtime`. It governs what the station sends by its congestion windows, what it receives
/// by the windows that it offers, and what obeys no window by a rate. Both directions together have the share of
/// the station.
#[derive(Clone, Debug, Default)]
pub struct Airtime {
    up: OneWay,
    down: OneWay,
    unwindowed: RateLimit,
}

impl Airtime {
    /// The law with these knobs.
    pub fn new(knobs: AirtimeKnobs) -> Self {
        Self { up: OneWay::new(knobs.clone()), down: OneWay::new(knobs), ..Self::default() }
    }
}

impl Law for Airtime {
    fn on_tick(&mut self, now: Instant, observation: &Observation) -> (Bounds, Basis) {
        let side = observation.side(Direction::Up);
        let (bounds, up) = self.up.on_tick(now, side);
        let (receiving, down) = self.down.on_tick(now, observation.side(Direction::Down));
        let released = up.is_some_and(|state| state.phase == Phase::Released);
        let limit = self.unwindowed.on_tick(now, &self.up.knobs, side).filter(|_| !released);
        let up = up.or(limit.map(|(_, state)| state));
        let rate = limit.map(|(rate, _)| rate);
        let burst = rate.map_or(Duration::ZERO, |rate| rate::burst(rate, observation.link_rate));
        let basis = match (up, down) {
            (None, None) => Basis::Idle,
            (up, down) => Basis::Airtime { up, down },
        };
        let receive = if self.down.knobs.downloads { receiving.ceiling } else { Segments::MAX };
        (Bounds { receive, rate, burst, ..bounds }, basis)
    }
}

/// The law for one direction. The word "window" stands for the congestion windows of what the station
/// sends, and for the windows that it offers for what it receives. A window that is offered can be
/// limited, and cannot be raised: it has a ceiling alone.
///
/// At each tick it does three things: it estimates the path and the share, decides whether stations
/// with agents or stations without agents cause the queue, and sets the window.
#[derive(Clone, Debug, Default)]
struct OneWay {
    knobs: AirtimeKnobs,
    share: AirtimeShare,
    /// The largest rate that this station delivered in the last ten seconds.
    delivered: WindowedMax<Rate>,
    /// Whether the station is in [`Phase::Opening`], which ends when there is a queue.
    opening: bool,
    /// Whether the station probes: it multiplies the window for the share by `probe`. It does so while
    /// the queue is short, until the queueing delay is above its target.
    probing: bool,
    /// The factor of the probe, permille. It rises after some ticks with a nearly empty queue.
    probe: u32,
    /// The number of consecutive ticks with a nearly empty queue.
    empty_ticks: u32,
    /// The number of consecutive ticks with a queue within the target in which the station delivered more than its peers. Ticks with an
    /// empty queue, or with a longer one, do not count.
    ahead_ticks: u32,
    /// The number of ticks in which the station led ([`Self::leads`]), less those in which it did not; at most [`SETTLED_TICKS`].
    leading: u32,
    /// The window of the last tick, before it was rounded.
    window: Option<Bytes>,
    /// The bytes that rounding has taken from the windows so far; negative where rounding has added
    /// bytes. Above a whole aggregate, a part of the bytes counts as more ([`Self::aggregates`]).
    owed: i64,
    /// The target of the last tick, before a contest.
    target: Duration,
    contest: Contest,
    drain: Drain,
    neighbours: Neighbours,
    upload_trial: UploadTrial,
    /// The number of consecutive ticks with loss recovery.
    trouble: u32,
    release: Release,
    /// The number of ticks since the station began to send, or to receive.
    ticks: u32,
}

/// The measurements and estimates from which the bounds of a tick follow.
struct Situation {
    direction: Direction,
    path: Path,
    /// The rate that the station delivers with its share of the airtime.
    share: Rate,
    /// The part of the share that what obeys a window has: the rest is sent without a window.
    windowed: Rate,
    /// The target queueing delay.
    target: Duration,
    /// The longest target ([`AirtimeKnobs::queue_max`]).
    queue_max: Duration,
    /// The rate that this station delivers.
    rate: Rate,
    /// The sum of the windows of the active connections.
    window: Segments,
    /// The part of it of the connections that were not active at the last tick.
    beginning: Segments,
    connections: u32,
    /// The number of stations that send or receive, this one included.
    senders: u32,
    /// Whether the PHY rate is known, which shows that the interface is Wi-Fi.
    phy_rate_known: bool,
    /// Whether a sending connection is in loss recovery.
    trouble: bool,
    /// Whether stations send and stations receive.
    both_ways: bool,
    /// The rate of a peer ([`AirtimeShare::peers`]).
    peers: Rate,
}

#[cfg(test)]
impl Situation {
    /// The situation of one connection with a share of 10 Mbit/s, which it delivers, a target of 50 ms, and a longest
    /// target of 75 ms, where all see the same queueing delay.
    fn example(min_ms: u64, growth_ms: u64) -> Self {
        let (min, growth) = (Duration::from_millis(min_ms), Duration::from_millis(growth_ms));
        Self {
            direction: Direction::Up,
            path: Path { min, growth, current: min + growth, common: growth },
            share: Rate::from_mbps(10),
            windowed: Rate::from_mbps(10),
            target: Duration::from_millis(50),
            queue_max: Duration::from_millis(75),
            rate: Rate::from_mbps(10),
            window: Segments::new(100),
            beginning: Segments::ZERO,
            connections: 1,
            senders: 1,
            phy_rate_known: true,
            trouble: false,
            both_ways: false,
            peers: Rate::ZERO,
        }
    }
}

impl OneWay {
    fn new(knobs: AirtimeKnobs) -> Self {
        Self { knobs, probe: window::PROBE, ..Self::default() }
    }

    /// Resets the law. Returns the bounds while nothing is moved in this direction or no RTT is known. These
    /// bounds apply to a connection that begins before the next tick, and give it the window for
    /// the station's share. So stations that begin together do not fill the queue before they know
    /// each other.
    fn idle(&mut self, seen: Side<'_>) -> Bounds {
        *self = Self::new(self.knobs.clone());
        share::of_newcomer(seen).map_or(Bounds::NONE, |share| {
            // All stations together, each at its share, deliver as much as one station alone.
            let whole =
                AirtimeShare::of_total(seen.own().max_rate.unwrap_or(share), seen.direction);
            let target = target::queue(&self.knobs, seen, None, &whole, Bottleneck::Air);
            window::of_newcomer(share, target, seen)
        })
    }

    fn measure(&mut self, now: Instant, seen: Side<'_>, path: Path) -> Situation {
        self.ticks = self.ticks.saturating_add(1);
        let delay = if path.common > Duration::ZERO { path.common } else { path.growth };
        let queue = if self.upload_trial.is_running() {
            Queue::OF_OTHER_WINDOWS
        } else {
            Queue {
                exceeds_the_target: delay > self.target,
                is_too_long: path.is_too_long(self.target),
            }
        };
        let follows = match seen.direction {
            Direction::Up if self.upload_trial.may_follow(seen.seen.unix_time.is_some()) => {
                Follows::Channel
            }
            Direction::Up => Follows::Expected,
            Direction::Down => self.neighbours.follows(),
        };
        let share = self.share.on_tick(now, self.ticks, seen, queue, follows);
        let bottleneck = self.share.bottleneck(seen);
        self.target = target::queue(&self.knobs, seen, Some(path.min), &self.share, bottleneck);
        let own = seen.own();
        let count = |connections: usize| u32::try_from(connections).unwrap_or(u32::MAX);
        let (connections, free) = (own.windowed().count(), own.unwindowed().count());
        // What is sent without a window has its part of the share, and no more.
        let part = share.times(free as u64, (connections + free).max(1) as u64);
        let windowed = share.saturating_sub(own.rate_of(Limit::Rate, TICK).min(part));
        let trouble = own.windowed().any(|connection| {
            let state = connection.figures.congestion_state;
            matches!(state, CongestionState::Recovery | CongestionState::Loss)
        });
        self.trouble = if trouble { self.trouble.saturating_add(1) } else { 0 };
        let rate = own.mean_rate.max(own.delivery_rate);
        Situation {
            direction: seen.direction,
            path,
            share,
            windowed,
            target: self.target,
            queue_max: self.knobs.queue_max,
            rate,
            window: own.window(),
            beginning: own.window_of_beginning(),
            senders: seen.seen.senders,
            phy_rate_known: seen.seen.link_rate.is_some(),
            connections: count(connections),
            trouble,
            both_ways: seen.seen.has_both_directions(),
            peers: self.share.peers,
        }
    }
}

impl OneWay {
    /// The window for this tick, where the station holds less than that of its share, to measure something.
    fn less(&mut self, now: Instant, situation: &Situation, mss: Bytes) -> Option<Segments> {
        let drained = self.drain.on_tick(now, self.ticks, situation, mss);
        if situation.direction == Direction::Up {
            return drained;
        }
        let (share, may_begin) = (&mut self.share, drained.is_none());
        let tried = self.neighbours.on_tick(now, self.ticks, situation, share, mss, may_begin);
        drained.into_iter().chain(tried).min()
    }

    /// Makes the target longer where strangers fill the queue of downloads. Uploads wait in their own stations.
    fn contest(&mut self, now: Instant, situation: &mut Situation, checked: bool, seen: Side<'_>) {
        let tried = self.neighbours.has_tried_in_vain();
        let peers = self.share.peers;
        if self.contest.on_tick(now, self.ticks, situation, peers, checked, tried) {
            let most = self.knobs.queue_max.min(target::access_point_buffer(seen, &self.share));
            // With the RTT of the strangers' queue the window for the share has the share.
            let strangers = if tried { situation.path.growth } else { Duration::ZERO };
            situation.target = situation.target.max(most).max(strangers);
        }
    }

    /// The window of uploads for this tick, where all stations hold less to see whether strangers take the rest.
    fn try_uploads(
        &mut self,
        now: Instant,
        situation: &Situation,
        seen: Side<'_>,
        may_begin: bool,
    ) -> Option<Segments> {
        match self.upload_trial.on_tick(self.ticks, seen, situation, &self.share, may_begin) {
            Tried::Nothing => None,
            Tried::Less(window) => Some(window),
            Tried::Strangers => {
                self.release.begin(now);
                None
            }
        }
    }

    /// The bounds until the next tick, and the state from which they follow; `None` while nothing is
    /// moved in this direction.
    fn on_tick(&mut self, now: Instant, seen: Side<'_>) -> (Bounds, Option<AirtimeState>) {
        let own = seen.own();
        let Some(rtt) = own.rtt.filter(|_| own.is_active()) else {
            return (self.idle(seen), None);
        };
        let path = Path::of(rtt, seen, self.target);
        let mut situation = self.measure(now, seen, path);
        let checked = self.drain.has_checked();
        if seen.direction == Direction::Down {
            self.contest(now, &mut situation, checked, seen);
        }
        let released = self.release.on_tick(now, &situation, self.share.used_by_most);
        let mut phase = if released { Phase::Released } else { self.advance(now, &situation) };
        let holds = matches!(phase, Phase::Steady | Phase::Probing);
        let less = if holds {
            self.less(now, &situation, own.mss())
        } else {
            self.neighbours.give_up();
            None
        };
        let tried = match seen.direction {
            Direction::Up => self.try_uploads(now, &situation, seen, holds),
            Direction::Down => None,
        };
        // A check of the path needs its short window in a trial, too.
        let less = less.into_iter().chain(tried).min();
        if less.is_some() {
            phase = Phase::Draining;
        }
        let state = AirtimeState {
            senders: seen.seen.senders,
            rate: situation.rate,
            share: situation.share,
            growth: situation.path.growth,
            target: situation.target,
            phase,
        };
        let bounds = match (phase, less) {
            (Phase::Released, _) => self.released_window(now, &situation, seen),
            (Phase::Opening, _) => self.opening_window(&situation, seen),
            (_, Some(window)) => window::drained(window, &situation, seen),
            (_, None) => self.window(&situation, seen),
        };
        (bounds, Some(state))
    }
}
