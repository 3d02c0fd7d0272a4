//! The calls of an algorithm's hooks come at the same places and in the same order as in the
//! kernel.

use wakeai_algorithms::Call::{Ack, AfterIdle, BeforeSending, SetState, Ssthresh, Undo};
use wakeai_algorithms::{Algorithm, Call, TcpSock};
use wakeai_connection::CongestionState::{Cwr, Disorder, Loss, Open, Recovery};
use wakeai_tcp::{Profile, TcpConfig};

use crate::script::{SenderScript, at_ms, clock_ms};

/// A sender on a path with an RTT of 100 ms. It has sent its first ten segments at 100 ms.
fn flight() -> SenderScript {
    let config = TcpConfig::new(Profile::Linux);
    let recorder = Algorithm::recorder(TcpSock::new(config.mss, config.initial_window));
    let mut tcp = SenderScript::established(&config, recorder, 100);
    tcp.supply(None).sends(0..10);
    tcp
}

/// The calls of the algorithm while `script` runs.
fn calls(tcp: &mut SenderScript, script: impl FnOnce(&mut SenderScript)) -> Vec<Call> {
    let before = tcp.sender.algorithm().recorded().len();
    script(tcp);
    while tcp.take().is_some() {}
    tcp.sender.algorithm().recorded().split_off(before)
}

#[test]
fn an_algorithm_begins_with_the_handshake() {
    let tcp = flight();
    assert_eq!(tcp.sender.algorithm().recorded(), [Ack(0), BeforeSending(0), AfterIdle(0)]);
}

#[test]
fn each_ack_is_one_call_with_what_it_delivers() {
    let mut tcp = flight();
    tcp.at(200);
    assert_eq!(
        calls(&mut tcp, |tcp| {
            tcp.ack(2).ack(3);
        }),
        [Ack(2), Ack(1)]
    );
}

#[test]
fn a_recovery_asks_for_the_threshold_before_the_state_changes() {
    let mut tcp = flight();
    tcp.at(200);
    let duplicates = calls(&mut tcp, |tcp| {
        tcp.ack_with(0, &[1..2]);
    });
    assert_eq!(duplicates, [SetState(Disorder), Ack(1)]);
    let loss = calls(&mut tcp, |tcp| {
        tcp.ack_with(0, &[1..4]);
    });
    assert_eq!(loss, [Ssthresh(10), SetState(Recovery), Ack(2)]);
    let next = calls(&mut tcp, |tcp| {
        tcp.ack_with(0, &[1..5]);
    });
    assert_eq!(next, [Ack(1)]);
    tcp.at(300);
    let repaired = calls(&mut tcp, |tcp| {
        tcp.ack_echoing(11, &[], echo(200));
    });
    assert_eq!(repaired.first(), Some(&SetState(Open)));
    assert!(matches!(repaired[1], Ack(_)), "{repaired:?}");
}

fn echo(millis: u64) -> u32 {
    clock_ms(at_ms(millis))
}

#[test]
fn a_timeout_asks_for_the_threshold_of_the_old_window() {
    let mut tcp = flight();
    tcp.at_next_timeout(); // a probe
    while tcp.take().is_some() {}
    let timeout = calls(&mut tcp, |tcp| {
        tcp.at_next_timeout();
    });
    assert_eq!(timeout[..2], [Ssthresh(10), SetState(Loss)]);
    assert_eq!(tcp.sender.counters().timeouts, 1);
}

#[test]
fn an_undo_asks_for_the_window_and_then_changes_the_state() {
    let mut tcp = flight();
    tcp.at(200).ack_with(0, &[1..4]);
    while tcp.take().is_some() {}
    tcp.at(205);
    let undo = calls(&mut tcp, |tcp| {
        tcp.ack_echoing(4, &[], echo(100));
    });
    assert_eq!(undo[..2], [Undo(10), SetState(Open)]);
    assert_eq!(undo.len(), 3, "{undo:?}");
    assert!(matches!(undo[2], Ack(_)), "{undo:?}");
}

#[test]
fn local_congestion_asks_for_the_threshold_and_changes_to_cwr() {
    let mut tcp = flight();
    tcp.at(200);
    tcp.room = Some(0);
    let overflow = calls(&mut tcp, |tcp| {
        tcp.ack(1);
    });
    assert_eq!(overflow, [Ack(1), Ssthresh(10), SetState(Cwr)]);
}

#[test]
fn a_pause_is_told_before_the_next_segment_and_nothing_else_is() {
    let config = TcpConfig::new(Profile::Linux);
    let recorder = Algorithm::recorder(TcpSock::new(config.mss, config.initial_window));
    let mut idle = SenderScript::established(&config, recorder, 100);
    idle.supply(Some(2)).sends(0..2);
    idle.at(200).ack(2).sends_nothing();
    idle.at(5000);
    assert_eq!(
        calls(&mut idle, |tcp| {
            tcp.supply(Some(4));
        }),
        [BeforeSending(0), AfterIdle(0)]
    );
}
