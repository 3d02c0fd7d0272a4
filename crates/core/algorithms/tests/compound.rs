// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! `wakeai_compound`, in user space: the two windows of Compound TCP.

#[allow(dead_code, reason = "shared with tests that use more of it")]
mod sender;

use sender::Sender;
use wakeai_algorithms::{Algorithm, TcpSock};
use wakeai_connection::CongestionState;

const RTT_US: u32 = 100_000;

/// A sender in congestion avoidance with a window of `window`, all of it in flight.
fn avoiding(window: u32) -> Sender {
    let mut sender = Sender::with(Algorithm::compound(TcpSock::new(1448, window)));
    sender.tcp.snd_ssthresh = window;
    sender
}

#[test]
fn without_a_queue_the_gain_is_that_of_the_paper() {
    // At 50 segments the gain is 2.35, so parts of a segment count, too.
    for start in [50, 1000] {
        let mut sender = avoiding(start);
        let mut expected = f64::from(start);
        for _ in 0..50 {
            sender.round(RTT_US);
            // The growth of the loss window by one segment compensates for the one that the formula
            // subtracts.
            expected += expected.powf(0.75) / 8.0;
        }
        let window = f64::from(sender.tcp.snd_cwnd);
        assert!((window / expected - 1.0).abs() < 0.05, "{window} of {expected}");
    }
}

#[test]
fn a_small_window_grows_as_reno() {
    let mut sender = avoiding(10);
    for window in 11..=15 {
        sender.round(RTT_US);
        assert_eq!(sender.tcp.snd_cwnd, window);
    }
}

/// Lets a fifth of the window wait in a queue for 40 rounds, so that only the loss window is left.
fn queue(sender: &mut Sender) {
    for _ in 0..40 {
        sender.round(RTT_US * 5 / 4);
    }
}

#[test]
fn a_queue_shrinks_the_delay_window_but_not_the_loss_window() {
    let mut sender = avoiding(1000);
    for _ in 0..50 {
        sender.round(RTT_US);
    }
    let open = sender.tcp.snd_cwnd;
    assert!(open > 2000);
    queue(&mut sender);
    assert!((1000..1200).contains(&sender.tcp.snd_cwnd), "{}", sender.tcp.snd_cwnd);
}

#[test]
fn a_loss_leaves_half() {
    let mut sender = avoiding(1000);
    sender.loss_episode(RTT_US);
    assert_eq!(sender.tcp.snd_cwnd, 500);
}

#[test]
fn slow_start_does_not_restore_what_the_delay_window_gave_up() {
    let mut sender = avoiding(1000);
    for _ in 0..50 {
        sender.round(RTT_US);
    }
    sender.loss_episode(RTT_US);
    assert!(sender.tcp.snd_cwnd > 1000);
    queue(&mut sender);
    assert!((500..600).contains(&sender.tcp.snd_cwnd), "{}", sender.tcp.snd_cwnd);
}

#[test]
fn a_burst_of_losses_halves_the_loss_window_once() {
    let mut sender = avoiding(1000);
    sender.round(RTT_US);
    sender.enter(CongestionState::Recovery);
    // During the reduction the window is near the number of segments in flight.
    sender.tcp.lost_out = 900;
    sender.tcp.on_ack(1, 0, None);
    assert!(sender.tcp.snd_cwnd < 300, "{}", sender.tcp.snd_cwnd);
    sender.tcp.lost_out = 0;
    sender.leave_to_open();
    sender.tcp.packets_out = sender.tcp.snd_cwnd;
    queue(&mut sender);
    assert!((500..600).contains(&sender.tcp.snd_cwnd), "{}", sender.tcp.snd_cwnd);
}

#[test]
fn an_undone_reduction_restores_both_windows() {
    let mut sender = avoiding(1000);
    for _ in 0..50 {
        sender.round(RTT_US);
    }
    let before = sender.tcp.snd_cwnd;
    sender.enter(CongestionState::Recovery);
    sender.recovery_ack();
    sender.tcp.snd_cwnd = sender.tcp.undo_cwnd();
    sender.tcp.undo_marker = 0;
    sender.leave_to_open();
    assert_eq!(sender.tcp.snd_cwnd, before);
    sender.tcp.packets_out = sender.tcp.snd_cwnd;
    queue(&mut sender);
    assert!((1000..1200).contains(&sender.tcp.snd_cwnd), "{}", sender.tcp.snd_cwnd);
}
