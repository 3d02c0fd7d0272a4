//! The limits on sending: the first window, its growth, the peer's window.

use wakeai_tcp::{Profile, TcpConfig, by_name};

use crate::script::{MSS, SenderScript, at_ms, ms};

fn established(profile: Profile) -> SenderScript {
    let config = TcpConfig::new(profile);
    let cubic = by_name("cubic", &config).expect("it is known");
    SenderScript::established(&config, cubic, 100)
}

/// The bytes that are written and were never sent. All segments that are out are full.
fn unsent(tcp: &SenderScript) -> u64 {
    let figures = tcp.sender.figures();
    figures.send_queue.get() - u64::from(figures.packets_out.get()) * MSS
}

#[test]
fn the_first_flight_is_ten_segments() {
    for profile in [Profile::Linux, Profile::Classic] {
        established(profile).supply(None).sends(0..10);
    }
}

#[test]
fn each_acknowledged_segment_lets_two_out_in_slow_start() {
    let mut tcp = established(Profile::Linux);
    tcp.supply(None).sends(0..10);
    tcp.at(200).ack(2).sends(10..14);
    tcp.ack(3).sends(14..16);
    assert_eq!(tcp.sender.figures().cwnd.get(), 13);
}

#[test]
fn a_window_that_is_not_used_does_not_grow() {
    let mut tcp = established(Profile::Linux);
    tcp.supply(Some(3)).sends(0..3);
    tcp.at(200).ack(3).sends_nothing();
    assert_eq!(tcp.sender.figures().cwnd.get(), 10);
}

/// Writes a segment every 10 ms for `millis` milliseconds, on a path of 100 ms that acknowledges each.
/// Returns the largest window.
fn writes_every_10_ms(tcp: &mut SenderScript, millis: u64) -> u32 {
    let (mut cwnd, first) = (0, 20);
    for tick in first..first + millis / 10 {
        tcp.at(10 * tick);
        if tick >= first + 10 {
            tcp.ack(tick + 1 - first - 10).sends_nothing();
        }
        tcp.supply(Some(tick + 1 - first)).sends([tick - first]);
        let sample = tcp.sender.figures();
        assert_eq!(unsent(tcp), 0, "what is written leaves at once");
        assert!(sample.send_queue.get() <= 10 * MSS, "{sample:?}");
        cwnd = cwnd.max(sample.cwnd.get());
    }
    cwnd
}

#[test]
fn steady_writes_keep_the_queue_empty_and_the_window_small() {
    for algorithm in ["cubic", "reno", "wakeai_rtt"] {
        let config = TcpConfig::new(Profile::Linux);
        let algorithm = by_name(algorithm, &config).expect("it is known");
        let mut tcp = SenderScript::established(&config, algorithm, 100);
        // Ten segments are out. Slow start continues to twice the used window.
        let largest = writes_every_10_ms(&mut tcp, 20_000);
        assert!((10..=20).contains(&largest), "{largest}");
        assert_eq!(tcp.sender.counters().retransmits, 0);
    }
}

#[test]
fn a_backlog_leaves_as_fast_as_the_window_lets_it() {
    let mut tcp = established(Profile::Linux);
    writes_every_10_ms(&mut tcp, 1_000);
    let before = tcp.sender.figures();
    // 60 segments are written at once. As many leave as the window has room for.
    tcp.supply(Some(160));
    let mut sent = 0;
    while tcp.take().is_some() {
        sent += 1;
    }
    assert_eq!(sent, before.cwnd.get() - before.packets_out.get());
    assert_eq!(unsent(&tcp), (60 - u64::from(sent)) * MSS);
}

#[test]
fn the_peers_window_is_not_overrun() {
    let mut tcp = established(Profile::Linux);
    tcp.window = 12 * MSS;
    tcp.supply(None).sends(0..10);
    tcp.at(180).ack(5).sends(10..17);
}

#[test]
fn a_scaled_window_lets_more_out_than_16_bits_can_say() {
    let mut tcp = established(Profile::Linux);
    tcp.supply(None).sends(0..10);
    let (mut acknowledged, mut sent) = (0, 10);
    for round in 2..6 {
        tcp.at(100 * round);
        while acknowledged < sent {
            acknowledged += 1;
            tcp.ack(acknowledged);
        }
        while tcp.take().is_some() {
            sent += 1;
        }
    }
    assert_eq!(sent - acknowledged, 160);
    assert!((sent - acknowledged) * MSS > 65_535);
}

#[test]
fn a_closed_window_is_probed_with_backoff_until_it_opens() {
    let mut tcp = established(Profile::Linux);
    tcp.supply(None).sends(0..10);
    tcp.window = 0;
    tcp.at(200).ack(10).sends_nothing();
    let mut waits = Vec::new();
    for _ in 0..4 {
        let before = tcp.now();
        tcp.at_next_timeout();
        waits.push((tcp.now() - before).as_millis());
        let probe = tcp.take().expect("a probe");
        assert!(probe.len <= 1 && probe.seq < 1 + 10 * MSS, "{probe:?}");
        tcp.ack(10).sends_nothing();
    }
    for pair in waits.windows(2) {
        assert_eq!(pair[1], 2 * pair[0], "{waits:?}");
    }
    tcp.window = 2 * MSS;
    tcp.ack(10).sends(10..12);
    assert_eq!(tcp.sender.counters().timeouts, 0);
}

#[test]
fn an_idle_connection_halves_its_window_per_timeout() {
    let mut tcp = established(Profile::Linux);
    tcp.supply(Some(40)).sends(0..10);
    tcp.at(200).ack(10).sends(10..30);
    tcp.at(300).ack(30).sends(30..40);
    tcp.at(400).ack(40).sends_nothing();
    let before = tcp.sender.figures().cwnd.get();
    assert!(before >= 30, "{before}");
    // The timeout is 300 ms, so the window is halved once.
    tcp.at(750).supply(Some(200));
    let mut sent = 0;
    while tcp.take().is_some() {
        sent += 1;
    }
    assert_eq!(sent, before / 2);
}

#[test]
fn every_segment_carries_the_clock_and_echoes_the_peers() {
    let mut tcp = established(Profile::Linux);
    tcp.supply(None).sends(0..10);
    tcp.at(207).ack(1).sends(10..12);
    let stamp = tcp.last.timestamp.expect("there are timestamps");
    assert_eq!((at_ms(0) + ms(u64::from(stamp.value) - 1)), at_ms(207));
    assert_eq!(stamp.echo, stamp.value, "the ACK came at the same time");
}
