//! Segments that overtake each other (RFC 8985 section 6).

use wakeai_connection::CongestionState;
use wakeai_tcp::{Profile, TcpConfig, by_name};
use wakeai_units::Duration;

use crate::script::{SenderScript, at_ms};

/// A sender on a path with an RTT of 100 ms. It has sent segments 0 to 9 at 100 ms.
fn flight() -> SenderScript {
    let config = TcpConfig::new(Profile::Linux);
    let cubic = by_name("cubic", &config).expect("it is known");
    let mut tcp = SenderScript::established(&config, cubic, 100);
    tcp.supply(None).sends(0..10);
    tcp
}

fn drain(tcp: &mut SenderScript) {
    while tcp.take().is_some() {}
}

/// Segment 0 arrives a millisecond after segments 1 and 2.
fn overtaken() -> SenderScript {
    let mut tcp = flight();
    tcp.at(200).ack_with(0, &[1..3]);
    drain(&mut tcp);
    assert_eq!(tcp.sender.counters().retransmits, 0);
    // A segment that was sent only once fills the hole: reordering.
    tcp.at(201).ack(3);
    drain(&mut tcp);
    tcp
}

/// Acknowledges everything before `hole`, and returns the time until the segment `hole` is taken
/// for lost.
fn patience(tcp: &mut SenderScript, millis: u64, hole: u64) -> Duration {
    tcp.at(millis).ack_with(hole, &[hole + 1..hole + 6]);
    drain(tcp);
    assert_eq!(tcp.sender.figures().congestion_state, CongestionState::Disorder, "not yet");
    let due = tcp.sender.next_timeout().expect("the reordering timer");
    due - at_ms(millis)
}

#[test]
fn after_reordering_a_loss_waits_for_a_quarter_of_the_rtt() {
    let mut tcp = overtaken();
    let waits = patience(&mut tcp, 202, 3);
    assert!((25..=34).contains(&waits.as_millis()), "{waits}");
    tcp.at_next_timeout();
    assert_eq!(tcp.sender.figures().congestion_state, CongestionState::Recovery);
    drain(&mut tcp);
    let mut fresh = flight();
    fresh.at(200).ack_with(0, &[1..6]);
    assert_eq!(fresh.sender.figures().congestion_state, CongestionState::Recovery);
}

#[test]
fn a_dsack_widens_the_reordering_window() {
    let mut tcp = overtaken();
    let before = patience(&mut tcp, 202, 3);
    tcp.at_next_timeout();
    drain(&mut tcp);
    // Segment 3 was not lost. Both copies of it arrive, and the second is reported.
    tcp.at(245).ack_echoing(9, &[], 101);
    drain(&mut tcp);
    let copy = tcp.sender.counters().retransmits;
    assert_eq!(copy, 1);
    tcp.at(250).ack_with(10, &[3..4]);
    drain(&mut tcp);
    let sample = tcp.sender.figures();
    assert_eq!((sample.congestion_state, tcp.sender.counters().dsacks), (CongestionState::Open, 1));
    let after = patience(&mut tcp, 301, 10);
    assert!(after > before + Duration::from_millis(15), "{before} {after}");
}
