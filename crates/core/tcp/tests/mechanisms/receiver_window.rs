//! The window that a receiver offers.

use wakeai_tcp::{Flags, Profile, Reading, ReceiverCounters, TcpConfig};
use wakeai_units::Rate;

use crate::script::{MSS, ReceiverScript, at_ms, ms, position};

fn linux() -> TcpConfig {
    TcpConfig::new(Profile::Linux)
}

/// A fixed buffer of 64 segments.
fn small_buffer() -> TcpConfig {
    TcpConfig { receive_buffer_limit: 64 * MSS, ..TcpConfig::new(Profile::Classic) }
}

/// Takes all segments that were sent, and returns the window of the last one.
fn last_window(tcp: &mut ReceiverScript) -> u64 {
    while tcp.take().is_some() {}
    tcp.last.window
}

/// The largest window that is offered to a sender that doubles its window in each RTT of 100 ms, up
/// to `most` segments.
fn doubling_rounds(config: &TcpConfig, rounds: u32, most: u64) -> u64 {
    let mut tcp = ReceiverScript::established(config);
    tcp.rtt = ms(100);
    let (mut next, mut flight) = (0, 10);
    for round in 1..=u64::from(rounds) {
        tcp.skip_to(10 + 100 * round);
        tcp.data(next..next + flight);
        next += flight;
        flight = (2 * flight).min(most);
        assert!(last_window(&mut tcp) >= flight * MSS, "round {round}: it holds the sender back");
    }
    assert_eq!(tcp.receiver.bytes_read(), next * MSS);
    tcp.last.window
}

#[test]
fn an_autotuned_window_stays_ahead_of_a_sender_that_doubles() {
    let window = doubling_rounds(&linux(), 9, u64::MAX);
    assert!((2560 * MSS..40_000 * MSS).contains(&window), "{window}");
}

#[test]
fn an_autotuned_window_stays_small_where_little_is_needed() {
    let window = doubling_rounds(&linux(), 30, 20);
    assert!(window < 200_000, "{window}");
}

#[test]
fn an_autotuned_window_ends_at_its_limit() {
    let config = TcpConfig { receive_buffer_limit: 1 << 20, ..linux() };
    let window = doubling_rounds(&config, 7, 400);
    let payload = 5 * (1 << 20) / 8;
    assert!((payload - MSS..=payload).contains(&window), "{window}");
}

#[test]
fn a_fixed_window_is_open_from_the_first_ack_on() {
    let mut tcp = ReceiverScript::established(&TcpConfig::new(Profile::Classic));
    tcp.data(0..1).acks(1);
    assert_eq!(tcp.last.window, 4 << 20);
}

#[test]
fn windows_are_what_the_scale_can_say() {
    let mut tcp = ReceiverScript::established(&linux());
    tcp.data(0..10);
    assert_eq!(last_window(&mut tcp) % 1024, 0);
}

#[test]
fn a_window_closes_until_the_application_reads() {
    let mut tcp = ReceiverScript::established(&small_buffer());
    let now = tcp.now();
    tcp.receiver.set_reading(now, Reading::Paused);
    tcp.data(0..64);
    assert_eq!(last_window(&mut tcp), 0);
    assert_eq!(tcp.receiver.bytes_read(), 0);
    tcp.at(500).sends_nothing();
    let now = tcp.now();
    tcp.receiver.set_reading(now, Reading::AtOnce);
    tcp.poll().acks(64);
    assert_eq!((tcp.last.window, tcp.receiver.bytes_read()), (64 * MSS, 64 * MSS));
}

#[test]
fn a_probe_of_a_closed_window_is_answered_and_not_taken() {
    let mut tcp = ReceiverScript::established(&small_buffer());
    let now = tcp.now();
    tcp.receiver.set_reading(now, Reading::Paused);
    tcp.data(0..64);
    assert_eq!(last_window(&mut tcp), 0);
    tcp.at(300).nothing(position(64) - 1, Flags::ACK).acks(64);
    tcp.at(900).bytes(position(64), 1).acks(64);
    assert_eq!(tcp.last.window, 0);
    tcp.at(1000).fin(64).sends_nothing();
    assert!(tcp.receiver.finished(), "a FIN fits into a closed window");
}

#[test]
fn no_window_below_a_segment_or_a_16th_of_the_buffer_is_offered() {
    let mut tcp = ReceiverScript::established(&small_buffer());
    let now = tcp.now();
    tcp.receiver.set_reading(now, Reading::Paused);
    tcp.data(0..64);
    assert_eq!(last_window(&mut tcp), 0);
    // One segment is read in 10 ms. After the fourth a sixteenth of the buffer is free.
    let now = tcp.now();
    tcp.receiver.set_reading(now, Reading::At(Rate::from_bps(8 * 100 * MSS)));
    tcp.at(now_ms(&tcp) + 30).sends_nothing();
    tcp.at(now_ms(&tcp) + 10).acks(64);
    let unit = 1 << (64 * MSS).ilog2().saturating_sub(15);
    assert_eq!(tcp.last.window, 4 * MSS / unit * unit);
}

fn now_ms(tcp: &ReceiverScript) -> u64 {
    (tcp.now() - at_ms(0)).as_millis()
}

#[test]
fn data_behind_a_gap_never_moves_the_window_edge_back() {
    let mut tcp = ReceiverScript::established(&small_buffer());
    tcp.data(0..2).acks(2);
    let edge = tcp.last.ack + tcp.last.window;
    tcp.data(3..66);
    while tcp.take().is_some() {
        assert!(tcp.last.ack + tcp.last.window >= edge, "the edge moved back");
    }
    tcp.data(2..3).acks(66);
    assert_eq!(tcp.last.window, 64 * MSS);
    assert_eq!(tcp.receiver.counters().unacceptable, 0);
}

#[test]
fn what_lies_beyond_the_window_is_not_taken() {
    let mut tcp = ReceiverScript::established(&small_buffer());
    tcp.data(0..2).acks(2);
    tcp.data(66..67).acks(2);
    tcp.data(1000..1001).acks(2);
    let counted = ReceiverCounters { unacceptable: 2, ..*tcp.receiver.counters() };
    assert_eq!(*tcp.receiver.counters(), counted);
}
