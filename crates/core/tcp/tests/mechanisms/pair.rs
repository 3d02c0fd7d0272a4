//! Both ends together over a network.

use wakeai_tcp::{Profile, TcpConfig, by_name};
use wakeai_units::{Instant, Rate};

use crate::script::{Link, Loss, MSS, Pair, at_ms, ms};

/// A pair over a link of `mbps` with a queue of `queue` packets, `delay_ms` each way.
fn pair(
    profile: Profile,
    algorithm: &str,
    mbps: u64,
    delay_ms: u64,
    queue: usize,
    loss: Loss,
) -> Pair {
    let config = TcpConfig::new(profile);
    let algorithm = by_name(algorithm, &config).expect("it is known");
    let forward = Link::new(Rate::from_mbps(mbps), ms(delay_ms), queue, loss);
    let back = Link::new(Rate::from_mbps(mbps), ms(delay_ms), 10_000, Loss::Never);
    Pair::open(&config, algorithm, forward, back)
}

/// Mbit/s of data that the application got from `begin_ms` to `end_ms`.
fn goodput_mbps(pair: &mut Pair, begin_ms: u64, end_ms: u64) -> f64 {
    pair.run_until(at_ms(begin_ms));
    let before = pair.receiver.bytes_read();
    pair.run_until(at_ms(end_ms));
    let bytes = pair.receiver.bytes_read() - before;
    bytes as f64 * 8.0 / 1000.0 / (end_ms - begin_ms) as f64
}

#[test]
fn a_flow_fills_its_link() {
    for profile in [Profile::Linux, Profile::Classic] {
        for algorithm in ["cubic", "reno"] {
            let mut pair = pair(profile, algorithm, 10, 10, 100, Loss::Never);
            pair.sender.supply(None);
            pair.flush();
            let goodput = goodput_mbps(&mut pair, 5_000, 25_000);
            let capacity = 10.0 * MSS as f64 / 1500.0;
            assert!(
                (capacity * 0.97..capacity * 1.02).contains(&goodput),
                "{algorithm}: {goodput}"
            );
        }
    }
}

#[test]
fn a_long_path_is_filled_where_the_buffers_follow_it() {
    let mut pair = pair(Profile::Linux, "cubic", 50, 256, 5_000, Loss::Never);
    pair.sender.supply(None);
    pair.flush();
    let goodput = goodput_mbps(&mut pair, 15_000, 30_000);
    assert!(goodput > 40.0, "{goodput}");
}

/// The mean number of segments that arrive per RTT of 100 ms, where one in `one_in` is lost.
fn segments_per_rtt(algorithm: &str, one_in: u64, seconds: u64) -> f64 {
    let loss = Loss::Random(65_536 / one_in, 1);
    let mut pair = pair(Profile::Linux, algorithm, 1000, 50, 100_000, loss);
    pair.sender.supply(None);
    pair.flush();
    pair.run_until(at_ms(1000 * seconds));
    pair.receiver.bytes_read() as f64 / MSS as f64 / (10 * seconds) as f64
}

#[test]
fn reno_follows_the_square_root_law() {
    // Mathis et al., "The macroscopic behavior of the TCP congestion avoidance algorithm".
    for one_in in [64, 1024] {
        let expected = (1.5 * one_in as f64).sqrt();
        let measured = segments_per_rtt("reno", one_in, 300);
        let ratio = measured / expected;
        assert!((0.6..1.5).contains(&ratio), "1/{one_in}: {measured}, the law says {expected}");
    }
}

#[test]
fn cubic_is_faster_than_reno_where_losses_are_few() {
    for (one_in, expected) in [(64, (1.5_f64 * 64.0).sqrt()), (4096, 0.0)] {
        // RFC 9438 section 5.1: 1.054 (RTT^3 / p^3)^(1/4) with C = 0.4.
        let cubic_region = 1.054 * (0.001 * (one_in as f64).powi(3)).powf(0.25);
        let expected = cubic_region.max(expected);
        let measured = segments_per_rtt("cubic", one_in, 300);
        let ratio = measured / expected;
        assert!((0.6..1.7).contains(&ratio), "1/{one_in}: {measured}, the law says {expected}");
    }
}

#[test]
fn a_full_queue_of_the_host_costs_no_retransmission() {
    let mut pair = pair(Profile::Linux, "cubic", 10, 10, 50, Loss::Never);
    pair.forward.is_host_queue = true;
    pair.sender.supply(None);
    pair.flush();
    let goodput = goodput_mbps(&mut pair, 5_000, 25_000);
    assert!(goodput > 9.2, "{goodput}");
    let counters = pair.sender.counters();
    assert!(counters.local_drops > 0);
    assert_eq!((counters.retransmits, counters.timeouts), (0, 0));
}

#[test]
fn small_queues_keep_the_hosts_queue_short_at_full_speed() {
    let run = |small_queues| {
        let config = TcpConfig { small_queues, ..TcpConfig::new(Profile::Linux) };
        let algorithm = by_name("cubic", &config).expect("it is known");
        let link = || Link::new(Rate::from_mbps(10), ms(10), 1000, Loss::Never);
        let mut pair = Pair::open(&config, algorithm, link(), link());
        pair.sender.supply(None);
        pair.flush();
        let goodput = goodput_mbps(&mut pair, 5_000, 15_000);
        assert!(goodput > 9.4, "{goodput}");
        pair.forward.longest
    };
    let (small, large) = (run(true), run(false));
    assert!(small * 5 < large, "{small} and {large} packets");
}

/// Sends half a megabyte over a path with many losses in both directions. Returns the time at which
/// both ends were done.
fn transfer(profile: Profile, algorithm: &str, seed: u64) -> (Instant, Pair) {
    const SIZE: u64 = 500_000;
    let config = TcpConfig::new(profile);
    let forward = Link::new(Rate::from_mbps(10), ms(10), 60, Loss::Random(3_000, seed));
    let back = Link::new(Rate::from_mbps(10), ms(10), 60, Loss::Random(3_000, seed + 1));
    let algorithm = by_name(algorithm, &config).expect("it is known");
    let mut pair = Pair::open(&config, algorithm, forward, back);
    pair.sender.supply(Some(SIZE));
    pair.sender.close();
    pair.flush();
    for _ in 0..2_000 {
        pair.run_until(pair.now + ms(1000));
        if pair.sender.is_closed() && pair.receiver.is_closed() {
            break;
        }
    }
    let about = format!("{profile:?} {seed}: {:?}", pair.sender.counters());
    assert!(pair.sender.is_closed(), "{about}");
    assert_eq!(pair.receiver.bytes_read(), SIZE, "{about}");
    assert!(pair.receiver.finished(), "{about}");
    (pair.now, pair)
}

#[test]
fn every_byte_arrives_and_both_ends_close_however_much_is_lost() {
    for seed in 0..60 {
        for profile in [Profile::Linux, Profile::Classic] {
            for algorithm in ["cubic", "reno"] {
                transfer(profile, algorithm, seed);
            }
        }
    }
}

#[test]
fn the_same_run_twice_is_the_same() {
    for seed in 0..5 {
        let (first, one) = transfer(Profile::Linux, "cubic", seed);
        let (second, other) = transfer(Profile::Linux, "cubic", seed);
        assert_eq!(first, second);
        assert_eq!(one.sender.counters(), other.sender.counters());
        assert_eq!(one.receiver.counters(), other.receiver.counters());
        assert_eq!(
            (one.forward.offered, one.back.offered),
            (other.forward.offered, other.back.offered)
        );
    }
}

#[test]
fn given_losses_are_repaired_by_exactly_as_many_retransmissions() {
    // The 100th, 101st and 150th packet of a flow that has room to spare.
    let loss = Loss::These(vec![100, 101, 150]);
    let mut pair = pair(Profile::Linux, "cubic", 100, 20, 10_000, loss);
    pair.sender.supply(Some(2_000_000));
    pair.sender.close();
    pair.flush();
    pair.run_until(at_ms(60_000));
    assert!(pair.sender.is_closed());
    assert_eq!(pair.receiver.bytes_read(), 2_000_000);
    let counters = pair.sender.counters();
    assert_eq!((counters.retransmits, counters.timeouts), (3, 0));
    assert_eq!(pair.receiver.counters().duplicates, 0);
}
