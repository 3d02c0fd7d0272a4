// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! `wakeai_compound`, in user space: the two windows of Compound TCP.

#[allow(dead_code, reason = "shared with tests that use more of it")]
mod sender;

use sender::Sender;
use wakeai_algorithms::{Algorithm, TcpSock};

const RTT_US: u32 = 100_000;

/// In congestion avoidance, with a window of `window` that is all in flight.
fn avoiding(window: u32) -> Sender {
    let mut sender = Sender::with(Algorithm::compound(TcpSock::new(1448, window)));
    sender.tcp.snd_ssthresh = window;
    sender
}

#[test]
fn without_a_queue_the_window_gains_an_eighth_of_its_three_quarter_power() {
    let mut sender = avoiding(1000);
    let mut expected = 1000.0_f64;
    for _ in 0..50 {
        sender.round(RTT_US);
        // The loss window's segment makes up for the one that is taken off.
        expected += expected.powf(0.75) / 8.0;
    }
    let window = f64::from(sender.tcp.snd_cwnd);
    assert!((window / expected - 1.0).abs() < 0.05, "{window} of {expected}");
}

#[test]
fn a_small_window_grows_as_reno() {
    let mut sender = avoiding(10);
    for window in 11..=15 {
        sender.round(RTT_US);
        assert_eq!(sender.tcp.snd_cwnd, window);
    }
}

#[test]
fn the_delay_window_gives_way_to_a_queue_and_the_loss_window_does_not() {
    let mut sender = avoiding(1000);
    for _ in 0..50 {
        sender.round(RTT_US);
    }
    let open = sender.tcp.snd_cwnd;
    assert!(open > 2000);
    for _ in 0..40 {
        sender.round(RTT_US * 5 / 4); // a fifth of the window is queued
    }
    assert!((1000..1200).contains(&sender.tcp.snd_cwnd), "{}", sender.tcp.snd_cwnd);
}

#[test]
fn a_loss_leaves_half() {
    let mut sender = avoiding(1000);
    sender.loss_episode(RTT_US);
    assert_eq!(sender.tcp.snd_cwnd, 500);
}
