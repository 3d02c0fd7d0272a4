//! The times and the content of the receiver's acknowledgements.

use wakeai_tcp::{Flags, Profile, Reading, Segment, TcpConfig, Timestamp};

use wakeai_units::Rate;

use crate::script::{MSS, ReceiverScript, at_ms, clock_ms, position};

fn linux() -> TcpConfig {
    TcpConfig::new(Profile::Linux)
}

fn classic() -> TcpConfig {
    TcpConfig::new(Profile::Classic)
}

/// A Linux receiver whose quick ACKs are used up, and the number of segments that it has.
fn settled() -> (ReceiverScript, u64) {
    let mut tcp = ReceiverScript::established(&linux());
    tcp.data(0..24);
    tcp.acks_each(1..=22).acks(24);
    (tcp, 24)
}

#[test]
fn first_each_segment_is_acknowledged_and_then_every_second() {
    // Six segments are acknowledged while the window opens, and then sixteen more.
    let mut tcp = ReceiverScript::established(&linux());
    tcp.data(0..22).acks_each(1..=22);
    tcp.data(22..26).acks_each([24, 26]).sends_nothing();
}

#[test]
fn quick_acks_are_half_the_window_where_that_is_less() {
    let config = TcpConfig { receive_buffer_limit: 12 * MSS, ..linux() };
    let mut tcp = ReceiverScript::established(&config);
    // Half of the buffer is offered. Half of this window is three segments.
    tcp.data(0..3).acks_each(1..=3);
    tcp.data(3..5).acks(5).sends_nothing();
}

#[test]
fn a_single_segment_is_acknowledged_after_40_ms() {
    let (mut tcp, next) = settled();
    tcp.data(next..next + 1).sends_nothing();
    tcp.at_us(49_999).sends_nothing();
    tcp.at(50).acks(next + 1);
    assert_eq!(tcp.receiver.counters().delayed_acks, 1);
}

#[test]
fn slow_segments_delay_the_ack_for_at_most_200_ms() {
    let config = linux();
    let mut tcp = ReceiverScript::listening(&config);
    tcp.syn().sends(Flags::SYN_ACK, 0);
    tcp.at(300).nothing(1, Flags::ACK);
    tcp.data(0..24).acks_each(1..=22).acks(24);
    // The segments are 30 ms apart, so the delay becomes 40 / 2 + 30 = 50 ms.
    tcp.at(330).data(24..25).sends_nothing();
    tcp.at(379).sends_nothing();
    tcp.at(380).acks(25);
}

#[test]
fn a_short_segment_that_was_read_is_acknowledged_at_once() {
    let (mut tcp, next) = settled();
    tcp.bytes(position(next), 100).sends(Flags::ACK, 1);
    assert_eq!(tcp.last.ack, position(next) + 100);
}

/// A full segment that ends a write of the sending application.
fn pushed(tcp: &mut ReceiverScript, segment: u64) -> &mut ReceiverScript {
    let flags = Flags { psh: true, ..Flags::ACK };
    let segment = Segment { len: MSS as u32, ..tcp.bare(position(segment), flags) };
    tcp.inject(segment)
}

#[test]
fn a_full_segment_that_ends_a_write_and_was_read_is_acknowledged_at_once() {
    let (mut tcp, next) = settled();
    pushed(&mut tcp, next).acks(next + 1);
    // The third segment ends a write of three: the second is acknowledged as every second is.
    tcp.at(30).data(next + 1..next + 3).acks(next + 3);
    pushed(&mut tcp, next + 3).acks(next + 4);
    assert_eq!(tcp.receiver.counters().delayed_acks, 0);
}

#[test]
fn the_ack_of_a_write_that_was_not_read_is_delayed() {
    let (mut tcp, next) = settled();
    tcp.receiver.set_reading(tcp.now(), Reading::Paused);
    pushed(&mut tcp, next).sends_nothing();
    tcp.at_us(49_999).sends_nothing();
    tcp.at(50).acks(next + 1);
}

#[test]
fn the_ack_of_a_write_waits_until_the_application_has_read_all_of_it() {
    let (mut tcp, next) = settled();
    // Half of a segment every 10 ms.
    let rate = Rate::from_bps(MSS * 8 / 2 * 100);
    tcp.receiver.set_reading(tcp.now(), Reading::At(rate));
    pushed(&mut tcp, next).sends_nothing();
    tcp.at(20).sends_nothing();
    tcp.at_us(29_999).sends_nothing();
    tcp.at(30).acks(next + 1);
}

#[test]
fn the_classic_receiver_delays_the_ack_of_a_write_of_one_segment() {
    let mut tcp = ReceiverScript::established(&classic());
    tcp.data(0..5).acks_each([1, 3, 5]);
    pushed(&mut tcp, 5).sends_nothing();
    tcp.at_us(49_999).sends_nothing();
    tcp.at(50).acks(6);
}

#[test]
fn a_long_pause_makes_acks_quick_again() {
    let (mut tcp, next) = settled();
    tcp.at(1000).data(next..next + 3).acks_each(next + 1..=next + 3);
}

#[test]
fn the_classic_receiver_acknowledges_every_second_segment() {
    let mut tcp = ReceiverScript::established(&classic());
    // The first ACK announces the window, for which the field of a SYN-ACK is too small.
    tcp.data(0..6).acks_each([1, 3, 5]).sends_nothing();
    tcp.at_us(49_999).sends_nothing();
    tcp.at(50).acks(6);
}

#[test]
fn data_out_of_order_is_acknowledged_at_once() {
    for config in [linux(), classic()] {
        let mut tcp = ReceiverScript::established(&config);
        tcp.data(0..20);
        while tcp.take().is_some() {}
        tcp.data(21..22).acks_with(20, &[21..22]);
        tcp.data(22..23).acks_with(20, &[21..23]);
    }
}

#[test]
fn a_gap_that_is_filled_is_acknowledged_at_once() {
    for config in [linux(), classic()] {
        let mut tcp = ReceiverScript::established(&config);
        tcp.data(0..20);
        while tcp.take().is_some() {}
        tcp.data(21..22).acks_with(20, &[21..22]);
        tcp.data(20..21).acks(22);
    }
}

#[test]
fn part_of_a_gap_that_is_filled_is_acknowledged_at_once() {
    for config in [linux(), classic()] {
        let mut tcp = ReceiverScript::established(&config);
        tcp.data(0..20);
        while tcp.take().is_some() {}
        tcp.data(22..23).acks_with(20, &[22..23]);
        tcp.data(20..21).acks_with(21, &[22..23]);
    }
}

#[test]
fn later_acks_of_a_gap_go_once_per_twentieth_of_an_rtt() {
    let (mut tcp, next) = settled();
    tcp.data(next + 1..next + 12);
    // The first ACK is quick, because it opens the window a last time. The next three leave because
    // of the gap.
    for last in [2, 3, 4, 5] {
        tcp.acks_with(next, &[next + 1..next + last]);
    }
    tcp.sends_nothing();
    tcp.at_us(10_499).sends_nothing();
    tcp.at_us(10_500).acks_with(next, &[next + 1..next + 12]);
    assert_eq!(tcp.receiver.counters().compressed_acks, 6);
}

#[test]
fn the_classic_receiver_holds_no_ack_back() {
    let mut tcp = ReceiverScript::established(&classic());
    tcp.data(1..40);
    for last in 2..=40 {
        tcp.acks_with(0, &[1..last]);
    }
}

#[test]
fn blocks_are_told_three_at_a_time_and_the_latest_first() {
    let mut tcp = ReceiverScript::established(&classic());
    tcp.data(1..2).acks_with(0, &[1..2]);
    tcp.data(3..4).acks_with(0, &[3..4, 1..2]);
    tcp.data(5..6).acks_with(0, &[5..6, 3..4, 1..2]);
    tcp.data(7..8).acks_with(0, &[7..8, 5..6, 3..4]);
    tcp.data(2..3).acks_with(0, &[1..4, 7..8, 5..6]);
    tcp.data(0..1).acks_with(4, &[7..8, 5..6]);
    tcp.data(4..5).acks_with(6, &[7..8]);
    tcp.data(6..7).acks(8);
}

#[test]
fn what_comes_twice_is_told_first_and_once() {
    for config in [linux(), classic()] {
        let mut tcp = ReceiverScript::established(&config);
        tcp.data(0..2);
        while tcp.take().is_some() {}
        tcp.data(1..2).acks_with(2, &[1..2]);
        tcp.data(3..4).acks_with(2, &[3..4]);
        tcp.data(3..4).acks_with(2, &[3..4, 3..4]);
        tcp.data(0..1).acks_with(2, &[0..1, 3..4]);
        assert_eq!(tcp.receiver.counters().duplicate_sacks, 3);
        assert_eq!(tcp.receiver.bytes_read(), 2 * MSS);
    }
}

#[test]
fn something_that_comes_twice_makes_acks_quick_again() {
    let (mut tcp, next) = settled();
    tcp.data(0..1).acks_with(next, &[0..1]);
    tcp.data(next..next + 16).acks_each(next + 1..=next + 16);
    tcp.data(next + 16..next + 17).sends_nothing();
}

#[test]
fn a_delayed_ack_echoes_the_first_segment_that_it_answers() {
    let (mut tcp, next) = settled();
    tcp.data(next..next + 1);
    tcp.at(15).data(next + 1..next + 2).acks(next + 2);
    assert_eq!(tcp.last.timestamp.map(|stamp| stamp.echo), Some(clock_ms(at_ms(10))));
}

#[test]
fn what_comes_behind_a_gap_is_not_echoed_and_what_fills_it_is() {
    let (mut tcp, next) = settled();
    let echo = |tcp: &ReceiverScript| tcp.last.timestamp.map(|stamp| stamp.echo);
    tcp.at(12).data(next + 1..next + 2).acks_with(next, &[next + 1..next + 2]);
    assert_eq!(echo(&tcp), Some(clock_ms(at_ms(10))));
    tcp.at(15).data(next..next + 1).acks(next + 2);
    assert_eq!(echo(&tcp), Some(clock_ms(at_ms(15))));
}

#[test]
fn a_segment_older_than_what_is_echoed_is_not_taken() {
    let (mut tcp, next) = settled();
    tcp.at(100).data(next..next + 2).acks(next + 2);
    let old = Timestamp { value: clock_ms(at_ms(50)), echo: 1 };
    let segment = Segment {
        len: MSS as u32,
        timestamp: Some(old),
        ..tcp.bare(position(next + 2), Flags::ACK)
    };
    tcp.inject(segment).acks(next + 2);
    assert_eq!(tcp.receiver.bytes_read(), (next + 2) * MSS);
    assert_eq!(tcp.receiver.counters().unacceptable, 1);
}
