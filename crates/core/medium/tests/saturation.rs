//! A saturated uplink, compared with Bianchi's model and with ns-3.

mod common;

use common::{Saturation, config, saturate_uplink};
use wakeai_units::{Bytes, Duration, Rate};
use wakeai_wifi::{Protection, Standard};

/// The collision probability of a saturated station among `n`. It is Bianchi's fixed point (IEEE
/// JSAC 18(3), 2000, eq. 7 and 9) with a limit on the attempts (Wu et al., INFOCOM 2002). With `W`
/// = `window` the window of attempt i is W·2^min(i, m). After `attempts` attempts the frame is
/// given up.
fn bianchi(n: i32, window: f64, m: i32, attempts: i32) -> f64 {
    let mut p = 0.5;
    for _ in 0..10_000 {
        // The transmissions and the slots that one frame takes on average. A slot of the model is
        // the time between two decrements of the counter. An attempt takes the mean backoff and one
        // more slot.
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
    config.access_points[0].bss.protection = protection;
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

/// The results of ns-3 3.37: stations, Mbit/s of UDP payload without RTS, and with RTS
/// (`validation/ns3`). Beacons take 0.7 % of the air there.
const NS3: [(usize, f64, f64); 7] = [
    (1, 29.68, 24.26),
    (2, 30.06, 25.25),
    (5, 28.97, 25.66),
    (10, 27.15, 25.63),
    (20, 25.32, 25.33),
    (30, 23.91, 25.13),
    (40, 22.77, 24.93),
];

#[test]
fn an_802_11g_uplink_carries_what_ns3_measured() {
    for (stations, bare, rts) in NS3 {
        assert_within(saturated_g(stations, Protection::None).mbps(1_472), bare, 0.02);
        assert_within(saturated_g(stations, Protection::RtsCts).mbps(1_472), rts, 0.02);
    }
}

#[test]
fn the_share_of_failed_frames_is_bianchis() {
    assert_eq!(saturated_g(1, Protection::None).failed_share().to_bits(), 0.0_f64.to_bits());
    for stations in [2, 5, 10, 20, 40] {
        let found = saturated_g(stations, Protection::None).failed_share();
        let expected = bianchi(i32::try_from(stations).unwrap(), 16.0, 6, 7);
        assert!((found - expected).abs() <= 0.03, "{stations}: {found:.3} vs {expected:.3}");
    }
}

#[test]
fn an_802_11b_uplink_is_that_of_bianchis_model() {
    let run = |stations: i32, short_preamble: bool| {
        let mut config = config(Standard::B, usize::try_from(stations).unwrap());
        config.access_points[0].bss.short_preamble = short_preamble;
        saturate_uplink(&config, 1_500, Duration::from_secs(2), Duration::from_secs(20), 1)
    };
    // Alone: DIFS 50, a mean backoff of 15.5 slots of 20 us, the frame (1310 us), SIFS 10, the ACK at 2 Mbit/s
    // (248 us). The short preamble saves 96 us of each frame.
    assert_within(
        run(1, false).mbps(1_472),
        11_776.0 / (50.0 + 310.0 + 1_310.0 + 10.0 + 248.0),
        0.01,
    );
    assert_within(run(1, true).mbps(1_472), 11_776.0 / (1_928.0 - 192.0), 0.01);
    for stations in [2, 5, 10, 20, 40] {
        let found = run(stations, false).failed_share();
        let expected = bianchi(stations, 32.0, 5, 7);
        assert!((found - expected).abs() <= 0.03, "{stations}: {found:.3} vs {expected:.3}");
    }
}

/// Jain's index over the stations' delivered packets.
fn jain(arrived: &[u64]) -> f64 {
    let sum: f64 = arrived.iter().map(|x| *x as f64).sum();
    let squares: f64 = arrived.iter().map(|x| (*x as f64).powi(2)).sum();
    sum * sum / (arrived.len() as f64 * squares)
}

#[test]
fn dcf_gives_every_station_the_same_number_of_frames() {
    let run = saturated_g(10, Protection::None);
    assert!(jain(&run.arrived) > 0.99, "{:?}", run.arrived);
}

#[test]
fn dcf_gives_a_slow_station_as_many_frames_as_a_fast_one() {
    // This is the anomaly of Heusse et al. (INFOCOM 2003): the fast stations get no more than the
    // slow one.
    let mut config = config(Standard::G, 4);
    config.stations[0].radio.rate = Rate::from_mbps(6);
    let run = saturate_uplink(&config, 1_500, Duration::from_secs(1), Duration::from_secs(60), 1);
    assert!(jain(&run.arrived) > 0.99, "{:?}", run.arrived);
    let air = |index: usize| run.medium.counters().stations[index].airtime.data.as_secs_f64();
    // A data frame takes 2078 us at 6 Mbit/s and 254 us at 54 Mbit/s.
    assert_within(air(0) / air(1), 2_078.0 / 254.0, 0.05);
}

#[test]
fn with_rts_collisions_cost_an_rts_and_never_a_data_frame() {
    let run = saturated_g(40, Protection::RtsCts);
    let counters = &run.medium.counters().stations;
    let sent: u64 = counters.iter().map(|c| c.rts_attempts).sum();
    let failed: u64 = counters.iter().map(|c| c.rts_failures).sum();
    let share = failed as f64 / sent as f64;
    assert!((share - bianchi(40, 16.0, 6, 7)).abs() <= 0.03, "{share:.3}");
    assert!(counters.iter().all(|c| c.failures == 0 && c.attempts > 0));
    // More than half of the data frames of 40 stations collide, so an RTS before each is worth its
    // time.
    assert!(run.mbps(1_472) > saturated_g(40, Protection::None).mbps(1_472));
}

#[test]
fn frames_up_to_the_rts_threshold_go_without_rts() {
    let goodput = |protection, threshold| {
        let mut config = config(Standard::G, 10);
        config.access_points[0].bss.protection = protection;
        config.access_points[0].bss.rts_threshold = Bytes::new(threshold);
        let (warmup, measured) = (Duration::from_secs(1), Duration::from_secs(5));
        saturate_uplink(&config, 1_500, warmup, measured, 1).arrived
    };
    // A packet of 1500 bytes is an MPDU of 1536 bytes.
    let (rts, none) = (Protection::RtsCts, Protection::None);
    assert_eq!(goodput(rts, 1_535), goodput(rts, 0));
    assert_eq!(goodput(rts, 1_536), goodput(none, 0));
    assert_ne!(goodput(rts, 0), goodput(none, 0));
    // CTS-to-self protects every frame: the RTS threshold does not apply to it.
    assert_eq!(goodput(Protection::CtsToSelf, 1_536), goodput(Protection::CtsToSelf, 0));
}

#[test]
fn cts_to_self_does_not_save_a_colliding_data_frame() {
    let run = saturated_g(10, Protection::CtsToSelf);
    let expected = bianchi(10, 16.0, 6, 7);
    assert!((run.failed_share() - expected).abs() <= 0.03, "{:.3}", run.failed_share());
    // Every exchange is longer by a CTS and a SIFS, also an exchange that collides.
    let bare = saturated_g(10, Protection::None);
    assert_within(run.mbps(1_472), bare.mbps(1_472) * (254.0 + 72.0) / (254.0 + 72.0 + 44.0), 0.05);
}

#[test]
fn eifs_after_collisions_costs_what_it_costs_in_bianchis_model() {
    // With 40 stations the model has 23.3 Mbit/s of IP packets where DIFS follows a collision, and
    // 21.6 where EIFS follows it.
    let mut config = config(Standard::G, 40);
    let mut run = |eifs: bool| {
        config.eifs_after_collision = eifs;
        let (warmup, measured) = (Duration::from_secs(2), Duration::from_secs(20));
        saturate_uplink(&config, 1_500, warmup, measured, 1).mbps(1_500)
    };
    assert_within(run(false), 23.3, 0.03);
    assert_within(run(true), 21.6, 0.03);
}
