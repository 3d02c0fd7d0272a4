//! What a station may aim at: its share of the air.

use wakeai_units::{Instant, Rate};

use super::history::Highest;
use crate::{Observation, PeerView};

/// A whole, in the parts that utilisations are kept in.
const WHOLE: u64 = 1_000_000;
/// What all stations together reach of what each reaches alone, before that is measured …
const EXPECTED_OF_MAX: u64 = WHOLE;
/// … and of the PHY rate.
const EXPECTED_OF_PHY: u64 = 600_000;
/// For so many ticks what others announced may be older than this station's own traffic.
const FRESH_TICKS: u32 = 10;

/// How well the air is used, and what a station's part of that is.
#[derive(Clone, Debug, Default)]
pub(super) struct Share {
    /// The sum over the senders of rate / weight, millionths.
    highest: Highest,
    /// The latest sum in parts of what is expected, where enough is known.
    used: Option<u64>,
    /// What the middle one of the peers delivers, as it were this station.
    middle: Rate,
}

/// The weights of a tick: what each station reaches alone (`Max_i`), or its PHY rate, where all say so;
/// else all are equal. Equal parts of the air give rates in proportion to them.
struct Weights<'a> {
    own: Rate,
    /// Peers whose rate is known, with their weights.
    peers: Vec<(&'a PeerView, Rate)>,
    expected: Option<u64>,
}

fn weights(seen: &Observation) -> Weights<'_> {
    let peers = || seen.peers.iter().filter(|peer| peer.delivery_rate > Rate::ZERO);
    let of = |own: Option<Rate>, of: fn(&PeerView) -> Option<Rate>, expected| {
        let known = |rate: &Rate| *rate > Rate::ZERO;
        let peers: Option<Vec<_>> = peers().map(|p| Some((p, of(p).filter(known)?))).collect();
        Some(Weights { own: own.filter(known)?, peers: peers?, expected: Some(expected) })
    };
    of(seen.max_rate, |peer| peer.max_rate, EXPECTED_OF_MAX)
        .or_else(|| of(seen.own.link_rate, |peer| peer.link_rate, EXPECTED_OF_PHY))
        .unwrap_or_else(|| {
            let one = Rate::from_mbps(1);
            Weights { own: one, peers: peers().map(|p| (p, one)).collect(), expected: None }
        })
}

fn part(rate: Rate, weight: Rate) -> u64 {
    rate.mul_div(WHOLE, weight.bits_per_second()).map_or(u64::MAX / 4096, Rate::bits_per_second)
}

impl Share {
    /// The share of this station, which is sending since so many ticks.
    pub(super) fn on_tick(&mut self, now: Instant, ticks: u32, seen: &Observation) -> Rate {
        let weights = weights(seen);
        let rate_of = |part: u64| weights.own.mul_div(part, WHOLE).unwrap_or(weights.own);
        let own = part(seen.mean_rate, weights.own);
        let (wanting, content): (Vec<_>, Vec<_>) =
            weights.peers.iter().partition(|(peer, _)| peer.sending);
        let mut parts: Vec<u64> = wanting.iter().map(|(peer, w)| part(peer.delivery_rate, *w)).collect();
        let senders = u64::from(seen.senders.max(1));
        let known = parts.len() as u64 + 1;
        let enough = known * 4 >= senders * 3;
        let total = (parts.iter().sum::<u64>() + own) / known * senders;
        self.middle = if parts.len() >= 3 {
            let middle = parts.len() / 2;
            rate_of(*parts.select_nth_unstable(middle).1)
        } else {
            Rate::ZERO
        };
        // Who does not want more than it has takes that, and at most an equal part.
        let equal = weights.expected.unwrap_or(total) / (senders + content.len() as u64);
        let taken: u64 =
            content.iter().map(|(peer, w)| part(peer.delivery_rate, *w).min(equal)).sum();
        let fresh = !enough || ticks <= FRESH_TICKS;
        let highest = if enough { self.highest.push(now, total + taken) } else { 0 };
        self.used = weights
            .expected
            .filter(|_| !fresh)
            .map(|expected| (total + taken).saturating_mul(WHOLE) / expected);
        let carried = match weights.expected {
            None => highest.max(total + taken),
            Some(expected) if fresh => highest.max(expected).min(expected * 5 / 4),
            Some(expected) => highest.clamp(expected * 85 / 100, expected * 5 / 4),
        };
        rate_of(carried.saturating_sub(taken) / senders)
    }

    /// What all deliver in parts of what they can be expected to, millionths; `None` while not enough is
    /// known.
    pub(super) fn used(&self) -> Option<u64> {
        self.used
    }

    /// What the middle one of the peers delivers, scaled to this station's weight.
    pub(super) fn middle(&self) -> Rate {
        self.middle
    }
}

/// The share of a station that begins to send now, where what it reaches alone is known.
pub(super) fn of_newcomer(seen: &Observation) -> Option<Rate> {
    let others = seen.peers.iter().filter(|peer| peer.sending).count() as u64;
    Some(seen.max_rate? / (others + 1))
}
