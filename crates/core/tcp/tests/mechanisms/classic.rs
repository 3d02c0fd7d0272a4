//! Behaviour of the classic sender that Linux does not have.

use wakeai_connection::CongestionState;
use wakeai_tcp::{Profile, TcpConfig, by_name};
use wakeai_units::{Duration, Instant};

use crate::script::{SenderScript, at_ms};

/// A path with an RTT of 100 ms. All ten segments of the stream leave at 100 ms, the last one with
/// the FIN.
fn ten(profile: Profile) -> SenderScript {
    let config = TcpConfig::new(profile);
    let cubic = by_name("cubic", &config).expect("it is known");
    let mut tcp = SenderScript::established(&config, cubic, 100);
    tcp.supply_all(10).sends(0..10);
    assert!(tcp.last.flags.fin);
    tcp
}

fn numbers(tcp: &mut SenderScript) -> Vec<u64> {
    let taken = std::iter::from_fn(|| tcp.take());
    taken.map(|segment| (segment.seq - 1) / crate::script::MSS).collect()
}

#[test]
fn a_recovery_resends_what_may_be_lost_with_window_to_spare() {
    // RFC 6675's rule 3: two segments above segment 7 have arrived. They do not make it lost yet.
    let mut tcp = ten(Profile::Classic);
    tcp.at(200).ack_with(0, &[1..4]).sends([0]);
    assert_eq!(tcp.sender.figures().congestion_state, CongestionState::Recovery);
    tcp.ack_with(0, &[8..9, 1..7]);
    assert_eq!(numbers(&mut tcp)[0], 7);
}

#[test]
fn the_last_segment_is_rescued_once_per_recovery() {
    // Rule 4: no segment above the last one exists, so no arrival can show that it is lost.
    let mut tcp = ten(Profile::Classic);
    tcp.at(200).ack_with(0, &[1..4]).sends([0]);
    tcp.ack_with(0, &[1..9]);
    assert_eq!(numbers(&mut tcp), [9]);
    tcp.at(300).ack(9).sends_nothing();
    assert_eq!(tcp.sender.counters().retransmits, 2);
}

/// The time at which the retransmission timer expires.
fn due(tcp: &SenderScript) -> Instant {
    tcp.sender.next_timeout().expect("it runs")
}

/// Ten segments of an endless stream.
fn endless(profile: Profile) -> SenderScript {
    let config = TcpConfig::new(profile);
    let cubic = by_name("cubic", &config).expect("it is known");
    let mut tcp = SenderScript::established(&config, cubic, 100);
    tcp.supply(None).sends(0..10);
    tcp
}

#[test]
fn a_retransmission_leaves_the_timer_as_it_is() {
    for profile in [Profile::Classic, Profile::Linux] {
        let mut tcp = endless(profile);
        tcp.at(200).ack(1);
        let before = due(&tcp);
        numbers(&mut tcp);
        tcp.at(250).ack_with(1, &[2..5]);
        assert!(numbers(&mut tcp).contains(&1));
        assert_eq!(due(&tcp) == before, profile == Profile::Classic);
    }
}

#[test]
fn a_second_partial_ack_leaves_the_timer_as_it_is() {
    for profile in [Profile::Classic, Profile::Linux] {
        let mut tcp = endless(profile);
        tcp.at(200).ack_with(0, &[1..2, 3..4, 5..9]);
        numbers(&mut tcp);
        tcp.at(250).ack_with(2, &[3..4, 5..9]);
        numbers(&mut tcp);
        let first = due(&tcp);
        assert!(first > at_ms(250 + 199), "{first}");
        tcp.at(300).ack_with(4, &[5..9]);
        numbers(&mut tcp);
        assert_eq!(due(&tcp) == first, profile == Profile::Classic);
    }
}

#[test]
fn as_in_ns_3_an_ack_of_a_retransmission_ends_the_backoff() {
    for forgets_backoff in [true, false] {
        let config = TcpConfig { forgets_backoff, ..TcpConfig::new(Profile::Classic) };
        let cubic = by_name("ns3_cubic", &config).expect("it is known");
        let mut tcp = SenderScript::established(&config, cubic, 100);
        tcp.supply(None).sends(0..10);
        for _ in 0..2 {
            tcp.at_next_timeout();
            numbers(&mut tcp);
        }
        let answered = tcp.now() + Duration::from_millis(400);
        tcp.at_us(answered.as_nanos() / 1_000).ack(1);
        let rto = due(&tcp).saturating_since(answered);
        // The handshake measured 100 ms, so the timeout is 100 + 4 · 50 ms.
        assert_eq!(rto == Duration::from_millis(300), forgets_backoff, "{rto}");
    }
}
