//! The segments that are sent while a loss is repaired (RFC 6937, RFC 6675).

use wakeai_connection::CongestionState;
use wakeai_tcp::{Profile, TcpConfig, by_name};

use crate::script::SenderScript;

/// Ten segments have been out since 100 ms, and it is 200 ms.
fn flight(profile: Profile) -> SenderScript {
    let config = TcpConfig::new(profile);
    let cubic = by_name("cubic", &config).expect("it is known");
    let mut tcp = SenderScript::established(&config, cubic, 100);
    tcp.supply(None).sends(0..10);
    tcp.at(200);
    tcp
}

/// Segment 0 is sent again. Segments 1 to 3 have arrived, and 10 and 11 are out by limited
/// transmit.
fn recovering(profile: Profile) -> SenderScript {
    let mut tcp = flight(profile);
    tcp.ack_with(0, &[1..2]).sends([10]);
    tcp.at(201).ack_with(0, &[1..3]).sends([11]);
    tcp.ack_with(0, &[1..4]).sends([0]);
    assert_eq!(tcp.sender.figures().congestion_state, CongestionState::Recovery);
    tcp
}

#[test]
fn the_window_shrinks_in_proportion_to_what_arrives() {
    for profile in [Profile::Linux, Profile::Classic] {
        let mut tcp = recovering(profile);
        assert_eq!(tcp.sender.figures().ssthresh.get(), 7);
        // 7 segments leave for 10 that arrive. The first retransmission counts as one of them.
        tcp.ack_with(0, &[1..5]).sends([12]);
        tcp.ack_with(0, &[1..6]).sends([13]);
        tcp.ack_with(0, &[1..7]).sends([]);
        tcp.ack_with(0, &[1..8]).sends([]);
        // Fewer segments than the threshold are in flight, so as many leave as arrive.
        tcp.ack_with(0, &[1..9]).sends([14]);
        tcp.ack_with(0, &[1..10]).sends([15]);
        let sample = tcp.sender.figures();
        assert_eq!(
            sample.packets_out.get() - sample.sacked_out.get() - sample.lost_out.get()
                + sample.retrans_out.get(),
            7
        );
    }
}

#[test]
fn recovery_ends_with_the_reduced_window() {
    for profile in [Profile::Linux, Profile::Classic] {
        let mut tcp = recovering(profile);
        tcp.at(300).ack_echoing(12, &[], tcp_stamp(201));
        let sample = tcp.sender.figures();
        assert_eq!((sample.congestion_state, sample.ssthresh.get()), (CongestionState::Open, 7));
        assert!((7..=8).contains(&sample.cwnd.get()), "{}", sample.cwnd.get());
        assert_eq!(sample.lost_out.get() + sample.retrans_out.get(), 0);
    }
}

fn tcp_stamp(millis: u64) -> u32 {
    crate::script::clock_ms(crate::script::at_ms(millis))
}

#[test]
fn losses_of_one_window_reduce_it_once() {
    for profile in [Profile::Linux, Profile::Classic] {
        let mut tcp = recovering(profile);
        tcp.ack_with(0, &[6..10, 1..4]);
        while tcp.take().is_some() {}
        tcp.at(300).ack_echoing(4, &[6..10], tcp_stamp(200));
        while tcp.take().is_some() {}
        let sample = tcp.sender.figures();
        assert_eq!(
            (sample.congestion_state, sample.ssthresh.get()),
            (CongestionState::Recovery, 7)
        );
        assert_eq!(tcp.sender.counters().recoveries, 1);
    }
}

#[test]
fn what_arrived_is_counted_once_however_often_it_is_told() {
    let mut tcp = flight(Profile::Linux);
    tcp.ack_with(0, &[4..6]).sends([10, 11]);
    tcp.ack_with(0, &[4..6]).sends_nothing();
    let sample = tcp.sender.figures();
    assert_eq!((sample.sacked_out.get(), sample.delivered), (2, 2));
    tcp.ack(6);
    assert_eq!(tcp.sender.figures().delivered, 6);
}
