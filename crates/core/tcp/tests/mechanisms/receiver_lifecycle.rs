//! How a connection begins and ends, seen from the receiver.

use wakeai_tcp::{Flags, Profile, Segment, TcpConfig};
use wakeai_units::Rate;

use crate::script::{ReceiverScript, at_ms, clock_ms, position};
use wakeai_tcp::Reading;

fn linux() -> TcpConfig {
    TcpConfig::new(Profile::Linux)
}

#[test]
fn a_syn_is_answered_with_what_both_ends_can_do() {
    let mut tcp = ReceiverScript::listening(&linux());
    tcp.at(3).syn().sends(Flags::SYN_ACK, 0).sends_nothing();
    let syn_ack = tcp.last;
    assert_eq!((syn_ack.ack, syn_ack.window), (1, 65_160));
    assert_eq!(syn_ack.options.mss, Some(1460));
    assert_eq!(syn_ack.options.window_scale, Some(10), "32 MB in units of 1024");
    assert!(syn_ack.options.sack_permitted);
    assert_eq!(syn_ack.timestamp.map(|stamp| stamp.echo), Some(clock_ms(at_ms(3))));
}

#[test]
fn what_the_syn_does_not_offer_is_not_used() {
    let mut tcp = ReceiverScript::listening(&linux());
    tcp.inject(Segment { flags: Flags::SYN, ..Segment::default() });
    tcp.sends(Flags::SYN_ACK, 0);
    let options = tcp.last.options;
    assert_eq!((options.mss, options.window_scale), (Some(1448), None));
    assert!(!options.sack_permitted);
    assert_eq!(tcp.last.timestamp, None);
    tcp.at(10).inject(Segment { seq: 1, ack: 1, flags: Flags::ACK, ..Segment::default() });
    tcp.inject(Segment {
        seq: position(1),
        len: 1448,
        ack: 1,
        flags: Flags::ACK,
        ..Segment::default()
    });
    tcp.acks_with(0, &[]);
    assert!(tcp.last.window <= 65_535);
}

#[test]
fn a_syn_ack_without_answer_is_repeated_five_times() {
    let mut tcp = ReceiverScript::listening(&linux());
    tcp.syn().sends(Flags::SYN_ACK, 0);
    for seconds in [1, 3, 7, 15, 31] {
        tcp.at(1000 * seconds).sends(Flags::SYN_ACK, 0);
    }
    assert_eq!(tcp.receiver.counters().syn_ack_retransmits, 5);
    tcp.at(63_000).sends_nothing();
    assert_eq!(tcp.receiver.next_timeout(), None);
    tcp.syn().sends(Flags::SYN_ACK, 0);
}

#[test]
fn a_syn_that_comes_again_is_answered_again_at_once() {
    let mut tcp = ReceiverScript::listening(&linux());
    tcp.syn().sends(Flags::SYN_ACK, 0);
    tcp.at(900).syn().sends(Flags::SYN_ACK, 0);
    tcp.at(1899).sends_nothing();
    tcp.at(1900).sends(Flags::SYN_ACK, 0);
}

#[test]
fn data_completes_the_handshake_where_the_ack_was_lost() {
    let mut tcp = ReceiverScript::listening(&linux());
    tcp.syn().sends(Flags::SYN_ACK, 0);
    tcp.at(10).data(0..1).acks(1);
    assert_eq!(tcp.receiver.bytes_read(), 1448);
    tcp.at(100_000).sends_nothing();
}

#[test]
fn a_fin_in_order_is_answered_with_a_fin_once_all_is_read() {
    let mut tcp = ReceiverScript::established(&linux());
    tcp.data(0..1).acks(1);
    assert!(!tcp.receiver.finished());
    tcp.fin(1).sends(Flags::FIN_ACK, 1).sends_nothing();
    assert_eq!(tcp.last.ack, position(1) + 1);
    assert!(tcp.receiver.finished() && !tcp.receiver.is_closed());
    assert_eq!(tcp.receiver.bytes_read(), 1448);
    let last_ack = Segment { ack: 2, ..tcp.bare(position(1) + 1, Flags::ACK) };
    tcp.at(20).inject(last_ack).sends_nothing();
    assert!(tcp.receiver.is_closed());
    assert_eq!(tcp.receiver.next_timeout(), None);
}

#[test]
fn a_fin_without_answer_is_repeated_with_backoff() {
    let mut tcp = ReceiverScript::established(&linux());
    tcp.at(1000).fin(0).sends(Flags::FIN_ACK, 1);
    // The handshake took 10 ms. The first wait is 210 ms, for a probe. The next is 210 ms again,
    // and each later one doubles.
    let mut due = 1210;
    tcp.at(due).sends(Flags::FIN_ACK, 1);
    for tries in 0..8 {
        due += 210 << tries;
        tcp.at(due).sends(Flags::FIN_ACK, 1);
    }
    assert_eq!(tcp.receiver.counters().fin_retransmits, 9);
    tcp.at(due + (210 << 8) - 1).sends_nothing();
    assert!(!tcp.receiver.is_closed());
    tcp.at(due + (210 << 8)).sends_nothing();
    assert!(tcp.receiver.is_closed(), "given up");
}

#[test]
fn a_fin_behind_a_gap_waits_for_the_gap_to_be_filled() {
    let mut tcp = ReceiverScript::established(&linux());
    tcp.fin(1);
    let fin = (position(1), position(1) + 1);
    tcp.sends(Flags::ACK, 1);
    assert_eq!((tcp.last.ack, &*tcp.last.sack), (1, [fin].as_slice()));
    assert!(!tcp.receiver.finished());
    tcp.data(0..1).sends(Flags::FIN_ACK, 1);
    assert_eq!(tcp.last.ack, position(1) + 1);
    assert!(tcp.receiver.finished());
}

#[test]
fn a_fin_that_comes_again_is_acknowledged_again() {
    let mut tcp = ReceiverScript::established(&linux());
    tcp.fin(0).sends(Flags::FIN_ACK, 1);
    tcp.at(20).fin(0).sends(Flags::ACK, 2);
    assert_eq!(tcp.last.ack, 2);
}

#[test]
fn the_receiver_closes_once_its_application_has_read_all() {
    let mut tcp = ReceiverScript::established(&linux());
    let now = tcp.now();
    tcp.receiver.set_reading(now, Reading::At(Rate::from_bps(8 * 144_800)));
    tcp.data(0..1).acks(1);
    tcp.fin(1).sends_nothing();
    assert!(tcp.receiver.finished());
    // The application also reads the position of the FIN, one period after the last byte.
    tcp.at(30).sends(Flags::FIN_ACK, 1);
    assert_eq!(tcp.receiver.bytes_read(), 1448);
}

#[test]
fn who_is_unknown_is_reset() {
    let mut tcp = ReceiverScript::listening(&linux());
    let stray = Segment { ack: 7, ..tcp.bare(position(3), Flags::ACK) };
    tcp.inject(stray).sends(Flags::RST, 7);
    let reset = tcp.bare(position(3), Flags::RST);
    tcp.inject(reset).sends_nothing();
}
