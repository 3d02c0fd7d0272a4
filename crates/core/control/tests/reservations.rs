//! Stations announce reservations in presence messages, and all stations admit the same
//! reservations.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod ether;

use ether::{Ether, Own, config, start};
use wakeai_control::{
    Basis, Controller, ControllerConfig, Decision, Event, ReservationLimit, ReservationState,
    Share, StationId,
};
use wakeai_units::{Duration, Instant, Rate, Segments};

/// A station that reaches 24 Mbit/s alone and has data to send.
fn loud(reserve: Option<u64>) -> (ControllerConfig, Own) {
    let mut connection = ether::sending(10, Duration::from_millis(20));
    connection.figures.min_rtt = Some(Duration::from_millis(10));
    let reserve = reserve.map(Rate::from_mbps);
    let config = ControllerConfig { max_rate: Some(Rate::from_mbps(24)), reserve, ..config(0) };
    (config, (None, vec![connection]))
}

/// Stations that all send. `wanted` has the rate that each of them reserves, Mbit/s.
fn stations(wanted: &[Option<u64>]) -> Ether {
    let all = wanted.iter().zip(0..).map(|(reserve, id)| {
        let (config, own) = loud(*reserve);
        (start(Instant::ZERO, &ControllerConfig { station_id: StationId(id), ..config }, 1), own)
    });
    let (stations, own): (Vec<Controller>, Vec<Own>) = all.unzip();
    Ether { own, ..Ether::new(stations) }
}

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// For each station, the stations whose reservations it has admitted.
fn views(ether: &Ether) -> Vec<Vec<u64>> {
    let count = ether.stations.len() as u64;
    let see = |(own, station): (u64, &Controller)| {
        let admitted = |id: &u64| {
            if *id == own {
                station.reservation().1.is_admitted()
            } else {
                station.admits(StationId(*id))
            }
        };
        (0..count).filter(admitted).collect()
    };
    (0..).zip(&ether.stations).map(see).collect()
}

#[test]
fn two_reserve_and_a_third_is_refused_with_the_reason() {
    let mut ether = stations(&[Some(10), Some(8), None, None]);
    ether.run(seconds(20));
    assert_eq!(views(&ether), vec![vec![0, 1]; 4]);
    ether.stations[2].reserve(Some(Rate::from_mbps(6)));
    ether.run(seconds(10));
    assert_eq!(views(&ether), vec![vec![0, 1]; 4]);
    let (rate, state) = ether.stations[2].reservation();
    assert_eq!(rate, Some(Rate::from_mbps(6)));
    let ReservationState::Refused { share, taken, limit } = state else { panic!("{state}") };
    assert_eq!((share, limit), (Share::from_percent(25), Share::from_percent(80)));
    assert_eq!(taken, Share::from_ppm(416_667).plus(Share::from_ppm(333_334)));
    let told = std::iter::from_fn(|| ether.stations[2].poll_event());
    let told: Vec<Event> =
        told.filter(|event| matches!(event, Event::Reservation { .. })).collect();
    assert!(told.last().unwrap().to_string().contains("refused: it takes 25.0 %"), "{told:?}");
}

#[test]
fn a_station_that_stops_sending_makes_room_for_the_next() {
    let mut ether = stations(&[Some(10), Some(8), Some(6)]);
    ether.run(seconds(20));
    let refused = |ether: &Ether| {
        let of = |station: &Controller| {
            matches!(station.reservation().1, ReservationState::Refused { .. })
        };
        ether.stations.iter().position(of)
    };
    let waits = refused(&ether).expect("10, 8 and 6 of 24 are more than 80 %");
    let goes = (waits + 1) % 3;
    ether.own[goes] = Own::default();
    ether.run(seconds(6));
    let stay: Vec<u64> = (0..3).filter(|id| *id != goes as u64).collect();
    assert_eq!(views(&ether), vec![stay; 3]);
    assert_eq!(ether.stations[goes].reservation().1, ReservationState::Waiting);
}

#[test]
fn messages_lost_for_a_while_do_not_make_room() {
    let mut ether = stations(&[Some(16), Some(10)]);
    ether.run(seconds(20));
    let has = views(&ether)[0][0] as usize;
    let waits = 1 - has;
    ether.run_where(seconds(3), |from, _| from != has);
    assert_eq!(ether.stations[waits].peers().count(), 0, "its messages no longer arrive");
    assert!(!ether.stations[waits].reservation().1.is_admitted());
}

#[test]
fn an_agent_that_disappears_releases_what_it_had() {
    let mut ether = stations(&[Some(16), Some(10)]);
    ether.run(seconds(20));
    let has = views(&ether)[0][0] as usize;
    let waits = 1 - has;
    assert!(!ether.stations[waits].reservation().1.is_admitted());
    ether.run_where(seconds(10), |from, _| from != has);
    assert!(ether.stations[waits].reservation().1.is_admitted());
}

/// What reservations change in the station's last decision, which its last event has, too.
fn limit(station: &mut Controller) -> Option<ReservationLimit> {
    let events = std::iter::from_fn(|| station.poll_event());
    let decisions = events.filter_map(|event| match event {
        Event::Decision(decision) => Some(decision),
        _ => None,
    });
    let last: Decision = decisions.last().unwrap();
    assert_eq!(&last, station.decision());
    last.reservation
}

#[test]
fn the_others_yield_until_the_reservation_is_released() {
    let mut ether = stations(&[Some(10), None, None]);
    ether.run(seconds(20));
    assert!(matches!(limit(&mut ether.stations[0]), Some(ReservationLimit::Owns { .. })));
    for other in &mut ether.stations[1..] {
        assert!(matches!(limit(other), Some(ReservationLimit::Yields { .. })));
    }
    let held = ether.stations[1].decision().bounds.ceiling;
    ether.stations[0].reserve(None);
    ether.run(seconds(5));
    for station in &mut ether.stations {
        assert_eq!(limit(station), None);
    }
    assert!(held < ether.stations[1].decision().bounds.ceiling);
}

#[test]
fn bounds_set_by_hand_do_not_yield() {
    let law = wakeai_control::LawConfig::by_hand(Segments::ZERO, Segments::new(50));
    let mut ether = stations(&[Some(10), None]);
    let (config, _) = loud(None);
    let config = ControllerConfig { station_id: StationId(1), ..config };
    ether.stations[1] = Controller::new(Instant::ZERO, &config, [9; 16], &law);
    ether.run(seconds(20));
    assert!(ether.stations[1].admits(StationId(0)));
    assert_eq!(limit(&mut ether.stations[1]), None);
    assert_eq!(ether.stations[1].decision().basis, Basis::ByHand);
}

mod agreement {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn all_agree_and_nothing_is_over_the_limit(
            wanted in proptest::collection::vec((proptest::option::of(1_u64..20), 0_u64..20), 2..7),
        ) {
            let mut ether = stations(&vec![None; wanted.len()]);
            let mut at = 0;
            let mut order: Vec<(u64, usize)> =
                wanted.iter().enumerate().map(|(id, (_, at))| (*at, id)).collect();
            order.sort_unstable();
            for (when, id) in order {
                ether.run(seconds(when - at));
                at = when;
                ether.stations[id].reserve(wanted[id].0.map(Rate::from_mbps));
            }
            ether.run(seconds(20));
            let seen = views(&ether);
            for view in &seen {
                prop_assert_eq!(view, &seen[0]);
            }
            let shares = ether.stations.iter().filter_map(|one| match one.reservation().1 {
                ReservationState::Admitted { share } => Some(share),
                _ => None,
            });
            prop_assert!(shares.fold(Share::ZERO, Share::plus) <= Share::from_percent(80));
        }
    }
}
