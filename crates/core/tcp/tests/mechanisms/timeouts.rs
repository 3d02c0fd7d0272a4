//! The retransmission timeout (RFC 6298) and its consequences.

use wakeai_connection::CongestionState;
use wakeai_tcp::{Profile, TcpConfig, by_name};

use crate::script::{SenderScript, at_ms, clock_ms, ms};

fn established(profile: Profile, rtt_ms: u64) -> SenderScript {
    let config = TcpConfig::new(profile);
    let cubic = by_name("cubic", &config).expect("it is known");
    SenderScript::established(&config, cubic, rtt_ms)
}

#[test]
fn nothing_is_sent_again_within_200_ms() {
    for profile in [Profile::Linux, Profile::Classic] {
        let mut tcp = established(profile, 1);
        tcp.supply(Some(1)).sends([0]);
        tcp.at(200).sends_nothing();
        tcp.at_next_timeout();
        tcp.sends([0]);
    }
}

#[test]
fn linux_adds_the_minimum_timeout_to_the_rtt() {
    for (profile, timeout) in [(Profile::Classic, 200), (Profile::Linux, 220)] {
        let tcp = established(profile, 20);
        assert_eq!(tcp.sender.retransmission_timeout(), ms(timeout));
    }
}

#[test]
fn each_timeout_is_twice_the_one_before_up_to_the_longest() {
    let mut tcp = established(Profile::Classic, 100);
    tcp.supply(Some(1)).sends([0]);
    let mut waits = Vec::new();
    for _ in 0..11 {
        let before = tcp.now();
        tcp.at_next_timeout();
        tcp.sends([0]);
        waits.push((tcp.now() - before).as_millis());
    }
    // In the classic profile a minute is the longest timeout.
    assert_eq!(waits, [300, 600, 1200, 2400, 4800, 9600, 19_200, 38_400, 60_000, 60_000, 60_000]);
    assert_eq!(tcp.sender.counters().timeouts, 11);
    assert_eq!(tcp.sender.counters().timeouts_in_a_row, 11);
    assert_eq!(tcp.sender.counters().timeouts_in_a_row, 11);
}

/// A sender with ten segments out, whose retransmission timer has expired.
fn timed_out(profile: Profile) -> SenderScript {
    let mut tcp = established(profile, 100);
    tcp.supply(None).sends(0..10);
    while tcp.sender.counters().timeouts == 0 {
        while tcp.take().is_some() {}
        tcp.at_next_timeout();
    }
    tcp
}

#[test]
fn after_a_timeout_it_slow_starts_from_one_segment() {
    let mut tcp = timed_out(Profile::Classic);
    assert_eq!(tcp.now(), at_ms(400));
    tcp.sends([0]);
    let sample = tcp.sender.figures();
    assert_eq!(
        (sample.congestion_state, sample.cwnd.get(), sample.ssthresh.get()),
        (CongestionState::Loss, 1, 7)
    );
    assert_eq!(sample.lost_out.get(), 10);
    tcp.at(500).ack(1).sends([1, 2]);
    tcp.at(600).ack(2).sends([3, 4]);
    tcp.ack(3).sends([5, 6]);
    assert_eq!(tcp.sender.figures().cwnd.get(), 4);
}

#[test]
fn the_timestamp_of_a_retransmission_ends_the_backoff() {
    let mut tcp = timed_out(Profile::Classic);
    tcp.sends([0]);
    assert_eq!(tcp.sender.retransmission_timeout(), ms(600));
    tcp.at(480).ack(1);
    let sample = tcp.sender.figures();
    assert_eq!(sample.latest_rtt, Some(ms(80)), "by the echo of what left at 400 ms");
    assert!(
        tcp.sender.retransmission_timeout() < ms(400),
        "{}",
        tcp.sender.retransmission_timeout()
    );
}

#[test]
fn a_timeout_that_new_data_shows_to_be_needless_is_taken_back() {
    let mut tcp = timed_out(Profile::Linux);
    while tcp.take().is_some() {}
    let now = clock_ms(tcp.now());
    // Segment 1 was never sent again, so its first transmission arrived.
    let later = (tcp.now() - at_ms(0)).as_millis() + 10;
    tcp.at(later).ack_echoing(2, &[], now);
    assert_eq!(tcp.sender.counters().undone_by_frto, 1);
    let sample = tcp.sender.figures();
    assert_eq!((sample.congestion_state, sample.lost_out.get()), (CongestionState::Open, 0));
    assert!(sample.cwnd.get() >= 10, "{}", sample.cwnd.get());
}
