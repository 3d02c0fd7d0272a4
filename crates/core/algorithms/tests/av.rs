// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Tests of `wakeai_av` in user space: below its target, and above it, where it behaves as Reno.

#[allow(dead_code, reason = "shared with tests that use more of it")]
mod sender;

use sender::Sender;
use wakeai_algorithms::{Algorithm, TcpSock};
use wakeai_connection::CongestionState;

const RTT_US: u32 = 100_000;

/// A sender in congestion avoidance with the window `window`, all of which is in flight, and a
/// target of `target` segments per RTT.
fn sender(window: u32, target: u32) -> Sender {
    let mut sock = TcpSock::new(1448, window);
    sock.target_rate = u64::from(target) * 1448 * 10;
    let mut sender = Sender::with(Algorithm::av(sock));
    sender.tcp.snd_ssthresh = window;
    sender
}

#[test]
fn without_a_target_it_is_reno() {
    let mut sender = sender(50, 0);
    for window in 51..=60 {
        sender.round(RTT_US);
        assert_eq!(sender.tcp.snd_cwnd, window);
    }
    sender.loss_episode(RTT_US);
    assert_eq!(sender.tcp.snd_cwnd, 30);
}

#[test]
fn above_the_target_it_is_reno() {
    let mut sender = sender(50, 20);
    for window in 51..=60 {
        sender.round(RTT_US);
        assert_eq!(sender.tcp.snd_cwnd, window);
    }
    sender.loss_episode(RTT_US);
    assert_eq!(sender.tcp.snd_cwnd, 30);
}

#[test]
fn below_the_target_it_grows_as_in_slow_start() {
    let mut sender = sender(10, 100);
    for least in [19, 36, 70, 100] {
        sender.round(RTT_US);
        assert!(sender.tcp.snd_cwnd >= least, "{} of {least}", sender.tcp.snd_cwnd);
    }
}

#[test]
fn the_owed_data_enlarges_the_window_up_to_the_limit() {
    // Each window takes 2 s longer than the RTT samples say, so the target is never reached.
    let mut sender = sender(100, 100);
    for _ in 0..100 {
        sender.tcp.tcp_mstamp += 2_000_000;
        sender.round(RTT_US);
    }
    // The limit is the target rate times 1.1 s, or 1100 segments. Beyond the limit the window grows
    // as in Reno.
    assert!((1100..1250).contains(&sender.tcp.snd_cwnd), "{}", sender.tcp.snd_cwnd);
    sender.tcp.tcp_mstamp += 2_000_000;
    sender.ack(RTT_US);
    assert_eq!(sender.tcp.ssthresh(), 1100);
}

#[test]
fn a_loss_does_not_take_the_window_below_the_targets() {
    let mut sender = sender(120, 100);
    sender.round(RTT_US);
    sender.enter(CongestionState::Recovery);
    assert_eq!(sender.tcp.snd_ssthresh, 100);
}

#[test]
fn a_loss_never_makes_the_window_larger() {
    let mut sender = sender(20, 100);
    sender.ack(RTT_US);
    let window = sender.tcp.snd_cwnd;
    assert!(sender.tcp.ssthresh() <= window);
}

#[test]
fn after_a_timeout_it_goes_straight_back_to_the_target() {
    let mut sender = sender(100, 100);
    sender.round(RTT_US);
    sender.enter(CongestionState::Loss);
    sender.tcp.snd_cwnd = 1;
    sender.tcp.packets_out = 1;
    sender.leave_to_open();
    // The target is lowered by a quarter for some time. A window of 75 is reached in seven rounds.
    for _ in 0..7 {
        sender.round(RTT_US);
    }
    assert!(sender.tcp.snd_cwnd >= 75, "{}", sender.tcp.snd_cwnd);
}

#[test]
fn severe_congestion_lowers_the_target_for_a_while() {
    let mut sender = sender(200, 100);
    sender.round(RTT_US);
    let calm = sender.tcp.ssthresh();
    assert_eq!(calm, 100);
    // Nearly a tenth of the segments of a round are lost.
    sender.tcp.on_ack(0, 20, None);
    sender.round(RTT_US);
    sender.round(RTT_US);
    sender.tcp.snd_cwnd = 100;
    sender.tcp.packets_out = 100;
    let lowered = sender.tcp.ssthresh();
    assert!((75..80).contains(&lowered), "{lowered}");
    // The target is restored within a quarter of a minute.
    for _ in 0..160 {
        sender.round(RTT_US);
    }
    sender.tcp.snd_cwnd = 100;
    assert_eq!(sender.tcp.ssthresh(), 100);
}
