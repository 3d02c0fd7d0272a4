//! The undoing of reductions that were spurious.

use wakeai_connection::{CongestionState, INFINITE_SSTHRESH};
use wakeai_tcp::{Profile, TcpConfig, by_name};

use crate::script::{SenderScript, at_ms, clock_ms};

/// Segment 0 came late and is sent again at 200 ms, because SACKs reported the segments that
/// overtook it.
fn needless_recovery(profile: Profile) -> SenderScript {
    let config = TcpConfig::new(profile);
    let cubic = by_name("cubic", &config).expect("it is known");
    let mut tcp = SenderScript::established(&config, cubic, 100);
    tcp.supply(None).sends(0..10);
    tcp.at(200).ack_with(0, &[1..3]).sends([10, 11]);
    tcp.ack_with(0, &[1..4]).sends([0]);
    assert_eq!(tcp.sender.figures().congestion_state, CongestionState::Recovery);
    tcp
}

/// The timestamp that answers a segment which was sent at this time.
fn echo(millis: u64) -> u32 {
    clock_ms(at_ms(millis))
}

#[test]
fn an_echo_from_before_the_retransmission_undoes_the_reduction() {
    let mut tcp = needless_recovery(Profile::Linux);
    tcp.at(205).ack_echoing(4, &[], echo(100));
    let sample = tcp.sender.figures();
    assert_eq!(tcp.sender.counters().undone_by_timestamps, 1);
    assert_eq!(
        (sample.congestion_state, sample.ssthresh.get()),
        (CongestionState::Open, INFINITE_SSTHRESH)
    );
    assert!(sample.cwnd.get() >= 10, "{}", sample.cwnd.get());
}

#[test]
fn an_echo_of_the_retransmission_does_not() {
    let mut tcp = needless_recovery(Profile::Linux);
    tcp.at(300).ack_echoing(4, &[], echo(200));
    let sample = tcp.sender.figures();
    assert_eq!((sample.congestion_state, sample.ssthresh.get()), (CongestionState::Recovery, 7));
    assert_eq!(tcp.sender.counters().undone_by_timestamps, 0);
}

#[test]
fn a_dsack_for_each_retransmission_takes_the_reduction_back() {
    let mut tcp = needless_recovery(Profile::Linux);
    tcp.at(205).ack_echoing(4, &[], echo(200));
    while tcp.take().is_some() {}
    assert_eq!(tcp.sender.figures().congestion_state, CongestionState::Recovery);
    tcp.at(300).ack_echoing(4, &[0..1], echo(200));
    let sample = tcp.sender.figures();
    assert_eq!((tcp.sender.counters().undone_by_dsack, tcp.sender.counters().dsacks), (1, 1));
    assert_eq!(
        (sample.congestion_state, sample.ssthresh.get()),
        (CongestionState::Open, INFINITE_SSTHRESH)
    );
    assert!(sample.cwnd.get() >= 10, "{}", sample.cwnd.get());
}

#[test]
fn the_classic_sender_takes_nothing_back() {
    let mut tcp = needless_recovery(Profile::Classic);
    tcp.at(205).ack_echoing(4, &[], echo(100));
    while tcp.take().is_some() {}
    tcp.at(300).ack_echoing(4, &[0..1], echo(200));
    assert_eq!(tcp.sender.figures().ssthresh.get(), 7);
}

#[test]
fn a_timeout_is_taken_back_by_an_echo_from_before_it() {
    let config = TcpConfig::new(Profile::Linux);
    let cubic = by_name("cubic", &config).expect("it is known");
    let mut tcp = SenderScript::established(&config, cubic, 100);
    tcp.supply(None).sends(0..10);
    while tcp.sender.counters().timeouts == 0 {
        while tcp.take().is_some() {}
        tcp.at_next_timeout();
    }
    while tcp.take().is_some() {}
    assert_eq!(tcp.sender.figures().cwnd.get(), 1);
    let later = (tcp.now() - at_ms(0)).as_millis() + 10;
    tcp.at(later).ack_echoing(1, &[], echo(100));
    let sample = tcp.sender.figures();
    assert_eq!(tcp.sender.counters().undone_by_timestamps, 1);
    assert_eq!((sample.congestion_state, sample.lost_out.get()), (CongestionState::Open, 0));
    assert!(sample.cwnd.get() >= 10, "{}", sample.cwnd.get());
}
