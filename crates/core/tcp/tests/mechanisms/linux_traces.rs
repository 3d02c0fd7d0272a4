//! The observed behaviour of Linux 6.18, step by step. The kernel was one end, with CUBIC at the
//! sender and an application that reads at once at the receiver. The other end was a program that
//! wrote packets into a TUN device (`tests/record_linux_traces.py`). The RTT is 10 ms for receivers
//! and 100 ms for senders.

use wakeai_connection::{CongestionState, INFINITE_SSTHRESH};
use wakeai_tcp::{Flags, Profile, TcpConfig, by_name};

use crate::script::{ReceiverScript, SenderScript, at_ms, at_us, clock_ms, position};

/// 24 segments have arrived, a millisecond apart.
fn begun() -> ReceiverScript {
    let mut tcp = ReceiverScript::established(&TcpConfig::new(Profile::Linux));
    for segment in 0..24 {
        tcp.at(15 + segment).data(segment..segment + 1);
        match segment {
            0..22 => tcp.acks(segment + 1),
            22 => tcp.sends_nothing(),
            _ => tcp.acks(24),
        };
    }
    tcp
}

#[test]
fn the_windows_of_the_first_acks() {
    // The traces are from a host with 64 MB, in units of 2048.
    let config = TcpConfig { receive_buffer_limit: 64 << 20, ..TcpConfig::new(Profile::Linux) };
    let mut tcp = ReceiverScript::established(&config);
    let windows: Vec<u64> = (0..8)
        .map(|segment| {
            tcp.at(15 + segment).data(segment..segment + 1).acks(segment + 1);
            tcp.last.window
        })
        .collect();
    assert_eq!(windows, [69_632, 71_680, 75_776, 77_824, 79_872, 81_920, 81_920, 81_920]);
}

#[test]
fn twenty_two_quick_acks_and_then_one_for_two() {
    let mut tcp = begun();
    tcp.at(40).data(24..25);
    tcp.at(79).sends_nothing();
    tcp.at(80).acks(25);
}

#[test]
fn four_acks_of_a_gap_go_and_then_one_per_half_millisecond() {
    let mut tcp = begun();
    tcp.at(103);
    for segment in 25..29 {
        tcp.data(segment..segment + 1).acks_with(24, &[25..segment + 1]);
    }
    tcp.at_us(103_350).data(29..35).sends_nothing();
    tcp.at_us(103_850).acks_with(24, &[25..35]);
    tcp.at_us(103_900).data(35..40).sends_nothing();
    tcp.at_us(104_400).acks_with(24, &[25..40]);
    tcp.at(125).data(24..25).acks(40);
    assert_eq!(tcp.now(), at_us(125_000));
}

#[test]
fn a_copy_is_told_and_makes_sixteen_acks_quick() {
    let mut tcp = begun();
    tcp.at(103).data(3..4).acks_with(24, &[3..4]);
    for segment in 24..40 {
        tcp.at(80 + segment).data(segment..segment + 1).acks(segment + 1);
    }
    tcp.at(120).data(40..41).sends_nothing();
    tcp.at(121).data(41..42).acks(42);
}

#[test]
fn segments_30_ms_apart_are_acknowledged_in_pairs() {
    let mut tcp = begun();
    for pair in 12..15 {
        tcp.at(60 * pair - 650).data(2 * pair..2 * pair + 1).sends_nothing();
        tcp.at(60 * pair - 620).data(2 * pair + 1..2 * pair + 2).acks(2 * pair + 2);
    }
}

#[test]
fn a_fin_is_sent_again_as_a_probe_first() {
    let mut tcp = ReceiverScript::established(&TcpConfig::new(Profile::Linux));
    tcp.at(16).data(0..2).acks_each([1, 2]);
    tcp.at(18).fin(2).sends(Flags::FIN_ACK, 1);
    // Linux sent them 214, 216 and 432 ms later, in jiffies of 4 ms.
    tcp.at(228).sends(Flags::FIN_ACK, 1);
    tcp.at(438).sends(Flags::FIN_ACK, 1);
    tcp.at(858).sends(Flags::FIN_ACK, 1);
}

/// An endless stream over an RTT of 100 ms. The first ten segments are out, and it is 200 ms.
fn flight() -> SenderScript {
    let config = TcpConfig::new(Profile::Linux);
    let cubic = by_name("cubic", &config).expect("it is known");
    let mut tcp = SenderScript::established(&config, cubic, 100);
    tcp.supply(None).sends(0..10);
    tcp.at(200);
    tcp
}

fn echo(millis: u64) -> u32 {
    clock_ms(at_ms(millis))
}

#[test]
fn a_recovery_from_its_first_sack_to_its_end() {
    let mut tcp = flight();
    tcp.ack_with(0, &[1..2]).sends([10]);
    tcp.at(207).ack_with(0, &[1..3]).sends([11]);
    tcp.at(208).ack_with(0, &[1..4]).sends([0]);
    tcp.at(210).ack_with(0, &[1..5]).sends([12]);
    tcp.at(215).ack_with(0, &[1..6]).sends([13]);
    tcp.at(216).ack_with(0, &[1..7]).sends([]);
    tcp.at(218).ack_with(0, &[1..8]).sends([]);
    tcp.at(220).ack_with(0, &[1..9]).sends([14]);
    tcp.at(221).ack_with(0, &[1..10]).sends([15]);
    assert_eq!((tcp.sender.figures().ssthresh.get(), tcp.sender.figures().cwnd.get()), (7, 7));
    tcp.at(310).ack_echoing(12, &[], echo(208)).sends(16..19);
    assert_eq!(
        (tcp.sender.figures().congestion_state, tcp.sender.figures().cwnd.get()),
        (CongestionState::Open, 7)
    );
}

/// Segment 0 is late. It is sent again at 202 ms, although its first copy arrives.
fn late() -> SenderScript {
    let mut tcp = flight();
    tcp.ack_with(0, &[1..3]).sends([10, 11]);
    tcp.at(202).ack_with(0, &[1..4]).sends([0]);
    tcp
}

#[test]
fn a_recovery_that_a_timestamp_takes_back() {
    let mut tcp = late();
    tcp.at(205).ack_echoing(4, &[], echo(100));
    let sample = tcp.sender.figures();
    assert_eq!(
        (sample.congestion_state, sample.ssthresh.get(), sample.cwnd.get()),
        (CongestionState::Open, INFINITE_SSTHRESH, 11)
    );
    assert_eq!(tcp.take().map(|segment| segment.seq), Some(position(12)));
}

#[test]
fn a_recovery_that_a_dsack_takes_back() {
    let mut tcp = late();
    tcp.at(205).ack_echoing(4, &[], echo(202)).sends([12]);
    let sample = tcp.sender.figures();
    assert_eq!(
        (sample.congestion_state, sample.ssthresh.get(), sample.cwnd.get()),
        (CongestionState::Recovery, 7, 9)
    );
    tcp.at(300).ack_echoing(4, &[0..1], echo(202)).sends([13]);
    let sample = tcp.sender.figures();
    assert_eq!(
        (sample.congestion_state, sample.ssthresh.get(), sample.cwnd.get()),
        (CongestionState::Open, INFINITE_SSTHRESH, 10)
    );
}

#[test]
fn a_retransmission_that_is_lost_too() {
    let mut tcp = flight();
    tcp.ack_with(0, &[1..3]).sends([10, 11]);
    tcp.at(202).ack_with(0, &[1..4]).sends([0]);
    tcp.at(204).ack_with(0, &[1..5]).sends([12]);
    tcp.at(206).ack_with(0, &[1..10]).sends(13..16);
    tcp.at(308).ack_with(0, &[1..13]).sends([0, 16, 17, 18]);
    assert_eq!(
        (tcp.sender.figures().congestion_state, tcp.sender.figures().cwnd.get()),
        (CongestionState::Recovery, 7)
    );
}

#[test]
fn a_single_segment_is_probed_at_its_timeout_and_times_out_anew() {
    let config = TcpConfig::new(Profile::Linux);
    let cubic = by_name("cubic", &config).expect("it is known");
    let mut tcp = SenderScript::established(&config, cubic, 100);
    tcp.supply(Some(1)).sends([0]);
    // Linux sent them 320, 320, 640 and 1248 ms apart, in jiffies of 4 ms and with a busy host.
    for due in [400, 700, 1300, 2500] {
        tcp.at(due).sends([0]);
    }
}

#[test]
fn the_window_after_350_ms_of_idleness() {
    let config = TcpConfig::new(Profile::Linux);
    let cubic = by_name("cubic", &config).expect("it is known");
    let mut tcp = SenderScript::established(&config, cubic, 100);
    tcp.supply(Some(40)).sends(0..10);
    tcp.at(200).ack(10).sends(10..30);
    tcp.at(300).ack(30).sends(30..40);
    tcp.at(400).ack(40).sends_nothing();
    assert_eq!(tcp.sender.figures().cwnd.get(), 40);
    tcp.at(750).supply(Some(240)).sends(40..60);
    assert_eq!(tcp.sender.figures().cwnd.get(), 20);
}

/// Ten segments leave at 100 ms, and no answer arrives until 690 ms.
fn timed_out() -> SenderScript {
    let config = TcpConfig::new(Profile::Linux);
    let cubic = by_name("cubic", &config).expect("it is known");
    let mut tcp = SenderScript::established(&config, cubic, 100);
    tcp.supply(None).sends(0..10);
    tcp.at_next_timeout();
    tcp.sends([10]);
    tcp.at_next_timeout();
    tcp.sends([0]);
    let sample = tcp.sender.figures();
    assert_eq!(
        (sample.congestion_state, sample.lost_out.get(), sample.cwnd.get()),
        (CongestionState::Loss, 11, 1)
    );
    tcp.at(690);
    tcp
}

#[test]
fn new_data_after_a_timeout_shows_it_to_be_spurious() {
    let mut tcp = timed_out();
    let retransmitted = tcp.last.timestamp.map_or(0, |stamp| stamp.value);
    tcp.ack_echoing(1, &[], retransmitted).sends([11, 12]);
    assert_eq!(
        (tcp.sender.figures().congestion_state, tcp.sender.figures().cwnd.get()),
        (CongestionState::Loss, 2)
    );
    tcp.at(790).ack_echoing(2, &[], echo(100));
    let sample = tcp.sender.figures();
    assert_eq!(
        (sample.congestion_state, sample.lost_out.get(), sample.cwnd.get()),
        (CongestionState::Open, 0, 11)
    );
    assert_eq!(sample.ssthresh.get(), INFINITE_SSTHRESH);
}

#[test]
fn a_timeout_is_undone_when_the_second_segment_is_acknowledged() {
    let mut tcp = timed_out();
    let retransmitted = tcp.last.timestamp.map_or(0, |stamp| stamp.value);
    tcp.ack_echoing(2, &[], retransmitted);
    let sample = tcp.sender.figures();
    assert_eq!(
        (sample.congestion_state, sample.ssthresh.get(), sample.cwnd.get()),
        (CongestionState::Open, INFINITE_SSTHRESH, 12)
    );
}

#[test]
fn a_timeout_that_a_timestamp_takes_back() {
    let mut tcp = timed_out();
    tcp.ack_echoing(1, &[], echo(100)).sends([11]);
    let sample = tcp.sender.figures();
    assert_eq!(
        (sample.congestion_state, sample.ssthresh.get(), sample.cwnd.get()),
        (CongestionState::Open, INFINITE_SSTHRESH, 11)
    );
}

#[test]
fn five_losses_in_a_window_of_twenty() {
    let mut tcp = flight();
    tcp.ack(10).sends(10..30);
    tcp.at(300).ack_with(10, &[15..16]).sends([30]);
    tcp.at(301).ack_with(10, &[15..17]).sends([31]);
    tcp.at(302).ack_with(10, &[15..18]).sends([10]);
    tcp.at(303).ack_with(10, &[15..19]).sends([]);
    for arrived in 20..31 {
        // First the losses, then new data, a segment for each that arrives.
        let left = if arrived < 24 { arrived - 9 } else { arrived + 8 };
        tcp.at(284 + arrived).ack_with(10, &[15..arrived]).sends([left]);
    }
    let sample = tcp.sender.figures();
    assert_eq!(
        (sample.ssthresh.get(), sample.cwnd.get(), sample.lost_out.get(), sample.retrans_out.get()),
        (14, 14, 5, 5)
    );
    // For 102 ms the arrivals were out of order. The two segments that left after the first SACKs
    // are lost.
    tcp.at_us(403_500).ack_echoing(11, &[15..30], echo(302)).sends([30, 31]);
    tcp.at_us(405_500).ack_echoing(12, &[15..30], echo(304)).sends([39, 40]);
    tcp.at_us(406_500).ack_echoing(13, &[15..30], echo(305)).sends([41]);
    tcp.at_us(407_500).ack_echoing(14, &[15..30], echo(306)).sends([42]);
    let sample = tcp.sender.figures();
    assert_eq!(
        (
            sample.cwnd.get(),
            sample.packets_out.get(),
            sample.lost_out.get(),
            sample.retrans_out.get()
        ),
        (14, 29, 3, 3)
    );
}
