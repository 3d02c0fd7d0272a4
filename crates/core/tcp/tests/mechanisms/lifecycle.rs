//! How a connection begins and ends, seen from the sender.

use wakeai_connection::EventKind;
use wakeai_tcp::{Flags, Profile, Segment, TcpConfig, by_name};
use wakeai_units::Duration;

use crate::script::{SenderScript, at_ms, clock_ms, ms, position};

fn opening(profile: Profile) -> SenderScript {
    let config = TcpConfig::new(profile);
    let cubic = by_name("cubic", &config).expect("it is known");
    SenderScript::opening(&config, cubic)
}

fn established() -> SenderScript {
    let config = TcpConfig::new(Profile::Linux);
    SenderScript::established(&config, by_name("cubic", &config).expect("it is known"), 100)
}

#[test]
fn a_syn_offers_what_linux_offers() {
    let mut tcp = opening(Profile::Linux);
    tcp.sends_flags(Flags::SYN, 0);
    let options = tcp.last.options;
    assert_eq!(options.mss, Some(1460));
    assert!(options.sack_permitted && options.window_scale.is_some());
    assert_eq!(tcp.last.timestamp.map(|stamp| stamp.value), Some(clock_ms(at_ms(0))));
    assert_eq!(tcp.last.packet_len(), 60);
}

#[test]
fn the_handshake_gives_the_first_rtt() {
    let mut tcp = established();
    let sample = tcp.sender.figures();
    assert_eq!(sample.smoothed_rtt, Some(ms(100)));
    assert_eq!(tcp.sender.retransmission_timeout(), ms(300));
    assert!(tcp.events().contains(&EventKind::Opened));
}

#[test]
fn a_syn_is_repeated_each_second_and_then_with_backoff() {
    let mut tcp = opening(Profile::Linux);
    tcp.sends_flags(Flags::SYN, 0);
    for seconds in [1, 2, 3, 4, 5, 7, 11, 19, 35, 67] {
        tcp.at(1000 * seconds).sends_flags(Flags::SYN, 0);
    }
    tcp.at(130_999).sends_nothing();
    assert!(!tcp.sender.has_failed());
    tcp.at(131_000).sends_nothing();
    assert!(tcp.sender.has_failed());
    let counters = tcp.sender.counters();
    assert_eq!((counters.syns_sent, counters.syn_timeouts), (11, 10));
    assert_eq!(counters.syn_wait, Duration::from_secs(131), "it waited until it gave up");
}

#[test]
fn the_classic_syn_backs_off_from_the_first_on() {
    let mut tcp = opening(Profile::Classic);
    tcp.sends_flags(Flags::SYN, 0);
    for seconds in [1, 3, 7, 15, 31, 63] {
        tcp.at(1000 * seconds).sends_flags(Flags::SYN, 0);
    }
    tcp.at(127_000).sends_nothing();
    assert!(tcp.sender.has_failed());
}

#[test]
fn what_lost_syns_cost_is_counted() {
    let mut tcp = opening(Profile::Classic);
    tcp.sends_flags(Flags::SYN, 0);
    tcp.at(1000).sends_flags(Flags::SYN, 0);
    tcp.at(3000).sends_flags(Flags::SYN, 0);
    tcp.at(3100).syn_ack().sends_flags(Flags::ACK, 1);
    let counters = tcp.sender.counters();
    assert_eq!((counters.syns_sent, counters.syn_timeouts), (3, 2));
    assert_eq!((counters.syn_wait, counters.handshake), (Duration::from_secs(3), ms(3100)));
}

#[test]
fn a_syn_ack_that_comes_again_is_acknowledged_again() {
    let mut tcp = established();
    tcp.at(1100).syn_ack().sends_flags(Flags::ACK, 1);
}

#[test]
fn the_fin_rides_on_the_last_data_and_the_peers_is_acknowledged() {
    let mut tcp = established();
    tcp.supply_all(2);
    assert_eq!(tcp.take().map(|first| first.flags), Some(Flags::ACK));
    tcp.sends([1]);
    assert_eq!(tcp.last.flags, Flags { psh: true, ..Flags::FIN_ACK });
    let fin = position(2);
    tcp.at(200).peer_fin(fin + 1).sends_flags(Flags::ACK, fin + 1);
    assert_eq!(tcp.last.ack, 2);
    assert!(tcp.sender.is_closed());
    assert!(tcp.events().contains(&EventKind::Closed));
    assert_eq!(tcp.sender.figures().send_queue.get(), 0);
    assert_eq!(tcp.sender.next_timeout(), None);
}

#[test]
fn a_fin_without_answer_is_repeated() {
    let mut tcp = established();
    tcp.supply_all(0);
    tcp.sends_flags(Flags::FIN_ACK, 1);
    tcp.at_next_timeout();
    tcp.sends_flags(Flags::FIN_ACK, 1);
    tcp.at_next_timeout();
    tcp.sends_flags(Flags::FIN_ACK, 1);
    assert!(!tcp.sender.is_closed());
}

#[test]
fn the_peers_fin_is_acknowledged_each_time_that_it_comes() {
    let mut tcp = established();
    tcp.supply_all(0);
    tcp.sends_flags(Flags::FIN_ACK, 1);
    tcp.at(200).peer_fin(2).sends_flags(Flags::ACK, 2);
    tcp.at(500).peer_fin(2).sends_flags(Flags::ACK, 2);
}

#[test]
fn a_reset_ends_it() {
    let mut tcp = established();
    tcp.supply(None).sends(0..10);
    tcp.inject(Segment { seq: 1, flags: Flags::RST, ..Segment::default() }).sends_nothing();
    assert!(tcp.sender.has_failed());
    tcp.at(100_000).sends_nothing();
}

#[test]
fn a_connection_is_given_up_after_fifteen_timeouts() {
    let mut tcp = established();
    tcp.supply(Some(1)).sends([0]);
    while let Some(due) = tcp.sender.next_timeout() {
        tcp.at_us(due.as_nanos().div_ceil(1000));
        tcp.take();
    }
    assert!(tcp.sender.has_failed());
    assert_eq!(tcp.sender.counters().timeouts, 15);
}
