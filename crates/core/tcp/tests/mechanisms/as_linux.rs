//! Linux takes some steps itself for `cubic` and `reno` that algorithms with `cong_control` must
//! take themselves. These tests show the steps, with the numbers of Linux.
//! `crates/device/kernel/tests/kernel/as_linux.rs` has the same situations on the running kernel, beside
//! its own algorithms.

use wakeai_connection::CongestionState;
use wakeai_tcp::{Profile, TcpConfig, by_name};

use crate::script::{MSS, SenderScript};

fn established(algorithm: &str, rtt_ms: u64) -> SenderScript {
    let config = TcpConfig::new(Profile::Linux);
    let algorithm = by_name(algorithm, &config).expect("it is known");
    SenderScript::established(&config, algorithm, rtt_ms)
}

/// A sender with a window of 40 segments. With `endless` three RTTs have passed, and segments 30 to
/// 69 are out. Otherwise four RTTs have passed, and all 40 segments are acknowledged.
fn forty(algorithm: &str, rtt_ms: u64, endless: bool) -> SenderScript {
    let mut tcp = established(algorithm, rtt_ms);
    tcp.supply((!endless).then_some(40)).sends(0..10);
    tcp.at(2 * rtt_ms).ack(10).sends(10..30);
    tcp.at(3 * rtt_ms).ack(30).sends(30..if endless { 70 } else { 40 });
    if !endless {
        tcp.at(4 * rtt_ms).ack(40).sends_nothing();
    }
    assert_eq!(tcp.sender.figures().cwnd.get(), 40);
    tcp
}

#[test]
fn a_recovery_upon_the_reordering_timer_resends_one_segment() {
    for algorithm in ["cubic", "reno"] {
        let mut tcp = forty(algorithm, 100, true);
        // 39 are lost, and the last arrives.
        tcp.at(400).ack_with(30, &[69..70]).sends([70]);
        tcp.at_next_timeout();
        assert_eq!(tcp.sender.figures().congestion_state, CongestionState::Recovery, "{algorithm}");
        assert_eq!(tcp.sender.figures().lost_out.get(), 39, "{algorithm}");
        tcp.sends([30]);
    }
}

#[test]
fn the_first_burst_after_an_idle_time_is_the_restart_window() {
    for algorithm in ["cubic", "reno"] {
        let mut tcp = forty(algorithm, 100, false);
        tcp.at(5000).supply(None).sends(40..50);
        assert_eq!(tcp.sender.figures().cwnd.get(), 10, "{algorithm}");
    }
}

#[test]
fn idle_time_is_counted_from_the_last_segment_sent() {
    for algorithm in ["cubic", "reno"] {
        let mut tcp = forty(algorithm, 300, false);
        // It is 900 ms after the last segments left, and 600 ms after their ACK. The timeout lies
        // between these times.
        tcp.at(1800).supply(None).sends(40..60);
    }
}

#[test]
fn sacks_let_the_window_grow_once_the_path_is_known_to_reorder() {
    for algorithm in ["cubic", "reno"] {
        let mut tcp = established(algorithm, 20);
        tcp.supply(Some(10)).sends(0..10);
        tcp.at(40).ack_with(0, &[9..10]);
        assert_eq!(tcp.sender.figures().cwnd.get(), 10, "{algorithm}: nothing is known");
        tcp.ack_with(0, &[3..4, 9..10]);
        assert_eq!(tcp.sender.figures().cwnd.get(), 11, "{algorithm}: 3 came after 9");
        tcp.ack(10);
        assert_eq!(tcp.sender.figures().cwnd.get(), 19, "{algorithm}");
    }
}

#[test]
fn a_small_window_grows_as_renos_at_the_ack_where_linux_looks() {
    let mut tcp = established("cubic", 100);
    tcp.supply(Some(1)).sends([0]);
    tcp.at(200).ack(1).supply(Some(2)).sends([1]);
    tcp.at_next_timeout();
    tcp.sends([1]); // a tail loss probe
    tcp.at_next_timeout();
    tcp.sends([1]);
    let timed_out = tcp.now().as_nanos() / 1_000_000;
    let mut millis = timed_out + 100;
    tcp.at(millis).ack(2).supply(None).sends(2..4);
    assert_eq!((tcp.sender.figures().cwnd.get(), tcp.sender.figures().ssthresh.get()), (2, 7));
    // Flights of ACKs arrive, 2 ms apart. Slow start ends at a window of 7. Then the window stays
    // 7. It becomes 8 once Reno's window would be 8 and Linux computes the growth anew, 1/32 s
    // after the last time.
    let mut acked = 2;
    let mut windows = Vec::new();
    for flight in [2, 4, 7, 7, 1] {
        millis += 100;
        for behind in 0..flight {
            acked += 1;
            tcp.at(millis + 2 * behind).ack(acked);
            while tcp.take().is_some() {}
            windows.push(tcp.sender.figures().cwnd.get());
        }
    }
    let expected: Vec<u32> = (3..=7).chain([7; 15]).chain([8]).collect();
    assert_eq!(windows, expected);
}

/// Takes the segments that leave now, with whether each has PSH.
fn pushed(tcp: &mut SenderScript) -> Vec<(u64, bool)> {
    let segments = std::iter::from_fn(|| tcp.take());
    segments.map(|one| ((one.seq - 1) / MSS, one.flags.psh)).collect()
}

#[test]
fn the_last_segment_of_each_write_has_psh_and_each_copy_of_it_too() {
    let mut tcp = established("cubic", 100);
    assert_eq!(pushed(tcp.supply(Some(1))), [(0, true)]);
    assert_eq!(pushed(tcp.supply(Some(4))), [(1, false), (2, true), (3, true)]);
    tcp.at_next_timeout();
    assert_eq!(pushed(&mut tcp), [(3, true)], "the tail loss probe");
    assert_eq!(pushed(tcp.supply(Some(5))), [(4, true)]);
    let first = loop {
        tcp.at_next_timeout();
        if let Some(first) = pushed(&mut tcp).into_iter().find(|(segment, _)| *segment == 0) {
            break first;
        }
    };
    assert_eq!(first, (0, true), "no longer the last that was written");
}

#[test]
fn each_packet_of_several_segments_ends_with_psh() {
    let mut tcp = established("cubic", 100);
    tcp.supply(None);
    let every_second: Vec<_> = (0..10).map(|segment| (segment, segment % 2 == 1)).collect();
    assert_eq!(pushed(&mut tcp), every_second);
    let mut tcp = established("cubic", 1);
    tcp.supply(None);
    let first: Vec<_> = (0..10).map(|segment| (segment, segment == 4 || segment == 9)).collect();
    assert_eq!(pushed(&mut tcp), first, "half of the window each, on a short path");
}

#[test]
fn the_hosts_of_2012_and_the_classic_sender_have_no_packets_of_several_segments() {
    for profile in [Profile::Linux34, Profile::Classic] {
        let config = TcpConfig::new(profile);
        let cubic = by_name("cubic", &config).expect("it is known");
        let mut tcp = SenderScript::established(&config, cubic, 100);
        tcp.supply(None);
        assert!(pushed(&mut tcp).iter().all(|(_, psh)| !psh), "{profile:?}");
    }
}

#[test]
fn a_single_segment_waits_for_an_acknowledgement_that_is_due() {
    let after = |at_us: u64| {
        let mut tcp = established("cubic", 10);
        tcp.supply(None).sends(0..10);
        tcp.at_us(at_us).ack_with(0, &[1..2]);
        let sent = pushed(&mut tcp).len();
        (sent, tcp)
    };
    // The ten left at 10 ms, and their acknowledgement is due at 20 ms.
    assert_eq!(after(18_500).0, 1, "1.5 ms before, and nothing left within the last one");
    let (sent, mut tcp) = after(18_500);
    tcp.at_us(19_200).ack_with(0, &[1..3]);
    assert_eq!((sent, pushed(&mut tcp)), (1, vec![]), "0.8 ms before, and 0.7 ms after a segment");
    tcp.at_us(19_300).ack(2);
    assert!(!pushed(&mut tcp)[0].1, "a packet of two has PSH at its end alone");
    // A millisecond later it does not wait.
    let (_, mut tcp) = after(18_500);
    tcp.at_us(19_500).ack_with(0, &[1..3]);
    assert_eq!(pushed(&mut tcp).len(), 1, "a millisecond after the last segment");
}

#[test]
fn a_window_that_ends_within_a_segment_ends_a_packet_once_per_round() {
    let mut tcp = established("cubic", 100);
    // Room for seven segments and a part of the eighth, which a kernel would send.
    tcp.window = 7 * MSS + 500;
    tcp.supply(None);
    let ends: Vec<bool> = pushed(&mut tcp).into_iter().map(|(_, psh)| psh).collect();
    assert_eq!(ends.len(), 10, "the first window is that of the SYN-ACK");
    tcp.at(180).ack(10);
    let ends: Vec<bool> = pushed(&mut tcp).into_iter().map(|(_, psh)| psh).collect();
    assert_eq!(ends, [false, true, false, true, false, true, true], "the seventh and a part");
    tcp.at(240).ack(15);
    let ends: Vec<bool> = pushed(&mut tcp).into_iter().map(|(_, psh)| psh).collect();
    assert_eq!(ends, [false, true, false, true, false], "the first part is not acknowledged yet");
    tcp.at(280).ack(22);
    let ends: Vec<bool> = pushed(&mut tcp).into_iter().map(|(_, psh)| psh).collect();
    assert_eq!(ends.last(), Some(&true), "{ends:?}");
}
