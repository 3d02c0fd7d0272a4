//! What a tick is decided on.

use wakeai_units::{Bytes, Duration, Instant, Rate, Segments};

use super::Airtime;
use super::arithmetic::times;
use super::share::{fair_share, queue_target};
use crate::{CongestionState, Observation, RttView};

/// What a tick is decided on.
pub(super) struct Situation {
    pub(super) rtt: RttView,
    pub(super) target: Duration,
    pub(super) mss: Bytes,
    pub(super) senders: u32,
    pub(super) link_rate: Option<Rate>,
    /// Windows of the sending connections, and how many there are.
    pub(super) window: Segments,
    pub(super) connections: u32,
    /// Delivered over a round trip or a tick, whichever is longer.
    pub(super) rate: Rate,
    /// The part of the air that is ours.
    pub(super) share: Rate,
    /// A connection repairs losses.
    pub(super) trouble: bool,
}

impl Situation {
    /// The queue is so short that there may be air left.
    pub(super) fn queue_is_empty(&self) -> bool {
        !self.trouble && self.rtt.growth < self.target / 2
    }

    /// There is no more queue than a burst of slow start leaves behind.
    pub(super) fn nothing_queues(&self) -> bool {
        !self.trouble && self.rtt.growth < self.target.max(self.rtt.min / 16)
    }

    pub(super) fn queue_is_far_too_long(&self) -> bool {
        self.rtt.growth > self.target * 2 + self.rtt.min / 4
    }

    /// The rate to aim at: half way from ours to the share. Who has more yields only while there
    /// is a queue, so a share that others leave unused is not wasted; who has less asks for more
    /// only while the queue is short.
    pub(super) fn aim(&self) -> Rate {
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
    pub(super) fn lifted(&self) -> Rate {
        let far_below = self.rate < times(self.share, 3, 4);
        let long = self.rtt.min > self.target;
        if far_below && long && self.queue_is_empty() { self.aim() } else { self.rate }
    }

    pub(super) fn in_flight(&self, rate: Rate, span: Duration) -> Segments {
        Segments::in_flight(rate, span, self.mss)
    }

    /// Fewer than four segments in flight cannot lose one without a timeout.
    pub(super) fn least_window(&self) -> Segments {
        Segments::new(self.connections.saturating_mul(2).max(4))
    }
}

impl Airtime {
    pub(super) fn measure(&mut self, now: Instant, seen: &Observation, rtt: RttView) -> Situation {
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
}
