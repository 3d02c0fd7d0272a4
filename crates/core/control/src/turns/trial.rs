//! Judges a trial. In a trial a station sends for a second although it is not its turn. The trial
//! shows whether the stations before it in the order of turns leave the air unused.

use wakeai_units::{Duration, Rate};

use crate::{Announcement, Observation};

/// A trial succeeds where the station delivers more than this percentage of a fair part of the air.
const CLEARLY_MORE_PERCENT: u64 = 160;
/// A trial also succeeds where all stations together use less than this part of the air,
/// millionths, by their announced rates.
const LITTLE_USED: u64 = 800_000;
/// Where the queueing delay is at least this, the announced rates do not make a trial succeed.
const MOST_DELAY: Duration = Duration::from_millis(20);
/// The estimate of the rate that a station reaches alone where it was not measured, percent of the
/// PHY rate.
const ALONE_PERCENT_OF_PHY: u64 = 60;
/// The assumed rate that a station reaches alone where no rate is known.
const UNKNOWN: Rate = Rate::from_mbps(10);

/// The rate that this station reaches alone, measured or estimated.
pub(super) fn alone(seen: &Observation) -> Rate {
    let by_phy = seen.own.link_rate.and_then(of_phy);
    let measured = Some(seen.total_rate).filter(|rate| *rate > Rate::ZERO);
    seen.max_rate.or(by_phy).or(measured).unwrap_or(UNKNOWN)
}

fn of_phy(rate: Rate) -> Option<Rate> {
    rate.mul_div(ALONE_PERCENT_OF_PHY, 100)
}

/// Whether a trial shows that the air is unused. `best` is the largest delivery rate of this
/// station in one tick of the trial.
pub(super) fn finds_unused(seen: &Observation, best: Rate) -> bool {
    let alone = alone(seen);
    let sending = |of: &Announcement| of.turn.is_some() && of.sending;
    let others = seen.peers.iter().filter(|peer| sending(&peer.announced)).count() as u64;
    let fair = alone / (others + 1);
    let enough = fair.mul_div(CLEARLY_MORE_PERCENT, 100).unwrap_or(fair);
    if others > 0 && best > enough {
        return true;
    }
    // The part of the air, millionths, that `rate` takes for a station that reaches `alone`.
    let part = |rate: Rate, alone: Rate| {
        rate.mul_div(1_000_000, alone.bits_per_second().max(1)).map_or(0, Rate::bits_per_second)
    };
    let parts = seen.peers.iter().map(|peer| {
        let of = &peer.announced;
        let its = of.max_rate.or_else(|| of.link_rate.and_then(of_phy)).unwrap_or(alone);
        part(of.delivery_rate, its)
    });
    let used = parts.fold(part(best, alone), u64::saturating_add);
    // Stations without agents announce nothing, but their packets delay the packets of this
    // station.
    let delayed = seen.rtt.is_none_or(|rtt| rtt.growth >= MOST_DELAY);
    used < LITTLE_USED && !delayed
}
