//! The bounds of a station, and their division among its connections.

use std::fmt;

use wakeai_connection::SocketBounds;
use wakeai_units::{Bytes, Rate, Segments};

use crate::ConnectionView;

/// The limits of a station or of one of its connections. They concern the segments in flight, the
/// sending rate, and the bytes in the host's queue.
///
/// [`Actuation::new`] divides the bounds of a station among its connections. `floor` is never above
/// `ceiling`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The smallest congestion window, segments; zero is no bound.
    pub floor: Segments,
    /// The largest congestion window, segments; [`Segments::MAX`] is no bound.
    pub ceiling: Segments,
    /// The largest rate at which data is sent; `None` is no bound.
    pub pacing: Option<Rate>,
    /// The bytes that may wait in the host's queue. Linux's own limit for a connection (TCP small
    /// queues) may be as low as two packets, which is less than an aggregate. So a law raises the
    /// limit to the bytes of an aggregate. Zero leaves Linux's own limit. This bound takes effect
    /// only with a ceiling and without a pacing rate.
    pub small_queue: Bytes,
}

impl Bounds {
    /// No bounds: connections behave as under plain CUBIC.
    pub const NONE: Self = Self {
        floor: Segments::ZERO,
        ceiling: Segments::MAX,
        pacing: None,
        small_queue: Bytes::ZERO,
    };

    /// The floor is never above the ceiling.
    pub(crate) fn assert_order(&self) {
        debug_assert!(self.floor <= self.ceiling, "a floor above the ceiling: {self}");
    }

    /// Bounds of the window alone. A floor above the ceiling is lowered to the ceiling.
    pub fn window(floor: Segments, ceiling: Segments) -> Self {
        Self { floor: floor.min(ceiling), ceiling, ..Self::NONE }
    }
}

impl Default for Bounds {
    fn default() -> Self {
        Self::NONE
    }
}

impl fmt::Display for Bounds {
    /// Formats bounds as `200..555`, `0..unbounded`, `1..2 at 3Mbit/s` or `9..30, 65.535kB in the
    /// host's queue`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.ceiling == Segments::MAX {
            write!(f, "{}..unbounded", self.floor)?;
        } else {
            write!(f, "{}..{}", self.floor, self.ceiling)?;
        }
        if let Some(rate) = self.pacing {
            write!(f, " at {rate}")?;
        }
        if self.small_queue > Bytes::ZERO {
            write!(f, ", {} in the host's queue", self.small_queue)?;
        }
        Ok(())
    }
}

/// The bounds of a station until the next tick (0.5 s later), divided among its connections.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Actuation {
    /// The bounds of each connection that is sending and whose algorithm applies bounds, by id. The
    /// bounds of all these connections add up to the station's bounds.
    pub sockets: Vec<(u64, SocketBounds)>,
    /// The bounds of every other connection, and of connections that begin before the next tick.
    /// They are the bounds that one more sending connection with nothing in flight would get.
    pub default: SocketBounds,
}

impl Actuation {
    /// Divides `bounds` among the `connections` that are sending and apply bounds.
    pub fn new(bounds: Bounds, connections: &[ConnectionView]) -> Self {
        bounds.assert_order();
        let bound = || connections.iter().filter(|one| one.sending && one.boundable);
        let mut flying: Vec<u64> =
            bound().map(|one| u64::from(one.figures.in_flight().get())).collect();
        let sockets = divide(bounds, &flying).into_iter().map(SocketBounds::from);
        let sockets = bound().map(|one| one.id).zip(sockets).collect();
        flying.push(0);
        let default = divide(bounds, &flying).pop().unwrap_or(Bounds::NONE).into();
        Self { sockets, default }
    }
}

impl From<Bounds> for SocketBounds {
    /// Converts bounds. In [`SocketBounds`] 0 means no bound, so a ceiling of 0 and a rate below 1
    /// byte/s become 1.
    fn from(bounds: Bounds) -> Self {
        let Bounds { floor, ceiling, pacing, small_queue } = bounds;
        Self {
            floor: floor.get(),
            ceiling: if ceiling == Segments::MAX { 0 } else { ceiling.get().max(1) },
            pacing_bytes_per_second: pacing.map_or(0, |rate| rate.bytes_per_second().max(1)),
            small_queue_bytes: small_queue.get(),
        }
    }
}

/// Divides `bounds` among connections. `flying` has the segments in flight of each connection.
///
/// One half of each window bound is divided equally, and the other half in proportion to the
/// segments in flight. So a connection that needs little leaves room in the window to a connection
/// that needs much. The windows of connections that always fill them become equal from tick to
/// tick. Each ceiling is at least one segment. A bound that is not set stays unset. The pacing rate
/// and the bytes in the host's queue are divided equally.
fn divide(bounds: Bounds, flying: &[u64]) -> Vec<Bounds> {
    let count = flying.len() as u64;
    let floors = parts(bounds.floor, flying);
    let ceilings = if bounds.ceiling == Segments::MAX {
        vec![Segments::MAX; flying.len()]
    } else {
        parts(bounds.ceiling, flying)
    };
    let divided = floors.into_iter().zip(ceilings).map(|(floor, ceiling)| {
        let ceiling = ceiling.max(Segments::new(1));
        let pacing = bounds.pacing.map(|rate| rate / count);
        let small_queue = Bytes::new(bounds.small_queue.get() / count);
        Bounds { floor: floor.min(ceiling), ceiling, pacing, small_queue }
    });
    divided.collect()
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
    fn only_existing_bounds_are_shown() {
        let window = Bounds::window(Segments::new(9), Segments::new(30));
        let small_queue = Bytes::new(65_535);
        let pacing = Some(Rate::from_mbps(3));
        let all = Bounds { pacing, small_queue, ..window };
        assert_eq!(Bounds::NONE.to_string(), "0..unbounded");
        assert_eq!(window.to_string(), "9..30");
        assert_eq!(all.to_string(), "9..30 at 3Mbit/s, 65.535kB in the host's queue");
    }

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

    #[test]
    fn idle_and_unboundable_connections_take_no_part() {
        let view = |id, sending, boundable| {
            let packets_out = Segments::new(if sending { 10 } else { 0 });
            let figures = Figures { packets_out, ..Figures::default() };
            ConnectionView { id, figures, boundable, sending, ..example() }
        };
        let views = [view(1, true, true), view(2, false, true), view(3, true, false)];
        let bounds = Bounds {
            pacing: Some(Rate::from_mbps(8)),
            small_queue: Bytes::new(65_535),
            ..Bounds::window(Segments::new(30), Segments::new(90))
        };
        let whole = SocketBounds {
            floor: 30,
            ceiling: 90,
            pacing_bytes_per_second: 1_000_000,
            small_queue_bytes: 65_535,
        };
        // One more connection has nothing in flight. So it gets nothing of the half that is divided
        // by weight.
        let one_more = SocketBounds {
            floor: 7,
            ceiling: 22,
            pacing_bytes_per_second: 500_000,
            small_queue_bytes: 32_767,
        };
        let found = Actuation::new(bounds, &views);
        assert_eq!(found, Actuation { sockets: vec![(1, whole)], default: one_more });
        let alone = Actuation::new(bounds, &views[1..]);
        assert_eq!(alone, Actuation { sockets: Vec::new(), default: whole });
    }

    #[test]
    fn a_bound_stays_a_bound_and_none_stays_none() {
        let found = Actuation::new(Bounds::NONE, &[example(), example()]);
        let none = Actuation { sockets: vec![(1, SocketBounds::NONE); 2], ..Actuation::default() };
        assert_eq!(found, none);
        let slow = Bounds {
            floor: Segments::ZERO,
            ceiling: Segments::ZERO,
            pacing: Some(Rate::from_bps(7)),
            small_queue: Bytes::new(9),
        };
        let found = SocketBounds::from(slow);
        assert_eq!((found.ceiling, found.pacing_bytes_per_second), (1, 1));
        assert_eq!(found.small_queue_bytes, 9);
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
