//! The queue of the sending host.

use wakeai_connection::{Bounds, CongestionState};
use wakeai_tcp::{Profile, TcpConfig, by_name};

use crate::script::{SenderScript, at_ms};

fn established(config: &TcpConfig) -> SenderScript {
    let cubic = by_name("cubic", config).expect("it is known");
    SenderScript::established(config, cubic, 100)
}

#[test]
fn an_overflow_is_local_congestion_and_not_a_loss() {
    let mut tcp = established(&TcpConfig::new(Profile::Linux));
    tcp.room = Some(5);
    tcp.supply(None).sends(0..5);
    let sample = tcp.sender.figures();
    assert_eq!(
        (sample.congestion_state, sample.ssthresh.get(), sample.packets_out.get()),
        (CongestionState::Cwr, 7, 5)
    );
    assert_eq!(tcp.sender.counters().local_drops, 1);
    tcp.room = None;
    // The segment that did not leave is the next to leave. It counts as sent for the first time.
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
fn local_congestion_reduces_the_window_once_per_flight() {
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
    let sample = tcp.sender.figures();
    assert_eq!((sample.congestion_state, sample.ssthresh.get()), (CongestionState::Open, 7));
}

#[test]
fn the_classic_sender_does_not_notice_an_overflow() {
    let mut tcp = established(&TcpConfig::new(Profile::Classic));
    tcp.room = Some(5);
    tcp.supply(None).sends(0..5);
    let sample = tcp.sender.figures();
    assert_eq!(
        (sample.congestion_state, sample.cwnd.get(), sample.packets_out.get()),
        (CongestionState::Open, 10, 10)
    );
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

/// The largest A-MPDU of 802.11n.
const AGGREGATE: u64 = 65_535;

/// Counts the segments that leave until `end_ms`. With `drains` the host's queue empties meanwhile.
fn run(tcp: &mut SenderScript, end_ms: u64, drains: bool) -> u64 {
    let mut sent = 0;
    loop {
        sent += std::iter::from_fn(|| tcp.take()).count() as u64;
        if drains && !tcp.queued.is_empty() {
            tcp.departs(1);
        } else if tcp.sender.next_timeout().is_some_and(|due| due < at_ms(end_ms)) {
            tcp.at_next_timeout();
        } else {
            return sent;
        }
    }
}

/// The number of packets that a sender keeps in a host's queue that does not drain, once its window
/// is at the floor. `bounds` are floor, ceiling, pacing rate and bytes in the queue.
fn kept(algorithm: &str, bounds: (u32, u32, u64, u64)) -> usize {
    let config = TcpConfig { small_queues: true, ..TcpConfig::new(Profile::Linux) };
    let algorithm = by_name(algorithm, &config).expect("it is known");
    let mut tcp = SenderScript::established(&config, algorithm, 100);
    let (floor, ceiling, pacing, small_queue) = bounds;
    tcp.sender.set_bounds(Bounds::from_numbers(floor, ceiling, pacing, small_queue));
    tcp.supply(None);
    let first = run(&mut tcp, 190, true);
    tcp.at(200).ack(first);
    let second = run(&mut tcp, 290, true);
    tcp.at(300).ack(first + second);
    run(&mut tcp, 390, false);
    tcp.queued.len()
}

#[test]
fn a_budget_under_a_ceiling_keeps_an_aggregate_queued() {
    for algorithm in ["cubic", "reno", "wakeai_rtt", "wakeai_av", "wakeai_compound"] {
        // An aggregate has room for 43 packets of 1500 bytes.
        assert_eq!(kept(algorithm, (60, 60, 0, AGGREGATE)), 43, "{algorithm}");
        // Two windows per RTT, as in slow start, carry 9 packets in 7.8 ms. One more packet is
        // admitted.
        assert_eq!(kept(algorithm, (60, 60, 0, 0)), 10, "{algorithm}");
        // Two windows of four segments carry less than a packet in that time. Two packets may
        // always wait.
        assert_eq!(kept(algorithm, (4, 4, 0, 0)), 3, "{algorithm}");
        assert_eq!(kept(algorithm, (4, 4, 0, AGGREGATE)), 4, "{algorithm}");
    }
}

#[test]
fn a_budget_without_a_ceiling_changes_nothing() {
    assert_eq!(kept("cubic", (60, 0, 0, AGGREGATE)), kept("cubic", (60, 0, 0, 0)));
}

#[test]
fn a_paced_sender_has_no_budget() {
    let paced = |small_queue| kept("cubic", (60, 60, 1_000_000, small_queue));
    assert_eq!(paced(AGGREGATE), paced(0));
    assert!(paced(AGGREGATE) < 10);
}

#[test]
fn a_host_without_small_queues_takes_what_the_window_lets_out() {
    let config = TcpConfig::new(Profile::Linux);
    let mut tcp = established(&config);
    tcp.sender.set_bounds(Bounds::from_numbers(60, 60, 0, 3000));
    tcp.supply(None).sends(0..10);
    tcp.at(180).ack(1).sends(10..61);
}

#[test]
fn small_queues_are_off_unless_the_host_queue_has_them() {
    for profile in [Profile::Linux, Profile::Classic] {
        assert!(!TcpConfig::new(profile).small_queues);
    }
}
