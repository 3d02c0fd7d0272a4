//! Measures the rate that the air carries, and divides this rate among the stations.

use wakeai_connection::Direction;
use wakeai_units::{Instant, Rate};

use super::asking::EFFICIENCY_PERCENT;
use crate::weights::{Basis, delivering};
use crate::windowed::WindowedMax;
use crate::{Observation, PeerView, Share, StationId};

/// The weight to which rates are scaled before they are compared. A station's weight is the rate
/// that it reaches alone, or its PHY rate ([`crate::weights`]). Its scaled rate is the rate that a
/// station of the weight `UNIT` would have in the same airtime.
const UNIT: Rate = Rate::from_mbps(1_000);
/// The largest scaled rate that counts, as a multiple of [`UNIT`].
const MOST_OF_UNIT: u64 = 2;
/// A station is light while it delivers less than this percentage of an equal share. A light
/// station needs no more.
const LIGHT_PERCENT: u64 = 85;
/// A light station gets this percentage of its present rate, so that it can grow at once. The
/// others divide the rest.
const LIGHT_GROWTH_PERCENT: u64 = 110;
/// The sum of the stations' scaled rates is smoothed by an exponential mean, in which the newest
/// tick (0.5 s) counts for 1 / this number. The mean is needed because the sum of many stations'
/// rates varies, and the maximum of a varying sum is above the rate that the air carries.
const TICKS_IN_MEAN: u64 = 4;

/// Watches the sum of the stations' rates in both directions, each scaled to [`UNIT`].
#[derive(Clone, Debug, Default)]
pub(super) struct AirMeter {
    basis: Basis,
    /// The exponential mean of the sum; `None` before the first tick.
    mean: Option<Rate>,
    /// The maximum of `mean` in the last ten seconds.
    used: WindowedMax<Rate>,
}

impl AirMeter {
    pub(super) fn on_tick(&mut self, now: Instant, seen: &Observation) {
        let only_receives = seen.down.is_active() && !seen.up.is_active();
        let basis = Basis::of(seen, if only_receives { Direction::Down } else { Direction::Up });
        if std::mem::discriminant(&basis) != std::mem::discriminant(&self.basis) {
            *self = Self::default();
        }
        self.basis = basis;
        let own = self.own_rates(seen);
        let peers = delivering(seen).map(|peer| self.scaled_rate(peer));
        let sum = peers.sum::<Rate>().saturating_add(own);
        let kept = |mean: Rate| mean.times(TICKS_IN_MEAN - 1, TICKS_IN_MEAN);
        let mean = self.mean.map_or(sum, |mean| kept(mean).saturating_add(sum / TICKS_IN_MEAN));
        self.mean = Some(mean);
        self.used.push(now, mean);
    }

    /// The rate that a station with the weight `weight` would deliver with all airtime; `None`
    /// where neither rates nor weights are known.
    pub(super) fn whole_for(&self, weight: Rate) -> Option<Rate> {
        let carried = self.carried();
        let whole = carried.mul_div(weight.bits_per_second(), UNIT.bits_per_second())?;
        (whole > Rate::ZERO).then_some(whole)
    }

    /// The rate that the air carries, scaled to [`UNIT`]. It is the measured rate, but at least an
    /// estimate from the weights, because the measured rate is too low while the stations send
    /// little.
    fn carried(&self) -> Rate {
        let least = match self.basis {
            Basis::Max => UNIT * 9 / 10,
            Basis::Phy { .. } => UNIT * EFFICIENCY_PERCENT / 100,
            Basis::Equal => Rate::ZERO,
        };
        self.used.get().max(least)
    }

    /// The largest rate of this station in a direction when the share `rest` of the airtime is divided
    /// by max-min fairness. What the station moves in the other direction takes a part of its share, up
    /// to half. The peers for which `shares` holds take part in the division, and this station does
    /// where `takes_part` holds. `None` where the rate that the air carries is not known.
    pub(super) fn level(
        &self,
        rest: Share,
        (seen, direction): (&Observation, Direction),
        takes_part: bool,
        shares: impl Fn(StationId) -> bool,
    ) -> Option<Rate> {
        let weight = self.own_weight(seen, direction);
        let peers =
            seen.peers.iter().filter(|peer| peer.announced.is_active() && shares(peer.station));
        let mut rates: Vec<Rate> = peers.map(|peer| self.scaled_rate(peer)).collect();
        rates.extend(takes_part.then(|| self.own_rates(seen)));
        let level = level(rest.of_rate(self.carried()), rates);
        let level = level.saturating_sub(self.own_rate(seen, direction.other()).min(level / 2));
        let own = level.mul_div(weight.bits_per_second(), UNIT.bits_per_second())?;
        (own > Rate::ZERO).then_some(own)
    }

    /// The share of the airtime that the other stations leave unused, from the announced rates of
    /// the peers for which `shares` holds.
    pub(super) fn left_by(&self, seen: &Observation, shares: impl Fn(StationId) -> bool) -> Share {
        let peers =
            seen.peers.iter().filter(|peer| peer.announced.is_active() && shares(peer.station));
        let used: Rate = peers.map(|peer| self.scaled_rate(peer)).sum();
        Share::of(self.carried().saturating_sub(used), self.carried()).unwrap_or(Share::ZERO)
    }

    pub(super) fn own_weight(&self, seen: &Observation, direction: Direction) -> Rate {
        self.basis.own_weight(seen, direction).unwrap_or(UNIT)
    }

    /// The scaled rate of this station in one direction.
    fn own_rate(&self, seen: &Observation, direction: Direction) -> Rate {
        self.scaled(seen.of(direction).mean_rate, self.own_weight(seen, direction))
    }

    /// The scaled rate of this station in both directions together.
    fn own_rates(&self, seen: &Observation) -> Rate {
        Direction::BOTH.into_iter().map(|direction| self.own_rate(seen, direction)).sum()
    }

    /// The scaled rate of a peer in both directions together.
    fn scaled_rate(&self, peer: &PeerView) -> Rate {
        let scaled = |direction| {
            let weight = self.basis.weight(&peer.announced, direction).unwrap_or(UNIT);
            self.scaled(peer.announced.of(direction).rate, weight)
        };
        Direction::BOTH.into_iter().map(scaled).sum()
    }

    /// The rate that a station of weight [`UNIT`] would deliver in the same airtime, at most
    /// [`MOST_OF_UNIT`] times [`UNIT`].
    fn scaled(&self, rate: Rate, weight: Rate) -> Rate {
        if self.basis == Basis::Equal {
            return rate;
        }
        let most = UNIT * MOST_OF_UNIT;
        let scaled = rate.mul_div(UNIT.bits_per_second(), weight.bits_per_second());
        scaled.unwrap_or(most).min(most)
    }
}

/// The largest rate of a station when `budget` is divided by max-min fairness. A station whose rate
/// in `rates` is clearly below an equal part keeps this rate with a little room to grow, and the
/// others divide the rest equally.
fn level(budget: Rate, mut rates: Vec<Rate>) -> Rate {
    rates.sort();
    let (mut left, mut count) = (budget, rates.len() as u64);
    for rate in rates {
        let equal = left / count;
        let light = equal.times(LIGHT_PERCENT, 100);
        if rate >= light || count == 1 {
            return equal;
        }
        let kept = rate.times(LIGHT_GROWTH_PERCENT, 100);
        (left, count) = (left.saturating_sub(kept), count - 1);
    }
    left
}

#[cfg(test)]
mod tests {
    use wakeai_units::Duration;

    use super::*;
    use crate::observation::{peer, traffic, uploads};
    use crate::{Announcement, OwnTraffic, Traffic};

    fn mbps(rates: &[u64]) -> Vec<Rate> {
        rates.iter().map(|rate| Rate::from_mbps(*rate)).collect()
    }

    #[test]
    fn stations_that_want_more_share_what_the_others_leave() {
        let budget = Rate::from_mbps(12);
        assert_eq!(level(budget, mbps(&[4, 5, 9])), Rate::from_mbps(4));
        assert_eq!(level(budget, mbps(&[0, 9, 9])), Rate::from_mbps(6));
        assert_eq!(
            level(budget, mbps(&[1, 1, 1])),
            Rate::from_mbps(12) - Rate::from_bps(2_200_000)
        );
        assert_eq!(level(budget, Vec::new()), budget);
    }

    fn seen(own: u64, max: Option<u64>, link: Option<u64>, peers: Vec<PeerView>) -> Observation {
        let (mean_rate, max_rate) = (Rate::from_mbps(own), max.map(Rate::from_mbps));
        let up = OwnTraffic { mean_rate, max_rate, ..OwnTraffic::default() };
        Observation { up, link_rate: link.map(Rate::from_mbps), peers, ..Observation::default() }
    }

    fn weighted(id: u64, rate: u64, max: Option<u64>, link: u64) -> PeerView {
        let (max_rate, link_rate) = (max.map(Rate::from_mbps), Some(Rate::from_mbps(link)));
        let up = Traffic { max_rate, ..traffic(rate) };
        peer(id, Announcement { link_rate, ..uploads(up) })
    }

    #[test]
    fn a_slow_station_gets_the_same_air_and_fewer_bytes() {
        let peers = vec![weighted(2, 2, Some(5), 6), weighted(3, 10, Some(25), 54)];
        let seen = seen(10, Some(25), Some(54), peers);
        let mut air = AirMeter::default();
        air.on_tick(Instant::ZERO, &seen);
        // The stations use 2/5, 10/25 and 10/25 of the air.
        assert_eq!(air.whole_for(Rate::from_mbps(25)), Some(Rate::from_mbps(30)));
        assert_eq!(air.whole_for(Rate::from_mbps(5)), Some(Rate::from_mbps(6)));
        let level = air.level(Share::from_percent(50), (&seen, Direction::Up), true, |_| true);
        assert_eq!(level, Some(Rate::from_mbps(5)));
    }

    #[test]
    fn both_directions_of_a_station_count_and_share_its_level() {
        let max_rate = Some(Rate::from_mbps(50));
        let both = |up, down| {
            let [up, down] = [up, down].map(|mbps| Traffic { max_rate, ..traffic(mbps) });
            peer(2, Announcement { up, down, ..Announcement::default() })
        };
        let own = |mbps| {
            let mean_rate = Rate::from_mbps(mbps);
            OwnTraffic { mean_rate, max_rate, ..OwnTraffic::default() }
        };
        let peers = vec![both(10, 15)];
        let seen = Observation { up: own(20), down: own(5), peers, ..Observation::default() };
        let mut air = AirMeter::default();
        air.on_tick(Instant::ZERO, &seen);
        // Each of the two uses half of the air.
        assert_eq!(air.whole_for(Rate::from_mbps(50)), Some(Rate::from_mbps(50)));
        let level = |direction| air.level(Share::WHOLE, (&seen, direction), true, |_| true);
        assert_eq!(level(Direction::Up), Some(Rate::from_mbps(20)), "downloads have 5 of 25");
        assert_eq!(level(Direction::Down), Some(Rate::from_bps(12_500_000)), "half at least");
    }

    #[test]
    fn the_owner_of_a_reservation_does_not_share_the_rest() {
        let peers = vec![weighted(2, 10, Some(25), 54), weighted(3, 10, Some(25), 54)];
        let seen = seen(5, Some(25), Some(54), peers);
        let mut air = AirMeter::default();
        air.on_tick(Instant::ZERO, &seen);
        let half = Share::from_percent(50);
        let level =
            air.level(half, (&seen, Direction::Up), true, |station| station != StationId(2));
        assert_eq!(level, Some(Rate::from_bps(12_500_000) - Rate::from_bps(5_500_000)));
    }

    #[test]
    fn the_weights_are_those_that_all_stations_announce() {
        let phy = vec![weighted(2, 10, None, 54)];
        let basis = |seen: &Observation| Basis::of(seen, Direction::Up);
        assert_eq!(
            basis(&seen(5, Some(25), Some(54), phy.clone())),
            Basis::Phy { unknown: Rate::from_mbps(54) }
        );
        assert_eq!(basis(&seen(5, Some(25), None, phy)), Basis::Equal);
        assert_eq!(basis(&seen(5, Some(25), None, Vec::new())), Basis::Max);
    }

    #[test]
    fn a_varying_sum_counts_by_its_mean() {
        let mut air = AirMeter::default();
        for tick in 0..200 {
            let (rate, now) =
                (20 + 10 * (tick % 2), Instant::ZERO + Duration::from_millis(tick * 500));
            air.on_tick(now, &seen(rate, None, Some(25), Vec::new()));
        }
        let whole = air.whole_for(Rate::from_mbps(25)).map_or(0.0, Rate::as_mbps_f64);
        assert!((25.0..27.0).contains(&whole), "{whole}");
    }

    #[test]
    fn a_rate_counts_up_to_twice_what_its_station_reaches() {
        // In the second case the peer's rate would not fit 64 bits when it is scaled.
        for max in [60, 1] {
            let mut air = AirMeter::default();
            let max_rate = Some(Rate::from_bps(max));
            let liar = peer(2, uploads(Traffic { max_rate, ..traffic(1_000_000) }));
            air.on_tick(Instant::ZERO, &seen(10, Some(25), None, vec![liar]));
            assert_eq!(air.whole_for(Rate::from_mbps(25)), Some(Rate::from_mbps(2 * 25 + 10)));
        }
    }

    #[test]
    fn on_an_idle_air_the_weights_give_the_estimate() {
        let mut air = AirMeter::default();
        air.on_tick(Instant::ZERO, &seen(0, Some(20), None, Vec::new()));
        assert_eq!(air.whole_for(Rate::from_mbps(20)), Some(Rate::from_mbps(18)));
        air.on_tick(Instant::ZERO, &seen(0, None, Some(50), Vec::new()));
        assert_eq!(air.whole_for(Rate::from_mbps(50)), Some(Rate::from_mbps(20)));
        air.on_tick(Instant::ZERO, &seen(0, None, None, Vec::new()));
        assert_eq!(air.whole_for(UNIT), None);
    }
}
