//! Decides which reservations are admitted, within the limit of all together.

use std::collections::BTreeSet;

use crate::{Reservation, Share, StationId};

/// The stations whose reservations are admitted. The requests are considered in the order of their
/// tickets, and requests with equal tickets in the order of the stations' ids. A request is
/// admitted where its share and the shares admitted before add up to at most `limit`.
///
/// The result depends only on the announcements, so all stations that receive the same
/// announcements decide alike. A refused request does not block a smaller request with a later
/// ticket.
pub(super) fn admitted(asked: &[(StationId, Reservation)], limit: Share) -> BTreeSet<StationId> {
    let mut queue: Vec<_> = asked.iter().collect();
    queue.sort_by_key(|(station, asked)| (asked.ticket, *station));
    let mut sum = Share::ZERO;
    let mut admitted = BTreeSet::new();
    for (station, asked) in queue {
        let with_it = sum.plus(asked.share);
        if with_it <= limit && admitted.insert(*station) {
            sum = with_it;
        }
    }
    debug_assert!(sum <= limit, "{sum:?} is admitted of {limit:?}");
    admitted
}

/// The share of the airtime that the admitted reservations take together.
pub(super) fn taken(asked: &[(StationId, Reservation)], admitted: &BTreeSet<StationId>) -> Share {
    let of_admitted = asked.iter().filter(|(station, _)| admitted.contains(station));
    of_admitted.fold(Share::ZERO, |sum, (_, asked)| sum.plus(asked.share))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use wakeai_units::Rate;

    use super::*;

    fn asks(station: u64, ticket: u64, ppm: u32) -> (StationId, Reservation) {
        let asked = Reservation {
            rate: Rate::from_mbps(1),
            share: Share::from_ppm(ppm),
            ticket,
            claim: Share::ZERO,
            short: false,
        };
        (StationId(station), asked)
    }

    fn who(asked: &[(StationId, Reservation)]) -> Vec<u64> {
        admitted(asked, Share::from_percent(80)).into_iter().map(|station| station.0).collect()
    }

    #[test]
    fn the_first_is_served_first_and_a_smaller_one_may_fit_in() {
        let all = [asks(1, 3, 500_000), asks(2, 1, 400_000), asks(3, 2, 400_000)];
        assert_eq!(who(&all), [2, 3]);
        assert_eq!(who(&[all[0], all[1], asks(4, 9, 400_000)]), [2, 4]);
        assert_eq!(who(&[asks(1, 1, 800_001)]), [0_u64; 0]);
    }

    #[test]
    fn equal_tickets_go_by_station() {
        assert_eq!(who(&[asks(9, 1, 500_000), asks(4, 1, 500_000)]), [4]);
    }

    fn everybody() -> impl Strategy<Value = Vec<(StationId, Reservation)>> {
        proptest::collection::btree_map(0_u64..50, (1_u64..6, 1_u32..1_200_000), 0..20).prop_map(
            |all| all.into_iter().map(|(id, (ticket, ppm))| asks(id, ticket, ppm)).collect(),
        )
    }

    proptest! {
        #[test]
        fn the_sum_is_never_over_the_limit(all in everybody(), percent in 0_u32..=100) {
            let limit = Share::from_percent(percent);
            prop_assert!(taken(&all, &admitted(&all, limit)) <= limit);
        }

        #[test]
        fn the_order_of_the_announcements_does_not_matter(
            (all, heard) in everybody().prop_flat_map(|all| {
                (Just(all.clone()), Just(all).prop_shuffle())
            }),
        ) {
            prop_assert_eq!(who(&all), who(&heard));
        }

        #[test]
        fn a_later_request_does_not_change_earlier_decisions(
            all in everybody(), late in 1_u32..1_200_000,
        ) {
            let mut more = all.clone();
            more.push(asks(99, 6, late));
            let before = who(&all);
            let after: Vec<u64> = who(&more).into_iter().filter(|id| *id != 99).collect();
            prop_assert_eq!(before, after);
        }

        #[test]
        fn a_released_share_is_free_for_the_next_request(
            held in 500_000_u32..=800_000, next in 300_001_u32..=800_000,
        ) {
            let both = [asks(1, 1, held), asks(2, 2, next)];
            prop_assert_eq!(who(&both), [1]);
            prop_assert_eq!(who(&both[1..]), [2]);
        }

        #[test]
        fn no_request_that_fits_is_refused(all in everybody()) {
            let limit = Share::from_percent(80);
            let in_force = admitted(&all, limit);
            for (station, asked) in all.iter().filter(|(id, _)| !in_force.contains(id)) {
                let earlier = |(other, one): &&(StationId, Reservation)| {
                    in_force.contains(other) && (one.ticket, *other) < (asked.ticket, *station)
                };
                let before = all.iter().filter(earlier);
                let before = before.fold(Share::ZERO, |sum, (_, one)| sum.plus(one.share));
                prop_assert!(before.plus(asked.share) > limit);
            }
        }
    }
}
