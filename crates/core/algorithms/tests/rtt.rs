// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Tests of `wakeai_rtt` in user space: the curve of CUBIC with the K' of equation 3 of Kozu et al.

#[allow(dead_code, reason = "shared with tests that use more of it")]
mod sender;

use sender::Sender;
use wakeai_algorithms::Knobs;

fn knobs(rtt_ref_ms: u32) -> Knobs {
    Knobs { rtt_ref_ms, ..Knobs::default() }
}

/// Seconds from a loss at `window` until the window is back within a hundredth of it.
fn recovery_time(window: u32, rtt_us: u32, knobs: Knobs) -> f64 {
    let mut sender = Sender::new(window, knobs);
    sender.tcp.snd_ssthresh = window;
    sender.round(rtt_us);
    sender.loss_episode(rtt_us);
    let began = sender.tcp.tcp_mstamp;
    while sender.tcp.snd_cwnd < window - window / 100 {
        sender.round(rtt_us);
    }
    (sender.tcp.tcp_mstamp - began) as f64 / 1e6
}

#[test]
fn at_the_reference_it_is_cubic() {
    let window_after = |knobs| {
        let mut sender = Sender::new(1000, knobs);
        sender.tcp.snd_ssthresh = 1000;
        sender.round(200_000);
        sender.loss_episode(200_000);
        for _ in 0..60 {
            sender.round(200_000);
        }
        sender.tcp.snd_cwnd
    };
    assert_eq!(window_after(knobs(200)), window_after(Knobs::default()));
}

#[test]
fn the_recovery_time_follows_the_cube_root_of_the_rtt_ratio() {
    // At an eighth of RTT_ref K doubles. With a window of 100,000 segments Reno's window is far
    // below the curve.
    let at = |rtt_us| {
        recovery_time(100_000, rtt_us, knobs(800))
            / recovery_time(100_000, rtt_us, Knobs::default())
    };
    let (short, same, long) = (at(100_000), at(800_000), at(6_400_000));
    assert!((1.9..2.1).contains(&short), "{short}");
    assert!((0.95..1.05).contains(&same), "{same}");
    assert!((0.3..0.75).contains(&long), "{long}");
}

#[test]
fn k_prime_is_k_times_the_cube_root_of_the_rtts_ratio() {
    let k_us = |rtt_us, knobs| {
        let mut sender = Sender::new(1000, knobs);
        sender.tcp.snd_ssthresh = 1000;
        sender.round(rtt_us);
        let lost_at = sender.tcp.snd_cwnd;
        sender.loss_episode(rtt_us);
        assert_eq!(sender.tcp.k_us(), None);
        let left = sender.tcp.snd_cwnd;
        sender.ack(rtt_us);
        (f64::from(sender.tcp.k_us().unwrap()), f64::from(lost_at - left))
    };
    for (rtt_us, factor) in [(25_000, 2.0), (200_000, 1.0), (1_600_000, 0.5)] {
        let ((k, lost), (k_prime, _)) =
            (k_us(rtt_us, Knobs::default()), k_us(rtt_us, Knobs::rtt_fair()));
        // RFC 9438 equation 2, and Kozu et al., equation 3
        assert!((k / 1e6 / (lost / 0.4).cbrt() - 1.0).abs() < 0.01, "{k} us");
        assert!((k_prime / k / factor - 1.0).abs() < 0.01, "{k_prime} us of {k} us");
    }
}

#[test]
fn the_curve_starts_at_the_window_after_the_loss() {
    for rtt_us in [50_000, 1_000_000] {
        let mut sender = Sender::new(1000, Knobs::rtt_fair());
        sender.tcp.snd_ssthresh = 1000;
        sender.round(rtt_us);
        let lost_at = sender.tcp.snd_cwnd;
        sender.loss_episode(rtt_us);
        let left = sender.tcp.snd_cwnd;
        assert_eq!(left, lost_at * 717 / 1024);
        sender.ack(rtt_us);
        assert!(sender.tcp.snd_cwnd <= left + 1);
    }
}

#[test]
fn a_short_queue_hardly_changes_the_curve() {
    // One RTT of ten times the usual length moves the mean by an eighth of the difference.
    let with = |moment_us| {
        let mut sender = Sender::new(1000, knobs(200));
        sender.tcp.snd_ssthresh = 1000;
        for _ in 0..20 {
            sender.round(100_000);
        }
        sender.round(moment_us);
        sender.loss_episode(100_000);
        let began = sender.tcp.snd_cwnd;
        for _ in 0..30 {
            sender.round(100_000);
        }
        f64::from(sender.tcp.snd_cwnd - began)
    };
    let (calm, queued) = (with(100_000), with(300_000));
    assert!(queued / calm < 1.25, "{queued} beside {calm}");
}
