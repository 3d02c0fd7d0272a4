//! The queue of the sending host.

use wakeai_algorithms::State;
use wakeai_tcp::{Profile, TcpConfig, by_name};

use crate::script::SenderScript;

fn established(config: &TcpConfig) -> SenderScript {
    let cubic = by_name("cubic", config).expect("it is known");
    SenderScript::established(config, cubic, 100)
}

#[test]
fn an_overflow_is_local_congestion_and_not_a_loss() {
    let mut tcp = established(&TcpConfig::new(Profile::Linux));
    tcp.room = Some(5);
    tcp.supply(None).sends(0..5);
    let sample = tcp.sender.sample();
    assert_eq!((sample.state, sample.ssthresh, sample.packets_out), (State::Cwr, 7, 5));
    assert_eq!(tcp.sender.counters().local_drops, 1);
    tcp.room = None;
    // What did not leave is the next to leave, for the first time.
    tcp.at(200).ack(1);
    assert_eq!(tcp.take().map(|segment| segment.seq), Some(crate::script::position(5)));
    assert_eq!(tcp.sender.counters().retransmits, 0);
}

#[test]
fn a_write_tries_again_what_the_queue_has_refused() {
    let mut tcp = established(&TcpConfig::new(Profile::Linux));
    tcp.room = Some(2);
    tcp.supply(Some(4)).sends(0..2);
    tcp.room = None;
    tcp.at(110).sends_nothing();
    tcp.supply(Some(5)).sends(2..5);
}

#[test]
fn local_congestion_reduces_the_window_once_and_ends_with_the_flight() {
    let mut tcp = established(&TcpConfig::new(Profile::Linux));
    tcp.room = Some(9);
    tcp.supply(Some(100)).sends(0..9);
    tcp.room = Some(0);
    tcp.at(200).ack(2).sends([]);
    assert_eq!(tcp.sender.counters().reductions, 1);
    tcp.room = None;
    tcp.ack(4);
    while tcp.take().is_some() {}
    tcp.at(300).ack(10);
    while tcp.take().is_some() {}
    tcp.ack(12);
    let sample = tcp.sender.sample();
    assert_eq!((sample.state, sample.ssthresh), (State::Open, 7));
}

#[test]
fn the_classic_sender_does_not_notice_an_overflow() {
    let mut tcp = established(&TcpConfig::new(Profile::Classic));
    tcp.room = Some(5);
    tcp.supply(None).sends(0..5);
    let sample = tcp.sender.sample();
    assert_eq!((sample.state, sample.cwnd, sample.packets_out), (State::Open, 10, 10));
}

#[test]
fn small_queues_let_more_out_only_as_packets_leave_the_host() {
    let config = TcpConfig { small_queues: true, ..TcpConfig::new(Profile::Linux) };
    let mut tcp = established(&config);
    tcp.departs(2); // SYN and ACK
    tcp.supply(None);
    let mut sent = 0;
    while tcp.take().is_some() {
        sent += 1;
    }
    assert!((2..=4).contains(&sent), "{sent} in the host's queue");
    tcp.departs(1).sends([sent]);
    tcp.departs(1).sends([sent + 1]);
}

#[test]
fn neither_generation_has_small_queues_unless_the_host_queue_has() {
    for profile in [Profile::Linux, Profile::Classic] {
        assert!(!TcpConfig::new(profile).small_queues);
    }
}
