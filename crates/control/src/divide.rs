//! A station's bounds shared out among its connections.

use wakeai_units::{Bytes, Segments};

use crate::{Bounds, ConnectionView};

/// The bounds of each sending connection, by id; they add up to `bounds`.
///
/// One half of a window goes to all in equal parts, the other by what each has in flight: so a
/// connection that needs little does not keep the window from one that needs much, and those that
/// need much become equal. A ceiling leaves every connection at least one segment, since a window
/// of zero would stop it for good. An absent bound stays absent. The pacing rate and the share of the
/// host's queue go in equal parts: what the station has waiting is one aggregate in all.
pub fn divide(bounds: Bounds, connections: &[ConnectionView]) -> Vec<(u64, Bounds)> {
    let sending: Vec<&ConnectionView> = connections.iter().filter(|c| c.sending).collect();
    let count = sending.len() as u64;
    let flying: Vec<u64> = sending.iter().map(|c| u64::from(c.in_flight.get())).collect();
    let floors = parts(bounds.floor, &flying);
    let ceilings = if bounds.ceiling == Segments::MAX {
        vec![Segments::MAX; sending.len()]
    } else {
        parts(bounds.ceiling, &flying)
    };
    sending
        .iter()
        .zip(floors.into_iter().zip(ceilings))
        .map(|(connection, (floor, ceiling))| {
            let ceiling = ceiling.max(Segments::new(1));
            let pacing = bounds.pacing.map(|rate| rate / count);
            let small_queue = Bytes::new(bounds.small_queue.get() / count);
            (connection.id, Bounds { floor: floor.min(ceiling), ceiling, pacing, small_queue })
        })
        .collect()
}

/// The default for a connection that begins now: what it would get beside those that are sending.
pub fn share_of_new(bounds: Bounds, connections: &[ConnectionView]) -> Bounds {
    let mut all = connections.to_vec();
    all.push(ConnectionView { sending: true, ..ConnectionView::default() });
    divide(bounds, &all).pop().map_or(Bounds::NONE, |(_, part)| part)
}

/// `total` in parts that add up to it: half equally, half by weight. What rounding leaves over goes
/// to the first ones.
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
    // Each part is at most `total`, which came from 32 bits.
    parts.into_iter().map(|part| Segments::new(part as u32)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use wakeai_units::Rate;

    use super::*;
    use crate::observation::example;

    fn connections(flying: &[(u32, bool)]) -> Vec<ConnectionView> {
        let view = |(id, (in_flight, sending)): (u64, &(u32, bool))| ConnectionView {
            id,
            in_flight: Segments::new(*in_flight),
            sending: *sending,
            ..example()
        };
        (0..).zip(flying).map(view).collect()
    }

    #[test]
    fn thirty_connections_do_not_get_a_floor_of_300_each() {
        let views = connections(&[(10, true); 30]);
        let bounds = Bounds::window(Segments::new(300), Segments::new(600));
        for (_, part) in divide(bounds, &views) {
            assert_eq!(part, Bounds::window(Segments::new(10), Segments::new(20)));
        }
    }

    #[test]
    fn an_idle_connection_gets_nothing_and_an_absent_bound_stays_absent() {
        let views = connections(&[(10, true), (10, false)]);
        assert_eq!(divide(Bounds::NONE, &views), [(0, Bounds::NONE)]);
        assert_eq!(divide(Bounds::NONE, &[]), []);
    }

    #[test]
    fn who_needs_little_leaves_the_rest_to_who_needs_much() {
        let views = connections(&[(390, true), (10, true)]);
        let parts = divide(Bounds::window(Segments::ZERO, Segments::new(400)), &views);
        let ceilings: Vec<u32> = parts.iter().map(|(_, part)| part.ceiling.get()).collect();
        assert_eq!(ceilings, [295, 105]);
    }

    #[test]
    fn a_new_connection_gets_a_part_as_one_more() {
        let pacing = Some(Rate::from_mbps(9));
        let small_queue = Bytes::new(65_535);
        let window = Bounds::window(Segments::new(30), Segments::new(90));
        let bounds = Bounds { pacing, small_queue, ..window };
        let expected = |floor, ceiling| Bounds {
            pacing: Some(Rate::from_mbps(3)),
            small_queue: Bytes::new(21_845),
            ..Bounds::window(Segments::new(floor), Segments::new(ceiling))
        };
        let quiet = connections(&[(0, true), (0, true), (0, false)]);
        assert_eq!(share_of_new(bounds, &quiet), expected(10, 30));
        // It has nothing in flight yet, so the half that goes by that is the others'.
        let busy = connections(&[(10, true), (10, true), (10, false)]);
        assert_eq!(share_of_new(bounds, &busy), expected(5, 15));
        assert_eq!(share_of_new(bounds, &[]), bounds);
        assert_eq!(share_of_new(Bounds::NONE, &busy), Bounds::NONE);
    }

    proptest! {
        #[test]
        fn the_parts_add_up_and_stop_nobody(
            flying in proptest::collection::vec((0_u32..10_000, any::<bool>()), 0..50),
            floor in 0_u32..100_000, more in 0_u32..u32::MAX / 2,
        ) {
            let views = connections(&flying);
            let bounds = Bounds::window(Segments::new(floor), Segments::new(floor + more));
            let parts = divide(bounds, &views);
            let sending = flying.iter().filter(|(_, sending)| *sending).count();
            prop_assert_eq!(parts.len(), sending);
            let sum = |f: fn(&Bounds) -> Segments| -> u64 {
                parts.iter().map(|(_, part)| u64::from(f(part).get())).sum()
            };
            prop_assert!(parts.iter().all(|(_, p)| p.floor <= p.ceiling && p.ceiling.get() >= 1));
            if sending > 0 {
                let ceiling = u64::from(floor) + u64::from(more);
                prop_assert!(sum(|p| p.floor) <= u64::from(floor));
                prop_assert!(sum(|p| p.ceiling) >= ceiling);
                prop_assert!(sum(|p| p.ceiling) <= ceiling.max(ceiling + sending as u64));
                if ceiling >= 2 * sending as u64 * sending as u64 {
                    prop_assert_eq!(sum(|p| p.ceiling), ceiling);
                }
            }
        }
    }
}
