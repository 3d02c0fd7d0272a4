//! The observed behaviour of Linux 6.18, segment by segment. The kernel (cubic) was the sender, and
//! a program that read and wrote packets on a TUN device was the receiver. The kernel's clock was
//! rounded to the clock of the script. The expiry of a timer was rounded to the time for which the
//! timer was set, because the timer wheel is up to a tenth late.

use wakeai_connection::CongestionState;
use wakeai_tcp::{Profile, TcpConfig, by_name};

use crate::script::SenderScript;

/// The first ten segments left at `rtt_ms`.
fn flight(rtt_ms: u64) -> SenderScript {
    let config = TcpConfig::new(Profile::Linux);
    let cubic = by_name("cubic", &config).expect("it is known");
    let mut tcp = SenderScript::established(&config, cubic, rtt_ms);
    tcp.supply(None).sends(0..10);
    tcp
}

#[test]
fn three_holes_are_repaired_as_they_show() {
    let mut tcp = flight(100);
    let echo = 101;
    tcp.at(200).ack_echoing(0, &[1..2], echo).sends([10]);
    tcp.at(210).ack_echoing(0, &[1..3], echo).sends([11]);
    tcp.at(220).ack_echoing(0, &[4..5, 1..3], echo).sends([0]);
    tcp.at(230).ack_echoing(0, &[4..6, 1..3], echo).sends_nothing();
    tcp.at(240).ack_echoing(0, &[7..8, 4..6, 1..3], echo).sends([3, 6]);
    tcp.at(250).ack_echoing(0, &[7..9, 4..6, 1..3], echo).sends([12]);
    tcp.at(260).ack_echoing(0, &[7..10, 4..6, 1..3], echo).sends([13]);
    tcp.at(270).ack_echoing(3, &[7..10, 4..6], echo).sends([14]);
    tcp.at(380).ack_echoing(6, &[7..10], echo).sends([15]);
}

#[test]
fn a_lost_retransmission_is_repaired_in_the_same_recovery() {
    let mut tcp = flight(10);
    // From here to the fourth SACK the kernel withheld segment 11, to send two segments at once.
    let sent: Vec<Vec<u64>> = (2..18)
        .map(|end| {
            tcp.at(18 + end).ack_echoing(0, &[1..end], 11);
            let sent = std::iter::from_fn(|| tcp.take());
            sent.map(|segment| (segment.seq - 1) / crate::script::MSS).collect()
        })
        .collect();
    assert_eq!(sent[2], [0]);
    let new: Vec<u64> = sent[..9].iter().flatten().copied().filter(|new| *new > 0).collect();
    assert_eq!(new, [10, 11, 12, 13, 14, 15]);
    assert_eq!(sent[9..11], [vec![16], vec![17]]);
    assert_eq!(sent[11..], [vec![0, 18], vec![19], vec![20], vec![21], vec![22]]);
}

#[test]
fn a_needless_timeout_that_a_dsack_shows_goes_on_where_it_was() {
    let mut tcp = flight(10);
    tcp.at_next_timeout();
    tcp.sends([10]).at_next_timeout();
    tcp.sends([0]);
    tcp.at(430).ack_echoing(10, &[0..1], 11).sends(11..31);
    tcp.at(450).ack_echoing(10, &[9..10], 11).sends_nothing();
}

#[test]
fn new_data_after_two_timeouts_undoes_them() {
    let mut tcp = flight(100);
    for sent in [10, 0, 0] {
        tcp.at_next_timeout();
        tcp.sends([sent]);
    }
    tcp.at(1600).ack(1).sends([11, 12]);
    assert_eq!(tcp.sender.figures().congestion_state, CongestionState::Loss);
    tcp.at(1700).ack(2).sends_nothing();
    assert_eq!(tcp.sender.figures().congestion_state, CongestionState::Open);
    tcp.at(1800).ack(4).sends(13..17);
    tcp.at(1900).ack(10).sends(17..29);
}

#[test]
fn after_a_recovery_that_is_taken_back_the_window_is_used_again() {
    let mut tcp = flight(10);
    for end in 2..11 {
        tcp.at(18 + end).ack_echoing(0, &[1..end], 11);
        while tcp.take().is_some() {}
    }
    tcp.at_us(30_600).ack(10).sends([16]);
    tcp.at_us(31_600).ack(11).sends(17..22);
    for (acked, next) in (12..20).zip((22..).step_by(2)) {
        tcp.at_us(31_600 + 1_000 * (acked - 11)).ack(acked).sends(next..next + 2);
    }
    // The probe left 27 ms after the last segment.
    let quiet = tcp.now();
    tcp.at_next_timeout();
    assert!((26..=29).contains(&(tcp.now() - quiet).as_millis()), "{}", tcp.now() - quiet);
    tcp.sends([38]);
}
