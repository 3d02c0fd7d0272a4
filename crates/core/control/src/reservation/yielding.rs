//! Changes the bounds of a law so that reserved rates stay free.

use wakeai_connection::Direction;
use wakeai_units::{Duration, Rate, Segments};

use crate::driver::TICK;
use crate::laws::airtime::Path;
use crate::observation::Side;
use crate::{Bounds, Observation};

/// The largest rate of an owner (a station with an admitted reservation) while others leave airtime
/// free, percent of the reserved rate. The percentage is above 100 for two reasons: the owner can
/// make up for an earlier lower rate, and it can use airtime that all others leave unused. The
/// others then see in the owner's announced rate that the air carries more.
const OWNER_PERCENT: u64 = 160;
/// The smallest ceiling of an owner's window, percent of the product of its largest rate and its
/// RTT. The percentage is above 100 because the RTT may grow until the next tick.
const OWNER_WINDOW_PERCENT: u64 = 150;
/// The largest queueing delay that counts in the window of an owner. A longer queue does not give
/// the owner more turns, but delays all stations.
const OWNER_QUEUE: Duration = Duration::from_millis(300);
/// The largest queueing delay that counts in the window of a station without a reservation. If the
/// window grew with a longer queue, the queue would stay, and the station would stay saturated.
const QUEUE: Duration = Duration::from_millis(100);
/// Where the window for a station's rate has at least this size, the window limits the rate. The
/// station then sends in bursts, which fill aggregates. A smaller window cannot set the rate
/// finely, because one segment is a large part of it. So pacing limits the rate instead.
const WINDOWED: Segments = Segments::new(8);
/// The ceiling of a paced station's window, percent of the window that the pacing rate needs.
const PACED_PERCENT: u64 = 125;
/// The smallest window per connection, segments. With fewer segments in flight, a loss causes a
/// timeout.
const LEAST: u32 = 4;

/// The bounds of a station without a reservation. The station sends at most at the rate `level`, so
/// that it is not saturated.
pub(super) fn of_other(bounds: Bounds, level: Rate, seen: &Observation) -> Bounds {
    let seen = seen.side(Direction::Up);
    let is_rated = bounds.rate.is_some() || seen.own().unwindowed().next().is_some();
    let rate = is_rated.then(|| bounds.rate.unwrap_or(level).min(level));
    let bounds = Bounds { rate, ..bounds };
    let Some(path) = path(seen) else { return paced(bounds, level, seen) };
    let window = windowed(level, path, seen);
    if window >= WINDOWED {
        return lowered(bounds, window);
    }
    let span = path.min.saturating_add(QUEUE);
    let ceiling = Segments::in_flight(level.times(PACED_PERCENT, 100), span, seen.own().mss());
    paced(
        lowered(bounds, ceiling.max(least(seen))),
        bounds.pacing.unwrap_or(level).min(level),
        seen,
    )
}

/// The bounds of a station without a reservation that receives at most at the rate `level`. Its receive
/// window limits the rate.
pub(super) fn of_receiver(bounds: Bounds, level: Rate, seen: &Observation) -> Bounds {
    let seen = seen.side(Direction::Down);
    let Some(path) = path(seen) else { return bounds };
    let window = windowed(level, path, seen).max(least(seen));
    Bounds { receive: bounds.receive.min(window), ..bounds }
}

/// The bounds of a station whose reservation is admitted. The bounds allow at least the reserved
/// rate, whatever the law says. While others leave airtime free for the station, its rate is
/// limited to a multiple of the reserved rate, or to `level` where `level` is higher. `level` is
/// the largest rate that a station without a reservation may have now.
pub(super) fn of_owner(
    bounds: Bounds,
    reserved: Rate,
    level: Option<Rate>,
    seen: &Observation,
) -> Bounds {
    let seen = seen.side(Direction::Up);
    let whole = reserved.times(OWNER_PERCENT, 100);
    let needs = path(seen).map_or(Segments::MAX, |path| {
        let span = path.current.min(path.min.saturating_add(OWNER_QUEUE));
        Segments::in_flight(whole.times(OWNER_WINDOW_PERCENT, 100), span, seen.own().mss())
            .max(least(seen))
    });
    let by_law = bounds.pacing.map(|pacing| pacing.max(whole));
    let most = level.map(|level| level.max(whole));
    let pacing = [by_law, most].into_iter().flatten().min();
    let rate = bounds.rate.map(|rate| rate.max(whole));
    let bounds = Bounds { pacing: None, ceiling: bounds.ceiling.max(needs), rate, ..bounds };
    pacing.map_or(bounds, |pacing| paced(bounds, pacing, seen))
}

/// The path of this station, corrected by the queueing delays of all senders. The minimum RTT of
/// this station alone is not enough. Where the station began to send while others filled a queue,
/// its minimum RTT contains this queue. A window for this minimum would be too large for `level`
/// while the queue lasts.
fn path(seen: Side<'_>) -> Option<Path> {
    seen.own().rtt.map(|rtt| Path::of(rtt, seen, Duration::ZERO))
}

/// The window for the rate `level` at the present RTT, of whose queueing delay at most [`QUEUE`]
/// counts. Where the rate of the last tick exceeded `level`, half of the excess is first subtracted
/// from `level`, of which at least half remains.
fn windowed(level: Rate, path: Path, seen: Side<'_>) -> Segments {
    let excess = seen.own().delivery_rate.saturating_sub(level) / 2;
    let rate = level.saturating_sub(excess.min(level / 2));
    let span = path.current.min(path.min.saturating_add(QUEUE));
    Segments::in_flight(rate, span, seen.own().mss())
}

fn lowered(bounds: Bounds, ceiling: Segments) -> Bounds {
    let ceiling = bounds.ceiling.min(ceiling);
    Bounds { floor: bounds.floor.min(ceiling), ceiling, ..bounds }
}

/// Sets the pacing rate `rate`, but at least one segment per tick. At a lower rate no segment would
/// be sent before the next tick, which changes the bounds.
fn paced(bounds: Bounds, rate: Rate, seen: Side<'_>) -> Bounds {
    Bounds { pacing: Some(rate.max(Rate::of(seen.own().mss(), TICK))), ..bounds }
}

fn least(seen: Side<'_>) -> Segments {
    let connections = u32::try_from(seen.own().windowed().count()).unwrap_or(u32::MAX);
    Segments::new(connections.saturating_mul(LEAST).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::{example, peer, traffic, uploads};
    use crate::{OwnTraffic, RttView};

    const LEVEL: Rate = Rate::from_mbps(6);

    fn seen(min_ms: u64, growth_ms: u64) -> Observation {
        let (min, growth) = (Duration::from_millis(min_ms), Duration::from_millis(growth_ms));
        let up = OwnTraffic {
            connections: vec![example()],
            rtt: Some(RttView { current: min + growth, min, growth }),
            delivery_rate: LEVEL,
            ..OwnTraffic::default()
        };
        Observation { up, ..Observation::default() }
    }

    fn other(bounds: Bounds, seen: &Observation) -> Bounds {
        of_other(bounds, LEVEL, seen)
    }

    fn strictest() -> Bounds {
        let window = Bounds::window(Segments::ZERO, Segments::new(2));
        Bounds { pacing: Some(Rate::from_mbps(1)), ..window }
    }

    fn owner(bounds: Bounds, level: Option<Rate>, seen: &Observation) -> Bounds {
        of_owner(bounds, Rate::from_mbps(10), level, seen)
    }

    #[test]
    fn a_large_window_limits_the_rate() {
        let bounds = other(Bounds::NONE, &seen(100, 20));
        assert_eq!(
            bounds,
            Bounds::window(
                Segments::ZERO,
                Segments::in_flight(LEVEL, Duration::from_millis(120), seen(1, 1).mss(),)
            )
        );
    }

    #[test]
    fn a_queue_does_not_keep_itself_by_the_window() {
        let window = |growth_ms| other(Bounds::NONE, &seen(100, growth_ms)).ceiling;
        assert!(window(50) < window(100));
        assert_eq!(window(400), window(100));
        let window = |growth_ms| owner(strictest(), None, &seen(100, growth_ms)).ceiling;
        assert!(window(200) < window(300));
        assert_eq!(window(2_000), window(300));
    }

    #[test]
    fn a_queue_from_before_the_start_is_not_part_of_the_path() {
        // The others see a queueing delay of 200 ms, and this station sees a delay of 20 ms.
        let mut late = seen(185, 20);
        late.peers = (1..=3).map(|id| peer(id, uploads(traffic(5)))).collect();
        for peer in &mut late.peers {
            (peer.announced.up.min_rtt, peer.announced.up.growth) =
                (Some(Duration::from_millis(5)), Duration::from_millis(200));
        }
        let first = other(Bounds::NONE, &seen(46, 159)).ceiling; // 46 ms is a quarter of 185 ms
        assert_eq!(other(Bounds::NONE, &late).ceiling, first);
        assert!(first < other(Bounds::NONE, &seen(185, 20)).ceiling);
    }

    #[test]
    fn a_receiver_is_limited_by_its_window_alone() {
        let sending = seen(100, 20);
        let (up, down) = (OwnTraffic::default(), sending.up.clone());
        let receiving = Observation { up, down, ..Observation::default() };
        let sent = other(Bounds::NONE, &sending).ceiling;
        let bounds = of_receiver(Bounds::NONE, LEVEL, &receiving);
        assert_eq!(bounds, Bounds { receive: sent, ..Bounds::NONE });
        assert_eq!(of_receiver(Bounds::NONE, LEVEL, &sending), Bounds::NONE, "it receives nothing");
    }

    #[test]
    fn below_a_small_window_pacing_limits_the_rate() {
        let bounds = other(Bounds::NONE, &seen(5, 5));
        assert_eq!(bounds.pacing, Some(LEVEL));
        assert!(bounds.ceiling > WINDOWED && bounds.ceiling < Segments::new(100));
    }

    #[test]
    fn half_of_the_excess_of_the_last_tick_is_taken_off() {
        let mut seen = seen(100, 20);
        let before = other(Bounds::NONE, &seen).ceiling;
        seen.up.delivery_rate = LEVEL + LEVEL / 2;
        let after = other(Bounds::NONE, &seen).ceiling;
        assert!(after.get() * 4 <= before.get() * 3 + 4, "{before} {after}");
    }

    #[test]
    fn yielding_by_window_keeps_the_share_of_the_host_s_queue() {
        let small_queue = wakeai_units::Bytes::new(65_535);
        let bounds = other(Bounds { small_queue, ..Bounds::NONE }, &seen(100, 20));
        assert!(bounds.ceiling < Segments::MAX);
        assert_eq!(bounds.small_queue, small_queue);
    }

    #[test]
    fn tighter_bounds_of_the_law_stay() {
        let strict = Bounds::window(Segments::new(2), Segments::new(9));
        assert_eq!(other(strict, &seen(100, 20)), strict);
    }

    #[test]
    fn no_law_binds_an_owner_below_its_reservation() {
        let seen = seen(100, 20);
        let bounds = owner(strictest(), None, &seen);
        let needs =
            Segments::in_flight(Rate::from_mbps(10), Duration::from_millis(120), seen.mss());
        assert!(bounds.ceiling >= needs, "{bounds}");
        assert_eq!(bounds.pacing, Some(Rate::from_bps(16_000_000)));
    }

    #[test]
    fn an_owner_is_limited_while_others_yield() {
        let seen = seen(100, 20);
        assert_eq!(owner(Bounds::NONE, None, &seen).pacing, None);
        assert_eq!(
            owner(Bounds::NONE, Some(LEVEL), &seen).pacing,
            Some(Rate::from_bps(16_000_000))
        );
        let more = Rate::from_mbps(18);
        assert_eq!(owner(Bounds::NONE, Some(more), &seen).pacing, Some(more));
    }
}
