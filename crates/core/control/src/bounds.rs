//! The bounds of a station, and their division among its connections.

use wakeai_connection::Bounds;
use wakeai_units::{Bytes, Rate, Segments};

use crate::driver::TICK;
use crate::{ConnectionView, Limit, Observation, OwnTraffic};

/// The room to grow of what a rate limits: it may become this many times as fast within a tick.
const RATE_GROWTH: u64 = 2;

/// The bounds of a station until the next tick (0.5 s later), divided among its connections.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Actuation {
    /// The bounds of each connection that is sending and obeys a window or a rate, or that is
    /// receiving, by id. The windows of all sending connections add up to the station's bounds of
    /// sending, and those of all receiving ones to its bound of receiving. A limit of the rate is the same for
    /// all that it concerns, and allows what the slow ones leave to the fast ones.
    pub sockets: Vec<(u64, Bounds)>,
    /// The bounds of every other connection, and of connections that begin before the next tick.
    /// They are the bounds that one more active connection with nothing in flight would get.
    pub default: Bounds,
}

impl Actuation {
    /// Divides `bounds` among the connections of `seen` that are active and obey them.
    pub fn new(bounds: Bounds, seen: &Observation) -> Self {
        bounds.assert_order();
        let bound =
            |connection: &&ConnectionView| connection.active && connection.limit == Limit::Window;
        let flying = |connections: &[ConnectionView]| -> Vec<u64> {
            let bound = connections.iter().filter(bound);
            bound.map(|one| u64::from(one.figures.in_flight().get())).chain([0]).collect()
        };
        let ids = |connections: &[ConnectionView]| -> Vec<u64> {
            connections.iter().filter(bound).map(|one| one.id).collect()
        };
        let (up, down) = (&seen.up.connections, &seen.down.connections);
        // One more connection without anything in flight gets the default.
        let sent = |flying: &[u64]| divide(bounds, flying);
        let received = |flying: &[u64]| divide_windows(bounds.receive, flying);
        let level = |more| bounds.rate.map(|rate| level(rate, &seen.up, more));
        let burst = bounds.burst;
        let default = Bounds {
            rate: level(1),
            burst,
            receive: received(&flying(down)).pop().unwrap_or(Segments::MAX),
            ..sent(&flying(up)).pop().unwrap_or(Bounds::NONE)
        };
        let parts = |flying: Vec<u64>| flying[..flying.len() - 1].to_vec();
        let mut sending = ids(up).into_iter().zip(sent(&parts(flying(up)))).peekable();
        let mut receiving = ids(down).into_iter().zip(received(&parts(flying(down)))).peekable();
        let rate = level(0);
        let of = |connection: &ConnectionView| {
            let rate = rate.filter(|_| connection.active && connection.limit == Limit::Rate);
            let sends = sending.next_if(|(id, _)| *id == connection.id);
            let receives = receiving.next_if(|(id, _)| *id == connection.id);
            let is_bound = sends.is_some() || receives.is_some() || rate.is_some();
            let part = sends.map_or(default, |(_, part)| part);
            let receive = receives.map_or(default.receive, |(_, window)| window);
            is_bound.then_some((connection.id, Bounds { receive, rate, burst, ..part }))
        };
        // Both lists have the order of `up`, which has all connections.
        let sockets = up.iter().filter_map(of).collect();
        Self { sockets, default }
    }
}

/// The largest rate of each of the station's active connections that obey a rate, and of `more` that are
/// about to begin, where `rate` is that of all together. It is divided by max-min fairness: a
/// connection that sends little leaves the rest of its part to the others.
fn level(rate: Rate, own: &OwnTraffic, more: usize) -> Rate {
    let wanted = own.unwindowed().map(|one| Rate::of(one.moved(), TICK).times(RATE_GROWTH, 1));
    let mut wanted: Vec<Rate> = wanted.collect();
    wanted.sort_unstable();
    let (mut left, mut count) = (rate, (wanted.len() + more) as u64);
    for one in &wanted {
        if one.times(count, 1) > left {
            return left / count;
        }
        left = left.saturating_sub(*one);
        count -= 1;
    }
    // All have what they want. So the fastest, or those that begin, may have the rest besides.
    let fastest = if more == 0 { wanted.last().copied() } else { None };
    fastest.unwrap_or_default().saturating_add(left / count.max(1))
}

/// Divides the bounds of sending among connections. `flying` has the segments in flight of each
/// connection.
///
/// One half of each window bound is divided equally, and the other half in proportion to the
/// segments in flight. So a connection that needs little leaves room in the window to a connection
/// that needs much. The windows of connections that always fill them become equal from tick to
/// tick. Each ceiling is at least one segment. A bound that is not set stays unset. The pacing rate
/// and the bytes in the host's queue are divided equally.
fn divide(bounds: Bounds, flying: &[u64]) -> Vec<Bounds> {
    let count = flying.len() as u64;
    let floors = parts(bounds.floor, flying);
    let ceilings = divide_windows(bounds.ceiling, flying);
    let divided = floors.into_iter().zip(ceilings).map(|(floor, ceiling)| {
        let pacing = bounds.pacing.map(|rate| rate / count);
        let small_queue = Bytes::new(bounds.small_queue.get() / count);
        Bounds { floor: floor.min(ceiling), ceiling, pacing, small_queue, ..Bounds::NONE }
    });
    divided.collect()
}

/// Divides the largest window as [`divide`] does; [`Segments::MAX`] is no bound.
fn divide_windows(most: Segments, flying: &[u64]) -> Vec<Segments> {
    if most == Segments::MAX {
        return vec![Segments::MAX; flying.len()];
    }
    parts(most, flying).into_iter().map(|part| part.max(Segments::new(1))).collect()
}

/// Divides one half of `total` equally, and the other half by weight. The remainder of the rounding
/// goes to the first parts, one segment each.
fn parts(total: Segments, weights: &[u64]) -> Vec<Segments> {
    let count = weights.len() as u128;
    let sum: u128 = weights.iter().map(|weight| u128::from(*weight)).sum();
    let total = u128::from(total.get());
    let part = |weight: u64| match sum {
        0 => total / count,
        sum => total * (sum + u128::from(weight) * count) / (2 * count * sum),
    };
    let mut parts: Vec<u128> = weights.iter().map(|weight| part(*weight)).collect();
    let left = total - parts.iter().sum::<u128>();
    for part in parts.iter_mut().take(left as usize) {
        *part += 1;
    }
    // No part exceeds `total`, which fits 32 bits.
    parts.into_iter().map(|part| Segments::new(part as u32)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use wakeai_connection::Figures;
    use wakeai_units::Rate;

    use super::*;
    use crate::observation::example;

    #[test]
    fn thirty_connections_do_not_get_a_floor_of_300_each() {
        let bounds = Bounds::window(Segments::new(300), Segments::new(600));
        for part in divide(bounds, &[10; 30]) {
            assert_eq!(part, Bounds::window(Segments::new(10), Segments::new(20)));
        }
    }

    #[test]
    fn a_connection_that_needs_little_leaves_window_to_another() {
        let parts = divide(Bounds::window(Segments::ZERO, Segments::new(400)), &[390, 10]);
        let ceilings: Vec<u32> = parts.iter().map(|part| part.ceiling.get()).collect();
        assert_eq!(ceilings, [295, 105]);
    }

    /// A station with these connections, of which those with an odd id only receive.
    fn station(connections: Vec<ConnectionView>) -> Observation {
        let mut seen = Observation::default();
        let receives = |one: &&ConnectionView| one.id % 2 == 1;
        seen.down.connections = connections.iter().filter(receives).cloned().collect();
        let sends = |one: ConnectionView| ConnectionView {
            active: one.active && one.id.is_multiple_of(2),
            ..one
        };
        seen.up.connections = connections.into_iter().map(sends).collect();
        seen
    }

    #[test]
    fn idle_and_unboundable_connections_take_no_part() {
        let view = |id, active, limit| {
            let packets_out = Segments::new(if active { 10 } else { 0 });
            let figures = Figures { packets_out, ..Figures::default() };
            ConnectionView { id, figures, limit, active, ..example() }
        };
        let (window, nothing) = (Limit::Window, Limit::Nothing);
        let views = vec![view(2, true, window), view(4, false, window), view(6, true, nothing)];
        let bounds = Bounds {
            pacing: Some(Rate::from_mbps(8)),
            small_queue: Bytes::new(65_535),
            ..Bounds::window(Segments::new(30), Segments::new(90))
        };
        let whole = Bounds::from_numbers(30, 90, 1_000_000, 65_535);
        // One more connection has nothing in flight. So it gets nothing of the half that is divided
        // by weight.
        let one_more = Bounds::from_numbers(7, 22, 500_000, 32_767);
        let found = Actuation::new(bounds, &station(views.clone()));
        assert_eq!(found, Actuation { sockets: vec![(2, whole)], default: one_more });
        let alone = Actuation::new(bounds, &station(views[1..].to_vec()));
        assert_eq!(alone, Actuation { sockets: Vec::new(), default: whole });
    }

    #[test]
    fn the_receive_window_is_divided_among_the_connections_that_receive() {
        let view = |id| ConnectionView { id, ..example() };
        let receive = Segments::new(60);
        let bounds = Bounds { receive, ..Bounds::window(Segments::ZERO, Segments::new(90)) };
        let found = Actuation::new(bounds, &station(vec![view(1), view(2), view(3)]));
        let part = |ceiling, receive| {
            let window = Bounds::window(Segments::ZERO, Segments::new(ceiling));
            Bounds { receive: Segments::new(receive), ..window }
        };
        // One more connection would get a third of 30 and nothing of the rest, or half of 45.
        assert_eq!(found.default, part(22, 10));
        assert_eq!(found.sockets, [(1, part(22, 30)), (2, part(90, 10)), (3, part(22, 30))]);
    }

    #[test]
    fn a_rate_is_divided_by_max_min_fairness_among_what_obeys_no_window() {
        // Datagrams of 1,250 bytes: 50 in a tick of 0.5 s are 1 Mbit/s.
        let flow = |id, delivered| {
            let figures = Figures { mss: Bytes::new(1250), ..Figures::default() };
            ConnectionView { id, figures, limit: Limit::Rate, delivered, ..example() }
        };
        let level = |delivered: &[u32]| {
            let views = (1..).zip(delivered).map(|(id, sent)| flow(2 * id, *sent)).collect();
            let rate = Some(Rate::from_mbps(12));
            let burst = wakeai_units::Duration::from_millis(9);
            let bounds = Bounds { rate, burst, ..Bounds::NONE };
            let found = Actuation::new(bounds, &station(views));
            let mut all = found.sockets.iter().map(|(_, part)| part).chain([&found.default]);
            assert!(all.all(|part| part.burst == burst), "all flows leave at the same times");
            let mbps = |bounds: &Bounds| bounds.rate.map(|rate| rate.bits_per_second() / 1_000_000);
            let each: Vec<_> = found.sockets.iter().map(|(_, part)| mbps(part)).collect();
            assert!(each.windows(2).all(|pair| pair[0] == pair[1]), "{each:?}");
            (each.first().copied().flatten(), mbps(&found.default))
        };
        assert_eq!(level(&[]), (None, Some(12)), "all of it for the first");
        assert_eq!(level(&[900, 900]), (Some(6), Some(4)));
        // A call at 1 Mbit/s may double, and leaves 10 Mbit/s.
        assert_eq!(level(&[50, 900]), (Some(10), Some(5)));
        assert_eq!(level(&[50, 100]), (Some(10), Some(6)), "4 Mbit/s, and the 6 that are left");
    }

    #[test]
    fn a_window_obeys_no_rate_and_a_rate_no_window() {
        let flow = ConnectionView { id: 2, limit: Limit::Rate, ..example() };
        let rate = Some(Rate::from_mbps(12));
        let bounds = Bounds { rate, ..Bounds::window(Segments::ZERO, Segments::new(90)) };
        let found =
            Actuation::new(bounds, &station(vec![flow, ConnectionView { id: 4, ..example() }]));
        let [(2, flow), (4, connection)] = found.sockets[..] else { panic!("{found:?}") };
        assert_eq!((flow.rate, connection.rate), (rate, None));
        assert_eq!(connection.ceiling.get(), 90, "all of the window");
    }

    #[test]
    fn parts_of_no_bound_are_no_bounds() {
        let views =
            vec![ConnectionView { id: 2, ..example() }, ConnectionView { id: 3, ..example() }];
        let found = Actuation::new(Bounds::NONE, &station(views));
        let none = vec![(2, Bounds::NONE), (3, Bounds::NONE)];
        assert_eq!(found, Actuation { sockets: none, ..Actuation::default() });
    }

    proptest! {
        #[test]
        fn the_parts_add_up_and_each_ceiling_is_at_least_one(
            flying in proptest::collection::vec(0_u64..10_000, 1..50),
            floor in 0_u32..100_000, more in 0_u32..u32::MAX / 2,
        ) {
            let bounds = Bounds::window(Segments::new(floor), Segments::new(floor + more));
            let parts = divide(bounds, &flying);
            let count = flying.len() as u64;
            prop_assert_eq!(parts.len(), flying.len());
            let sum = |f: fn(&Bounds) -> Segments| -> u64 {
                parts.iter().map(|part| u64::from(f(part).get())).sum()
            };
            prop_assert!(parts.iter().all(|p| p.floor <= p.ceiling && p.ceiling.get() >= 1));
            let ceiling = u64::from(floor) + u64::from(more);
            prop_assert!(sum(|p| p.floor) <= u64::from(floor));
            prop_assert!(sum(|p| p.ceiling) >= ceiling);
            prop_assert!(sum(|p| p.ceiling) <= ceiling + count);
            if ceiling >= 2 * count * count {
                prop_assert_eq!(sum(|p| p.ceiling), ceiling);
            }
        }
    }
}
