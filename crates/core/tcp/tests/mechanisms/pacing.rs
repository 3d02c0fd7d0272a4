//! Segments spread over time, where an algorithm or a bound asks for it.

use wakeai_algorithms::{Algorithm, Knobs, TcpSock};
use wakeai_connection::Bounds;
use wakeai_tcp::{Flags, Profile, TcpConfig, by_name};

use crate::script::{MSS, SenderScript, at_ms};

fn established(algorithm: Algorithm) -> SenderScript {
    SenderScript::established(&TcpConfig::new(Profile::Linux), algorithm, 100)
}

fn cubic() -> Algorithm {
    by_name("cubic", &TcpConfig::new(Profile::Linux)).expect("it is known")
}

/// The times until `end_ms` at which segments leave, in microseconds since now.
fn departures(tcp: &mut SenderScript, end_ms: u64) -> Vec<u64> {
    let begin = tcp.now();
    let mut times = Vec::new();
    loop {
        while tcp.take().is_some() {
            times.push((tcp.now() - begin).as_micros());
        }
        match tcp.sender.next_timeout() {
            Some(due) if due < at_ms(end_ms) => tcp.at_next_timeout(),
            _ => return times,
        };
    }
}

#[test]
fn without_a_reason_a_window_leaves_at_once() {
    let mut tcp = established(cubic());
    tcp.supply(None).sends(0..10);
    tcp.at(200).ack(10).sends(10..30);
    assert_eq!(tcp.sender.algorithm().sk_pacing_status, 0);
}

#[test]
fn a_bound_spreads_segments_to_its_rate() {
    let mut tcp = established(cubic());
    tcp.supply(None).sends(0..10);
    tcp.sender.set_bounds(Bounds::from_numbers(0, 0, 100 * MSS, 0));
    tcp.at(200).ack(10);
    let times = departures(&mut tcp, 300);
    assert!((10..=11).contains(&times.len()), "{times:?}");
    // After a pause the second segment may follow in half the time.
    for pair in times[1..].windows(2) {
        assert!((9_900..=10_100).contains(&(pair[1] - pair[0])), "{times:?}");
    }
}

#[test]
fn a_bound_that_is_lifted_paces_no_longer() {
    let mut tcp = established(cubic());
    tcp.supply(None).sends(0..10);
    tcp.sender.set_bounds(Bounds::from_numbers(0, 0, 100 * MSS, 0));
    tcp.at(200).ack(5);
    let paced = departures(&mut tcp, 230).len();
    tcp.sender.set_bounds(Bounds::NONE);
    tcp.at(230).ack(10);
    let times = departures(&mut tcp, 300);
    assert!(paced <= 4 && times.len() > 10, "{paced} and {times:?}");
    assert!(times.iter().filter(|time| **time == 0).count() + 1 >= times.len(), "{times:?}");
}

#[test]
fn an_algorithm_that_asks_is_paced_at_its_own_rate() {
    let config = TcpConfig::new(Profile::Linux);
    let mut sock = TcpSock::new(config.mss, config.initial_window);
    sock.sk_pacing_status = 1;
    let mut tcp = established(Algorithm::cubic(sock, Knobs::default()));
    tcp.supply(None).sends(0..10);
    tcp.at(200).ack(10);
    let times = departures(&mut tcp, 290);
    // A window of 20 segments over 100 ms leaves at twice that rate, so the segments are 2.5 ms
    // apart.
    assert!(times.len() == 20, "{times:?}");
    for pair in times[1..].windows(2) {
        assert!((2_400..=2_600).contains(&(pair[1] - pair[0])), "{times:?}");
    }
}

#[test]
fn a_ceiling_holds_from_the_first_flight_on() {
    let mut tcp = SenderScript::opening(&TcpConfig::new(Profile::Linux), cubic());
    tcp.sends_flags(Flags::SYN, 0);
    tcp.sender.set_bounds(Bounds::from_numbers(0, 6, 0, 0));
    tcp.at(100).syn_ack().sends_flags(Flags::ACK, 1);
    tcp.supply(None).sends(0..6);
    tcp.at(200).ack(1).sends([6]);
    tcp.sender.set_bounds(Bounds::from_numbers(20, 0, 0, 0));
    assert_eq!(tcp.sender.figures().cwnd.get(), 6);
    tcp.ack(2);
    assert_eq!(tcp.sender.figures().cwnd.get(), 20);
}

#[test]
fn a_floor_waits_for_the_first_ack() {
    let mut tcp = SenderScript::opening(&TcpConfig::new(Profile::Linux), cubic());
    tcp.sends_flags(Flags::SYN, 0);
    tcp.sender.set_bounds(Bounds::from_numbers(40, 0, 0, 0));
    tcp.at(100).syn_ack().sends_flags(Flags::ACK, 1);
    tcp.supply(None).sends(0..10);
    tcp.at(180).ack(1).sends(10..41);
}
