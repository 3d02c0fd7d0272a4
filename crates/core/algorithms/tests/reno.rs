// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! `wakeai_reno`, in user space: RFC 5681's growth and reductions, and bounds.

#[allow(dead_code, reason = "shared with tests that use more of it")]
mod sender;

use sender::Sender;
use wakeai_algorithms::{Algorithm, TcpSock};
use wakeai_connection::{CongestionState, INFINITE_SSTHRESH};

const RTT_US: u32 = 100_000;

/// A sender with the window `window`, all of which is in flight.
fn sender(window: u32) -> Sender {
    Sender::with(Algorithm::reno(TcpSock::new(1448, window)))
}

/// The same sender in congestion avoidance.
fn avoiding(window: u32) -> Sender {
    let mut sender = sender(window);
    sender.tcp.snd_ssthresh = window;
    sender
}

#[test]
fn slow_start_doubles_per_round_at_any_delay() {
    let mut sender = sender(10);
    for (window, rtt_us) in [(20, RTT_US), (40, 2 * RTT_US), (80, 4 * RTT_US), (160, RTT_US)] {
        sender.round(rtt_us);
        assert_eq!(sender.tcp.snd_cwnd, window);
    }
    assert_eq!(sender.tcp.snd_ssthresh, INFINITE_SSTHRESH);
}

#[test]
fn slow_start_ends_at_ssthresh_within_an_ack() {
    let mut sender = sender(10);
    sender.tcp.snd_ssthresh = 12;
    sender.tcp.snd_una = 14 * 1448;
    sender.tcp.on_ack(14, 0, None);
    // Two segments reach ssthresh. The twelve that are left add one to a window of twelve.
    assert_eq!(sender.tcp.snd_cwnd, 13);
}

#[test]
fn congestion_avoidance_gains_a_segment_per_window() {
    let mut sender = avoiding(50);
    for window in 51..=80 {
        sender.round(RTT_US);
        assert_eq!(sender.tcp.snd_cwnd, window);
    }
}

#[test]
fn growth_counts_segments_and_not_acks() {
    let mut sender = avoiding(50);
    sender.tcp.snd_una = 50 * 1448;
    sender.tcp.on_ack(50, 0, None);
    assert_eq!(sender.tcp.snd_cwnd, 51);
}

#[test]
fn a_window_that_is_not_used_does_not_grow() {
    let mut sender = avoiding(50);
    sender.tcp.is_cwnd_limited = 0;
    sender.round(RTT_US);
    assert_eq!(sender.tcp.snd_cwnd, 50);
}

#[test]
fn a_loss_leaves_half() {
    let mut sender = avoiding(100);
    sender.loss_episode(RTT_US);
    assert_eq!((sender.tcp.snd_ssthresh, sender.tcp.snd_cwnd), (50, 50));
    sender.round(RTT_US);
    assert_eq!(sender.tcp.snd_cwnd, 51);
}

#[test]
fn ssthresh_is_never_below_two() {
    let mut sender = avoiding(3);
    assert_eq!(sender.tcp.ssthresh(), 2);
    sender.tcp.snd_cwnd = 1;
    assert_eq!(sender.tcp.ssthresh(), 2);
}

#[test]
fn an_undone_reduction_restores_the_window() {
    let mut sender = avoiding(100);
    sender.enter(CongestionState::Recovery);
    for _ in 0..50 {
        sender.recovery_ack();
    }
    assert!(sender.tcp.snd_cwnd < 100);
    sender.tcp.snd_cwnd = sender.tcp.undo_cwnd();
    sender.tcp.undo_marker = 0;
    sender.leave_to_open();
    assert_eq!(sender.tcp.snd_cwnd, 100);
}

#[test]
fn a_timeout_starts_slowly_again_up_to_half() {
    let mut sender = avoiding(40);
    sender.enter(CongestionState::Loss);
    sender.tcp.snd_cwnd = 1;
    sender.tcp.packets_out = 1;
    for window in [2, 4, 8, 16, 20, 21] {
        sender.round(RTT_US);
        assert_eq!(sender.tcp.snd_cwnd, window);
    }
}

#[test]
fn a_smaller_window_does_not_jump() {
    let mut sender = avoiding(100);
    for _ in 0..99 {
        sender.ack(RTT_US);
    }
    // The window shrinks as after three timeouts of idle time, while 99 segments are counted
    // towards its growth.
    sender.tcp.snd_cwnd = 10;
    sender.tcp.packets_out = 10;
    sender.ack(RTT_US);
    assert_eq!(sender.tcp.snd_cwnd, 11);
}

#[test]
fn under_a_ceiling_no_growth_is_counted() {
    let mut sender = avoiding(20);
    sender.tcp.bound_ceiling = 20;
    for _ in 0..30 {
        sender.round(RTT_US);
    }
    assert_eq!(sender.tcp.snd_cwnd, 20);
    sender.tcp.bound_ceiling = 0;
    sender.ack(RTT_US);
    assert_eq!(sender.tcp.snd_cwnd, 20);
}

#[test]
fn a_floor_holds_in_recovery_and_not_in_loss() {
    let mut sender = avoiding(40);
    sender.tcp.bound_floor = 30;
    sender.enter(CongestionState::Recovery);
    assert_eq!(sender.tcp.snd_ssthresh, 30);
    sender.recovery_ack();
    assert!(sender.tcp.snd_cwnd >= 30);
    sender.enter(CongestionState::Loss);
    sender.tcp.snd_cwnd = 1;
    sender.tcp.packets_out = 1;
    sender.tcp.sacked_out = 0;
    sender.ack(RTT_US);
    assert_eq!(sender.tcp.snd_cwnd, 2);
}

#[test]
fn a_pacing_bound_goes_with_the_algorithm() {
    let mut sender = avoiding(100);
    sender.tcp.bound_pacing = 50_000;
    sender.round(RTT_US);
    assert_eq!((sender.tcp.sk_pacing_rate, sender.tcp.sk_pacing_status), (50_000, 1));
    assert_eq!(sender.tcp.release().sk_pacing_status, 0);
}
