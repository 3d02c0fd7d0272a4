// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The differences between `ns3_cubic` and `wakeai_cubic`.

#[allow(dead_code, reason = "shared with tests that use more of it")]
mod sender;

use sender::Sender;
use wakeai_algorithms::{Algorithm, Knobs, TcpSock};
use wakeai_connection::{CongestionState, INFINITE_SSTHRESH};

const MSS: u32 = 1448;
const RTT_US: u32 = 100_000;

/// Linux's CUBIC without its Reno-friendly region and ns-3's CUBIC, both with this window.
fn both(window: u32) -> [Sender; 2] {
    let knobs = Knobs { tcp_friendliness: false, ..Knobs::default() };
    let sock = || TcpSock::new(MSS, window);
    [Algorithm::cubic(sock(), knobs), Algorithm::ns3_cubic(sock(), knobs)].map(Sender::with)
}

/// Handles one ACK for `covered` segments, of which `new` were not selectively acknowledged before.
fn cumulative_ack(sender: &mut Sender, covered: u32, new: u32) -> u32 {
    let tcp = &mut sender.tcp;
    tcp.snd_una = tcp.snd_una.wrapping_add(covered * MSS);
    tcp.packets_out -= covered;
    tcp.on_ack(new, 0, Some(RTT_US));
    tcp.snd_cwnd
}

#[test]
fn slow_start_tolerates_twice_the_smallest_rtt() {
    let thresholds = |growth_us| {
        both(64).map(|mut sender| {
            sender.round(RTT_US);
            sender.round(RTT_US + growth_us);
            sender.tcp.snd_ssthresh
        })
    };
    let [linux, ns3] = thresholds(50_000);
    assert!(linux < INFINITE_SSTHRESH && ns3 == INFINITE_SSTHRESH, "{linux} {ns3}");
    let [linux, ns3] = thresholds(150_000);
    assert!(linux < INFINITE_SSTHRESH && ns3 < INFINITE_SSTHRESH, "{linux} {ns3}");
}

#[test]
fn slow_start_goes_beyond_its_threshold() {
    let [linux, ns3] = both(40).map(|mut sender| {
        sender.tcp.snd_ssthresh = 42;
        cumulative_ack(&mut sender, 20, 20)
    });
    assert!((42..45).contains(&linux), "{linux}");
    assert_eq!(ns3, 60);
}

#[test]
fn the_count_of_a_plateau_is_spent_after_a_timeout() {
    let rtt_us = 20_000;
    let [linux, ns3] = both(200).map(|mut sender| {
        sender.tcp.snd_ssthresh = 200;
        sender.loss_episode(rtt_us);
        (0..270).for_each(|_| sender.round(rtt_us)); // K is 5.3 s
        sender.enter(CongestionState::Loss);
        sender.leave_to_open();
        sender.tcp.snd_cwnd = 100;
        sender.tcp.snd_ssthresh = 100;
        sender.tcp.packets_out = 100;
        sender.round(rtt_us);
        sender.tcp.snd_cwnd
    });
    // After a timeout the window grows by 5 % per round. In ns-3 the segments that were counted on
    // the plateau also give a segment per ACK, until they are used up.
    assert!((104..=105).contains(&linux) && ns3 >= 115, "{linux} {ns3}");
}

#[test]
fn in_loss_a_cumulative_ack_counts_sacked_segments_again() {
    let [linux, ns3] = both(100).map(|mut sender| {
        sender.tcp.snd_ssthresh = 100;
        sender.enter(CongestionState::Loss);
        sender.tcp.snd_cwnd = 1;
        cumulative_ack(&mut sender, 30, 1)
    });
    assert_eq!((linux, ns3), (2, 31));
}
