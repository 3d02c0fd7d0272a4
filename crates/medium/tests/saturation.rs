//! A saturated uplink against Bianchi's model and against ns-3.

mod common;

use common::{Saturation, config, saturate_uplink};
use wakeai_medium::{Protection, Standard};
use wakeai_units::Duration;

/// Collision probability of a saturated station among `n`: Bianchi's fixed point (IEEE JSAC 18(3),
/// 2000, eq. 7 and 9) with a limit on the attempts (Wu et al., INFOCOM 2002): the window of attempt
/// i is W·2^min(i, m), and after `attempts` of them the frame is given up.
fn bianchi(n: i32, window: f64, m: i32, attempts: i32) -> f64 {
    let mut p = 0.5;
    for _ in 0..10_000 {
        // Transmissions and slots that one frame takes on average; a slot of the model is what
        // passes between two decrements, and an attempt takes the mean backoff and one more.
        let reached = |i: i32| f64::powi(p, i);
        let transmissions: f64 = (0..attempts).map(reached).sum();
        let slots: f64 = (0..attempts)
            .map(|i| reached(i) * (f64::powi(2.0, i.min(m)) * window + 1.0) / 2.0)
            .sum();
        let tau = transmissions / slots;
        p = 0.5 * p + 0.5 * (1.0 - f64::powi(1.0 - tau, n - 1));
    }
    p
}

fn saturated_g(stations: usize, protection: Protection) -> Saturation {
    let mut config = config(Standard::G, stations);
    config.access_point.protection = protection;
    saturate_uplink(&config, 1_500, Duration::from_secs(2), Duration::from_secs(20), 1)
}

fn assert_within(found: f64, expected: f64, share: f64) {
    let off = (found - expected).abs() / expected;
    assert!(off <= share, "found {found:.3}, expected {expected:.3}: {:.1} % off", off * 100.0);
}

#[test]
fn the_fixed_point_gives_the_published_probabilities() {
    assert!((bianchi(10, 16.0, 6, 7) - 0.389).abs() < 0.002);
    assert!((bianchi(40, 16.0, 6, 7) - 0.600).abs() < 0.002);
}

#[test]
fn an_802_11g_uplink_carries_what_ns3_measured() {
    for (stations, mbps) in [(1, 29.7), (10, 27.2), (40, 22.7)] {
        let run = saturated_g(stations, Protection::None);
        println!(
            "{stations} stations: {:.2} Mbit/s, failed {:.3}",
            run.mbps(1_472),
            run.failed_share()
        );
        assert_within(run.mbps(1_472), mbps, 0.05);
    }
}

#[test]
fn the_share_of_failed_frames_is_bianchis() {
    assert_eq!(saturated_g(1, Protection::None).failed_share().to_bits(), 0.0_f64.to_bits());
    for stations in [2, 5, 10, 20, 40] {
        let found = saturated_g(stations, Protection::None).failed_share();
        let expected = bianchi(i32::try_from(stations).unwrap(), 16.0, 6, 7);
        println!("{stations} stations: failed {found:.3}, Bianchi {expected:.3}");
        assert!((found - expected).abs() <= 0.03, "{stations}: {found:.3} vs {expected:.3}");
    }
}
