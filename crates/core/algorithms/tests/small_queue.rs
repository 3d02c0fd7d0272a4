// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The bytes that may wait in the host's queue, which follow from the pacing rate.

#[allow(dead_code, reason = "shared with tests that use more of it")]
mod sender;

use sender::Sender;
use wakeai_algorithms::{Algorithm, Knobs, TcpSock};
use wakeai_connection::INFINITE_SSTHRESH;

const RTT_US: u32 = 100_000;
const CEILING: u32 = 40;
/// The largest A-MPDU of 802.11n, and the number of packets of 1500 bytes in it.
const AGGREGATE: u64 = 65_535;
const PACKETS: u64 = 43;
/// The shift of mac80211, which allows 7.8 ms.
const SHIFT: u32 = 7;

/// Each algorithm, with a window of [`CEILING`] packets over [`RTT_US`], and with room for an
/// aggregate in the host's queue.
fn budgeted() -> Vec<Sender> {
    let mut sock = TcpSock::new(1448, 10);
    sock.sk_pacing_shift = SHIFT;
    let starts = [
        Algorithm::reno,
        Algorithm::av,
        Algorithm::compound,
        |sock| Algorithm::cubic(sock, Knobs::default()),
        |sock| Algorithm::ns3_cubic(sock, Knobs::default()),
    ];
    let mut all: Vec<Sender> =
        starts.into_iter().map(|start| Sender::with(start(sock.clone()))).collect();
    for sender in &mut all {
        sender.tcp.bound_ceiling = CEILING;
        for _ in 0..4 {
            sender.round(RTT_US);
        }
        sender.tcp.bound_small_queue = AGGREGATE;
        sender.ack(RTT_US);
    }
    all
}

/// The ordinary rate for a window at the ceiling.
fn ordinary() -> u64 {
    u64::from(CEILING) * 1448 * 10
}

/// The limit of the host's queue that the rate gives, in bytes. The queue accepts another packet
/// while it holds at most this much.
fn allowed(tcp: &Algorithm) -> u64 {
    tcp.sk_pacing_rate >> SHIFT
}

#[test]
fn under_a_ceiling_an_aggregate_of_full_packets_may_wait() {
    for mut sender in budgeted() {
        assert_eq!(allowed(&sender.tcp), PACKETS * 1500 - 1);
        sender.tcp.bound_small_queue = 0;
        sender.ack(RTT_US);
        assert!(sender.tcp.sk_pacing_rate <= 2 * ordinary());
    }
}

#[test]
fn nothing_is_raised_without_a_ceiling() {
    for mut sender in budgeted() {
        sender.tcp.bound_ceiling = 0;
        sender.ack(RTT_US);
        assert!(allowed(&sender.tcp) < PACKETS * 1500 - 1);
    }
}

#[test]
fn nothing_is_raised_where_something_paces() {
    for mut sender in budgeted() {
        sender.tcp.sk_pacing_status = 1;
        sender.ack(RTT_US);
        assert!(sender.tcp.sk_pacing_rate <= 2 * ordinary());
    }
    for mut sender in budgeted() {
        sender.tcp.bound_pacing = 50_000;
        // The rate is not raised before the first ACK under the bound, nor after it.
        sender.tcp.before_sending();
        assert!(sender.tcp.sk_pacing_rate <= 2 * ordinary());
        sender.ack(RTT_US);
        assert_eq!((sender.tcp.sk_pacing_rate, sender.tcp.sk_pacing_status), (50_000, 1));
    }
}

#[test]
fn the_limit_of_the_application_is_kept() {
    for mut sender in budgeted() {
        sender.tcp.sk_max_pacing_rate = 2_500_000;
        sender.ack(RTT_US);
        assert_eq!(sender.tcp.sk_pacing_rate, 2_500_000);
    }
}

#[test]
fn a_rate_that_already_allows_more_stays() {
    for mut sender in budgeted() {
        sender.tcp.bound_small_queue = 3000;
        sender.ack(RTT_US);
        let rate = sender.tcp.sk_pacing_rate;
        sender.tcp.bound_small_queue = 0;
        sender.ack(RTT_US);
        assert_eq!(sender.tcp.sk_pacing_rate, rate);
    }
}

#[test]
fn the_raised_rate_ends_with_its_bounds_even_without_an_ack() {
    for mut sender in budgeted() {
        let raised = sender.tcp.sk_pacing_rate;
        sender.tcp.before_sending();
        assert_eq!(sender.tcp.sk_pacing_rate, raised);
        sender.tcp.bound_ceiling = 0;
        sender.tcp.bound_small_queue = 0;
        sender.tcp.before_sending();
        assert!(sender.tcp.sk_pacing_rate <= 2 * ordinary());
    }
}

#[test]
fn release_restores_the_rate_of_the_window() {
    for sender in budgeted() {
        assert!(sender.tcp.release().sk_pacing_rate <= 2 * ordinary());
    }
}

#[test]
fn after_idleness_the_burst_follows_the_rate_of_the_window() {
    for mut sender in budgeted() {
        let raised = sender.tcp.sk_pacing_rate;
        sender.tcp.packets_out = 0;
        sender.tcp.before_sending();
        assert!(sender.tcp.sk_pacing_rate <= 2 * ordinary());
        sender.tcp.after_idle();
        assert_eq!(sender.tcp.sk_pacing_rate, raised);
    }
}

#[test]
fn a_path_without_rtt_gets_no_budget() {
    let mut sock = TcpSock::new(1448, 10);
    sock.sk_pacing_rate = 1000;
    (sock.bound_ceiling, sock.bound_small_queue) = (CEILING, AGGREGATE);
    let mut tcp = Algorithm::cubic(sock, Knobs::default());
    tcp.after_idle();
    assert_eq!(tcp.sk_pacing_rate, 1000);
}

#[test]
fn any_budget_fits_the_counters() {
    for mut sender in budgeted() {
        let mut allowed_by = |small_queue| {
            sender.tcp.bound_small_queue = small_queue;
            sender.ack(RTT_US);
            allowed(&sender.tcp)
        };
        let without = allowed_by(0);
        for (bytes, packets) in [(1499, 0), (1500, 1), (3000, 2), (u64::MAX, (1 << 24) / 1500)] {
            let expected = (packets * 1500_u64).saturating_sub(1).max(without);
            assert_eq!(allowed_by(bytes), expected, "{bytes} bytes");
        }
    }
}

#[test]
fn hystart_sees_the_rate_of_the_window() {
    // A train of ACKs ends slow start once it lasts longer than half of the sum of two times. The
    // first is the RTT. The second is the time of four bursts of 64 KB at the pacing rate, but at
    // most 1 ms. At the raised rate the second time would be nearly zero.
    let train = |small_queue: u64| {
        let mut sock = TcpSock::new(1448, 20);
        sock.sk_pacing_shift = SHIFT;
        (sock.bound_ceiling, sock.bound_small_queue) = (10_000, small_queue);
        let mut sender = Sender::with(Algorithm::cubic(sock, Knobs::default()));
        sender.round(RTT_US);
        sender.tcp.tcp_mstamp += u64::from(RTT_US);
        let mut acks = 0;
        while sender.tcp.snd_ssthresh == INFINITE_SSTHRESH {
            sender.tcp.tcp_mstamp += 100;
            sender.ack(RTT_US);
            acks += 1;
        }
        (acks, sender.tcp.sk_pacing_rate)
    };
    let (plain, raised) = (train(0), train(1 << 24));
    assert!(raised.1 > 10 * plain.1, "{} and {}", plain.1, raised.1);
    assert_eq!(plain.0, raised.0);
}
