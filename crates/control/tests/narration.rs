//! What a controller tells about itself.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod ether;

use ether::{Ether, config};
use wakeai_control::{ConnectionView, Controller, LawConfig, StationView};
use wakeai_units::{Bytes, Duration, Instant, Rate, Segments};

/// A station that has delivered so many segments on a path of 60 ms, of which this much is queue.
fn sending(delivered: u64, queue_ms: u64) -> StationView {
    let connection = ConnectionView {
        id: 1,
        cwnd: Segments::new(100),
        mss: Bytes::new(1448),
        smoothed_rtt: Duration::from_millis(60 + queue_ms),
        latest_rtt: Duration::from_millis(60 + queue_ms),
        min_rtt: Duration::from_millis(60),
        delivered,
        in_flight: Segments::new(100),
        sending: true,
        ..ConnectionView::default()
    };
    StationView { link_rate: Some(Rate::from_mbps(65)), connections: vec![connection] }
}

/// The narration of one of two stations that begin to send after three seconds.
fn narration(law: &str) -> String {
    let law = LawConfig::from_name(law).unwrap();
    let start = |id| Controller::new(Instant::ZERO, config(id), [id as u8; 16], law.build());
    let mut ether = Ether::new(vec![start(1), start(2)]);
    let tick = Duration::from_millis(500);
    ether.run(tick * 6);
    for round in 0..12 {
        let view = sending(round * 500, 10 * round);
        ether.views = vec![view.clone(), view];
        ether.run(tick);
    }
    let events = std::iter::from_fn(|| ether.stations[0].poll_event());
    events.map(|event| event.to_string()).collect::<Vec<_>>().join("\n")
}

#[test]
fn shimada_after_says_which_candidate_bound() {
    insta::assert_snapshot!(narration("shimada-after"));
}

#[test]
fn airtime_says_its_phase_share_and_aim() {
    insta::assert_snapshot!(narration("airtime"));
}

#[test]
fn fixed_says_that_it_was_set_by_hand() {
    let text = narration("fixed");
    assert_eq!(text.lines().filter(|line| line.contains("fixed: ")).count(), 19, "{text}");
    let mut decided = text.lines().filter(|line| line.contains("fixed: "));
    assert!(decided.all(|line| line.ends_with("0..unbounded (set by hand)")), "{text}");
}
