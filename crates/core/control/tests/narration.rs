//! The texts of a controller's events.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod ether;

use ether::{Ether, Own, config};
use wakeai_connection::Figures;
use wakeai_control::{Connection, Controller, LawConfig, LawName};
use wakeai_units::{Duration, Instant, Rate};

/// A station that has delivered `delivered` segments. Its path is 60 ms long, and the queueing
/// delay is `queue_ms`.
fn sending(delivered: u64, queue_ms: u64) -> Own {
    let rtt = Duration::from_millis(60 + queue_ms);
    let connection = ether::sending(100, rtt);
    let figures = Figures {
        latest_rtt: Some(rtt),
        min_rtt: Some(Duration::from_millis(60)),
        delivered,
        ..connection.figures
    };
    (Some(Rate::from_mbps(65)), vec![Connection { figures, ..connection }])
}

/// The events of one of two stations that begin to send after three seconds.
fn narration(law: LawName) -> String {
    let law = LawConfig::new(law);
    let start = |id| Controller::new(Instant::ZERO, &config(id), [id as u8; 16], &law);
    let mut ether = Ether::new(vec![start(1), start(2)]);
    let tick = Duration::from_millis(500);
    ether.run(tick * 6);
    for round in 0..12 {
        let own = sending(round * 500, 10 * round);
        ether.own = vec![own.clone(), own];
        ether.run(tick);
    }
    let events = std::iter::from_fn(|| ether.stations[0].poll_event());
    events.map(|event| event.to_string()).collect::<Vec<_>>().join("\n")
}

#[test]
fn shimada_after_says_which_candidate_bound() {
    insta::assert_snapshot!(narration(LawName::ShimadaAfter));
}

#[test]
fn airtime_says_its_phase_share_and_target() {
    insta::assert_snapshot!(narration(LawName::Airtime));
}

#[test]
fn fixed_says_that_it_was_set_by_hand() {
    let text = narration(LawName::Fixed);
    assert_eq!(text.lines().filter(|line| line.contains("fixed: ")).count(), 19, "{text}");
    let mut decided = text.lines().filter(|line| line.contains("fixed: "));
    assert!(decided.all(|line| line.ends_with("0..unbounded (set by hand)")), "{text}");
}
