//! A share of the air and a short queue: our own law.

use std::collections::VecDeque;

use wakeai_units::{Bytes, Duration, Instant, Rate, Segments};

use crate::{Bounds, CongestionState, Law, Narrator, Observation, PeerView, Reason, RttView};

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
    fn default() -> Self {
        Self {
            queue_rounds_percent: 200,
            queue_min: Duration::from_millis(20),
            queue_max: Duration::from_millis(100),
        }
    }
}

/// The longest PPDU (802.11-2020 table 19-25 aPPDUMaxTime) and the largest A-MPDU of 802.11n.
const LONGEST_PPDU: Duration = Duration::from_micros(5_484);
const LARGEST_AMPDU: Bytes = Bytes::new(65_535);
/// What a turn costs beside its data: contention, preamble, SIFS, acknowledgement.
const TURN_OVERHEAD: Duration = Duration::from_micros(300);

const PERMILLE: u32 = 1000;
/// While nothing has queued yet: window up to four times what was delivered in a round trip, so
/// that slow start is not held back, and at least twice that.
const OPENING_CEILING: u32 = 3 * PERMILLE;
const OPENING_FLOOR: u32 = PERMILLE;

/// The law `airtime`.
#[derive(Clone, Debug)]
pub struct Airtime {
    knobs: AirtimeKnobs,
    /// Rates of the last ticks with their times.
    rates: VecDeque<(Instant, Rate)>,
    /// How much more than `x·R` to try, permille; `None` before anything has queued.
    probe: Option<u32>,
    /// When the probe may change again: one round trip after it did.
    round_end: Instant,
    /// Since when growth has been far above its target.
    high_since: Option<Instant>,
    window: Option<Segments>,
    trouble: u32,
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
            window: None,
            trouble: 0,
        }
    }

    /// The growth to aim at: so much that every station has a full aggregate waiting when its turn
    /// comes.
    fn queue_target(&self, observation: &Observation) -> Duration {
        let turn = observation
            .own
            .link_rate
            .and_then(|rate| rate.time_for(LARGEST_AMPDU))
            .map_or(LONGEST_PPDU, |time| time.min(LONGEST_PPDU))
            + TURN_OVERHEAD;
        let round = turn * (u64::from(observation.senders) + 1); // the access point's turn too
        let buffered =
            u64::from(observation.access_point_buffer) * u64::from(observation.segments_per_ack);
        let acks =
            observation.total_rate.time_for(observation.mss() * buffered).unwrap_or(Duration::MAX);
        let acks = acks / 2;
        round
            .mul_div(u64::from(self.knobs.queue_rounds_percent), 100)
            .unwrap_or(Duration::MAX)
            .min(acks)
            .clamp(self.knobs.queue_min, self.knobs.queue_max)
    }

    /// What was delivered, over a round trip or a tick, whichever is longer.
    fn rate(&mut self, now: Instant, observation: &Observation, rtt: RttView) -> Rate {
        self.rates.push_back((now, observation.delivery_rate));
        while self.rates.len() > 1
            && self.rates.front().is_some_and(|(at, _)| now.saturating_since(*at) >= rtt.current)
        {
            self.rates.pop_front();
        }
        let sum: Rate = self.rates.iter().map(|(_, rate)| *rate).sum();
        sum / self.rates.len() as u64
    }
}

/// This station's share of what the air carries, by weights: `w_i · Σ(x_j/w_j) / n`. Weights are
/// what each reaches alone, or its PHY rate, where all of them say so; else all are equal. A peer
/// that has just begun to send and has announced no rate yet is taken for an average one.
fn fair_share(observation: &Observation) -> Rate {
    let peers: Vec<&PeerView> = observation
        .peers
        .iter()
        .filter(|peer| peer.sending && peer.delivery_rate > Rate::ZERO)
        .collect();
    let weights = |own: Option<Rate>, of: fn(&PeerView) -> Option<Rate>| {
        let known = |rate: &Rate| *rate > Rate::ZERO;
        let theirs: Option<Vec<Rate>> = peers.iter().map(|peer| of(peer).filter(known)).collect();
        Some((own.filter(known)?, theirs?))
    };
    let (own, theirs) = weights(observation.max_rate, |peer| peer.max_rate)
        .or_else(|| weights(observation.own.link_rate, |peer| peer.link_rate))
        .unwrap_or_else(|| (Rate::from_bps(1), vec![Rate::from_bps(1); peers.len()]));
    let scaled = peers.iter().zip(&theirs).filter_map(|(peer, weight)| {
        peer.delivery_rate.mul_div(own.bits_per_second(), weight.bits_per_second())
    });
    scaled.sum::<Rate>().saturating_add(observation.mean_rate) / (peers.len() as u64 + 1)
}

fn permille(window: Segments, factor: u32) -> Segments {
    let scaled = u64::from(window.get()) * u64::from(factor) / u64::from(PERMILLE);
    Segments::new(u32::try_from(scaled).unwrap_or(u32::MAX))
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
        let (Some(rtt), true) = (observation.rtt, observation.sending().next().is_some()) else {
            *self = Self::new(self.knobs.clone());
            narrator.narrate(Reason::Idle);
            return Bounds::NONE;
        };
        let mss = observation.mss();
        let target = self.queue_target(observation);
        let rate = self.rate(now, observation, rtt);
        let path = Segments::in_flight(rate, rtt.min, mss);
        let share = fair_share(observation);
        let full = rtt.growth >= target / 2;
        let k = 2;
        let aim = if rate > share && full {
            rate.saturating_sub(rate.saturating_sub(share) / k)
        } else if rtt.growth < target + target / 4 {
            rate + share.saturating_sub(rate) / k
        } else {
            rate
        };
        let path = Segments::in_flight(if full { aim } else { rate }, rtt.min, mss);
        let queue = Segments::in_flight(aim, target, mss).max(Segments::new(2));
        let trouble = observation.sending().any(|c| {
            matches!(c.congestion_state, CongestionState::Recovery | CongestionState::Loss)
        });
        let empty = !trouble && rtt.growth < (target / 2).max(rtt.min / 16);
        let low = rtt.growth < target.max(rtt.min / 8) && !trouble;
        if now >= self.round_end {
            self.round_end = now + rtt.current;
            match &mut self.probe {
                None if low => {}
                Some(probe) if empty => *probe = (*probe * 2).clamp(125, PERMILLE),
                probe => *probe = Some(0),
            }
        } else if !low {
            self.probe = Some(0);
        }
        let (extra_ceiling, extra_floor) = match self.probe {
            None => (OPENING_CEILING, OPENING_FLOOR),
            Some(probe) => (probe, probe),
        };
        let mut ceiling = path + permille(path, extra_ceiling) + queue;
        let window = observation.window();
        let mut floor = (path + permille(path, extra_floor))
            .min(window + Segments::new(256.max(window.get() / 2)));
        if let Some(link) = observation.own.link_rate {
            let most =
                Segments::in_flight(link / u64::from(observation.senders), rtt.min + target, mss);
            if self.probe.is_none() {
                let bound = most.max(path + path + queue);
                ceiling = ceiling.min(bound);
                floor = floor.min(bound);
            }
        }
        if self.probe.is_some() && !trouble && rtt.growth < target * 2 {
            if let Some(last) = self.window {
                ceiling =
                    Segments::new(((u64::from(last.get()) + u64::from(ceiling.get())) / 2) as u32);
            }
        }
        if rtt.growth < target && !trouble {
            ceiling = ceiling.max(self.window.unwrap_or(ceiling));
        }
        // A queue that stays long although we hold back: send less until it, or the path, is known.
        let high = rtt.growth > target * 2 + rtt.min / 4;
        if !high {
            self.high_since = None;
        } else {
            let since = *self.high_since.get_or_insert(now);
            if now.saturating_since(since) > (rtt.current * 2).max(Duration::from_secs(2)) {
                let half = Segments::new(observation.window().get() / 2).max(Segments::new(2));
                ceiling = ceiling.min(half);
            }
        }
        if !low {
            floor = permille(path, 850);
        }
        let pacing = self.probe.is_none().then(|| {
            let want = window.max(floor);
            (Rate::of(want.bytes(mss), rtt.current) * 5 / 2).max(rate * 3)
        });
        self.trouble = if trouble { self.trouble + 1 } else { 0 };
        if self.trouble > 3 {
            floor = Segments::new(floor.get() >> (self.trouble - 3).min(31));
        }
        ceiling = ceiling.max(Segments::new(4));
        self.window = Some(ceiling);
        narrator.narrate(Reason::Airtime {
            senders: observation.senders,
            rate,
            growth: rtt.growth,
            target,
            probe: self.probe,
        });
        Bounds { pacing, ..Bounds::window(floor, ceiling) }
    }
}
