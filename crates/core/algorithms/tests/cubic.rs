// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! `wakeai_cubic`, in user space: the curve of RFC 9438, its reductions, `HyStart`, and bounds.

mod sender;

use sender::Sender;
use wakeai_algorithms::{Algorithm, Knobs, TcpSock};
use wakeai_connection::{CongestionState, INFINITE_SSTHRESH};

const RTT_US: u32 = 100_000;

/// A sender in congestion avoidance after a loss at `window`, in the Open state.
fn after_a_loss_at(window: u32) -> Sender {
    let mut sender = Sender::new(window, Knobs::default());
    sender.tcp.snd_ssthresh = window;
    sender.loss_episode(RTT_US);
    sender
}

/// `W_cubic(t)` of RFC 9438 section 4.2 in floating point.
fn curve(t: f64, window_max: f64, epoch_window: f64) -> f64 {
    let c = 410.0 / 1024.0; // Linux's 0.4
    let k = ((window_max - epoch_window) / c).cbrt();
    c * (t - k).powi(3) + window_max
}

#[test]
fn a_loss_leaves_seven_tenths() {
    let sender = after_a_loss_at(1000);
    assert_eq!(sender.tcp.snd_ssthresh, 1000 * 717 / 1024);
    assert_eq!(sender.tcp.snd_cwnd, sender.tcp.snd_ssthresh);
}

#[test]
fn beta_is_a_knob() {
    let mut sender = Sender::new(1000, Knobs { beta_per_1024: 819, ..Knobs::default() });
    sender.tcp.snd_ssthresh = 1000;
    sender.loss_episode(RTT_US);
    assert_eq!(sender.tcp.snd_cwnd, 1000 * 819 / 1024);
}

#[test]
fn growth_follows_the_cubic_curve() {
    let mut sender = after_a_loss_at(1000);
    let start = f64::from(sender.tcp.snd_cwnd);
    let mut began = None;
    // 15 s contain the concave side, the plateau (K, the time to the plateau, is 9.1 s) and a part
    // of the convex side.
    for _ in 0..150 {
        sender.round(RTT_US);
        let now = sender.tcp.tcp_mstamp as f64 / 1e6;
        let began = *began.get_or_insert(now);
        let expected = curve(now - began, 1000.0, start);
        let window = f64::from(sender.tcp.snd_cwnd);
        // The window approaches the value of the curve one RTT later, so the difference is below
        // the rise of the curve in two RTTs. The window is also a whole number.
        let slack = 2.0 + curve(now - began + 0.2, 1000.0, start) - expected;
        assert!((window - expected).abs() <= slack, "{window} at {expected} ± {slack}");
    }
    assert!(sender.tcp.snd_cwnd > 1050);
}

#[test]
fn fast_convergence_lowers_the_plateau() {
    // The second loss is below W_max, the window of the first. With fast convergence the plateau is
    // set below the window of the second loss, so K becomes shorter.
    let plateau = |fast_convergence| {
        let mut sender = Sender::new(1000, Knobs { fast_convergence, ..Knobs::default() });
        sender.tcp.snd_ssthresh = 1000;
        sender.loss_episode(RTT_US);
        sender.loss_episode(RTT_US);
        for _ in 0..70 {
            sender.round(RTT_US);
        }
        sender.tcp.snd_cwnd
    };
    assert!((685..=705).contains(&plateau(false)), "{}", plateau(false));
    assert!((595..=640).contains(&plateau(true)), "{}", plateau(true));
}

#[test]
fn where_the_curve_is_slower_than_reno_it_grows_as_reno() {
    // With an RTT of 2 ms the curve rises by nearly nothing in 300 rounds. Reno's window rises by
    // 8/15 of a segment in each (RFC 9438 section 4.3, with the integers of Linux). As in Linux, it
    // rises no faster above the window before the loss. A price is kept for at most 16 rounds, and
    // the next one makes up for the delay.
    let rtt_us = 2000;
    let mut sender = Sender::new(50, Knobs::default());
    sender.tcp.snd_ssthresh = 50;
    sender.loss_episode(rtt_us);
    assert_eq!(sender.tcp.snd_cwnd, 35);
    let mut estimate = 35.0;
    for _ in 0..300 {
        sender.round(rtt_us);
        estimate += 8.0 / 15.0;
        let window = f64::from(sender.tcp.snd_cwnd);
        assert!((window - estimate).abs() <= 12.0, "{window} at {estimate}");
    }
}

#[test]
fn slow_start_doubles_per_round_until_the_delay_grows() {
    let mut sender = Sender::new(10, Knobs::default());
    for window in [20, 40, 80] {
        sender.round(RTT_US);
        assert_eq!(sender.tcp.snd_cwnd, window);
    }
    assert_eq!(sender.tcp.snd_ssthresh, INFINITE_SSTHRESH);
    // The threshold is an eighth of 100 ms.
    sender.round(RTT_US + 12_000);
    assert_eq!(sender.tcp.snd_ssthresh, INFINITE_SSTHRESH);
    sender.round(RTT_US + 14_000);
    assert!(sender.tcp.snd_ssthresh <= 320);
}

#[test]
fn a_train_of_acks_for_half_an_rtt_ends_slow_start() {
    let mut sender = Sender::new(64, Knobs::default());
    sender.round(RTT_US);
    assert_eq!(sender.tcp.snd_ssthresh, INFINITE_SSTHRESH);
    // 128 ACKs at intervals of 1 ms are a train of 127 ms, and half an RTT is 50 ms.
    sender.spread_round(RTT_US, 1000);
    assert!((160..=190).contains(&sender.tcp.snd_ssthresh), "{}", sender.tcp.snd_ssthresh);
}

#[test]
fn a_round_begins_with_a_flight_even_below_the_low_window() {
    // A queue grows within each flight and is empty before the next flight. So the RTT at the start
    // of a round counts, and not the RTT in the middle.
    let mut sender = Sender::new(10, Knobs::default());
    for _ in 0..6 {
        sender.queueing_round(RTT_US, 250);
    }
    assert_eq!(sender.tcp.snd_cwnd, 640);
    assert_eq!(sender.tcp.snd_ssthresh, INFINITE_SSTHRESH);
}

#[test]
fn a_connection_from_another_algorithm_keeps_its_window() {
    let mut sock = TcpSock::new(1448, 100);
    sock.snd_ssthresh = 70;
    let mut sender = Sender::with(Algorithm::cubic(sock, Knobs::default()));
    for _ in 0..5 {
        sender.round(RTT_US);
    }
    // In 0.5 s C t³ is 0.05 segments, and Reno grows by 2.7. Growth of 5 % per round would give a
    // window of 127.
    assert!((102..=103).contains(&sender.tcp.snd_cwnd), "{}", sender.tcp.snd_cwnd);
}

#[test]
fn without_hystart_slow_start_continues() {
    let mut sender = Sender::new(64, Knobs { hystart: false, ..Knobs::default() });
    sender.round(RTT_US);
    sender.spread_round(RTT_US, 1000);
    sender.round(RTT_US + 50_000);
    assert_eq!(sender.tcp.snd_ssthresh, INFINITE_SSTHRESH);
}

#[test]
fn recovery_reduces_in_proportion_to_deliveries() {
    let mut sender = Sender::new(100, Knobs::default());
    sender.tcp.snd_ssthresh = 100;
    sender.enter(CongestionState::Recovery);
    assert_eq!(sender.tcp.snd_ssthresh, 70);
    let mut sent = 0;
    // One of 100 segments is lost. For each ACK of the others 0.7 segments are sent (RFC 6937).
    for acked in 1..=98_u32 {
        sent += sender.recovery_ack();
        let allowed = (f64::from(acked) * 0.7).ceil();
        assert!((f64::from(sent) - allowed).abs() <= 1.0, "{sent} of {allowed}");
    }
    sender.leave_to_open();
    assert_eq!(sender.tcp.snd_cwnd, 70);
}

#[test]
fn bounds_hold_at_the_begin_of_a_recovery() {
    // A timer found 90 of 100 segments lost. So 10 are in flight, and one may be sent.
    for (floor, ceiling, expected) in [(0, 0, 11), (40, 0, 40), (0, 8, 8)] {
        let mut sender = Sender::new(100, Knobs::default());
        sender.tcp.lost_out = 90;
        sender.tcp.bound_floor = floor;
        sender.tcp.bound_ceiling = ceiling;
        sender.enter(CongestionState::Recovery);
        assert_eq!(sender.tcp.snd_cwnd, expected, "{floor} to {ceiling}");
    }
}

#[test]
fn an_undone_reduction_restores_the_window() {
    let mut sender = Sender::new(100, Knobs::default());
    sender.tcp.snd_ssthresh = 100;
    sender.enter(CongestionState::Recovery);
    for _ in 0..50 {
        sender.recovery_ack();
    }
    sender.tcp.snd_cwnd = sender.tcp.undo_cwnd();
    sender.tcp.undo_marker = 0;
    sender.leave_to_open();
    assert_eq!(sender.tcp.snd_cwnd, 100);
}

#[test]
fn idleness_halves_the_window_down_to_the_restart_window() {
    let mut sender = Sender::new(80, Knobs::default());
    sender.tcp.snd_ssthresh = 80;
    sender.tcp.packets_out = 0;
    sender.tcp.rto_us = 300_000;
    // A late ACK does not shorten the idle time.
    sender.tcp.last_sent_us = sender.tcp.tcp_mstamp;
    sender.tcp.tcp_mstamp += 300_000;
    sender.tcp.on_ack(1, 0, Some(RTT_US));
    sender.tcp.before_sending();
    assert_eq!(sender.tcp.snd_cwnd, 80, "a timeout is not yet over");
    sender.tcp.tcp_mstamp += 600_000;
    sender.tcp.before_sending();
    assert_eq!(sender.tcp.snd_cwnd, 20);
    sender.tcp.before_sending();
    assert_eq!(sender.tcp.snd_cwnd, 20, "once for each idle time");
    sender.tcp.last_sent_us = sender.tcp.tcp_mstamp;
    sender.tcp.tcp_mstamp += 6_000_000;
    sender.tcp.before_sending();
    assert_eq!(sender.tcp.snd_cwnd, 10);
}

#[test]
fn the_curve_does_not_jump_when_a_ceiling_is_lifted() {
    let mut sender = after_a_loss_at(100);
    sender.tcp.bound_ceiling = 80;
    for _ in 0..600 {
        sender.round(RTT_US);
    }
    assert_eq!(sender.tcp.snd_cwnd, 80);
    sender.tcp.bound_ceiling = 0;
    sender.round(RTT_US);
    assert!(sender.tcp.snd_cwnd <= 82, "{}", sender.tcp.snd_cwnd);
}

#[test]
fn a_sender_paces_while_it_has_a_pacing_bound() {
    let mut sender = Sender::new(100, Knobs::default());
    sender.tcp.bound_pacing = 50_000;
    sender.round(RTT_US);
    assert_eq!(sender.tcp.sk_pacing_rate, 50_000);
    assert_eq!(sender.tcp.sk_pacing_status, 1);
    sender.tcp.bound_pacing = 0;
    sender.round(RTT_US);
    assert!(sender.tcp.sk_pacing_rate > 50_000);
    assert_eq!(sender.tcp.sk_pacing_status, 0);
}

#[test]
fn the_pacing_rate_is_2_and_later_1_2_windows_per_rtt() {
    let mut sender = Sender::new(10, Knobs::default());
    sender.round(RTT_US);
    let window_rate = |sender: &Sender| u64::from(sender.tcp.snd_cwnd) * 1448 * 10;
    assert_eq!(sender.tcp.sk_pacing_rate, 2 * window_rate(&sender));
    sender.tcp.snd_ssthresh = 10;
    sender.round(RTT_US);
    assert_eq!(sender.tcp.sk_pacing_rate, window_rate(&sender) * 6 / 5);
}
