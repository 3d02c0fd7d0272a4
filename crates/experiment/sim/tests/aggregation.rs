//! The number of frames in an A-MPDU (aggregate) and the goodput with it, compared with the airtime
//! of the exchanges. The airtime is added up by hand as in `crates/core/medium/tests/one_station.rs`.

#![allow(clippy::unwrap_used, reason = "a test stops where something fails")]

mod common;

use common::{DOWN, UP, goodput, report, scenario, simulate};
use wakeai_scenario::Scenario;
use wakeai_world::Options;

/// The goodput in Mbit/s of one exchange: `frames` datagrams of 1472 bytes in a data frame of
/// `data_us`.
///
/// An exchange has AIFS of 43 us, 7.5 slots of backoff, a SIFS, and the answer: to one frame an ACK
/// of 28 us at 24 Mbit/s, to several a `BlockAck` of 32 us.
fn by_hand(frames: f64, data_us: f64) -> f64 {
    let answer_us = if frames > 1.0 { 32.0 } else { 28.0 };
    frames * 1_472.0 * 8.0 / (43.0 + 67.5 + data_us + 16.0 + answer_us)
}

/// One 802.11n station at 65 Mbit/s with more datagrams than the air can carry.
fn saturated(flow: &str, subframes: u32) -> Scenario {
    let flow = format!("{flow}\nkind = \"udp\"\nrate = \"100Mbit/s\"");
    let scenario = scenario("802.11n", 1, &flow, "");
    let key = ("access_point.ampdu_subframes".to_owned(), subframes.to_string());
    scenario.with_overrides(&[key]).unwrap()
}

#[test]
fn an_ampdu_has_as_many_subframes_as_the_access_point_says() {
    // An MPDU of 1538 bytes is 12326 bits with service and tail: 48 symbols of 260 bits, which take
    // 36 + 192 us. In an A-MPDU the last MPDU takes 1542 bytes and each other 1544. 4 MPDUs are
    // 6174 bytes or 191 symbols, and 16 are 24702 bytes or 761 symbols. The longest PPDU, 5.484 ms,
    // has room for 28, so 64 are never reached.
    let cases = [(1, 1.0, 228.0), (4, 4.0, 800.0), (16, 16.0, 3_080.0), (64, 28.0, 5_360.0)];
    for flow in [UP, DOWN] {
        for (subframes, frames, data_us) in cases {
            let found = goodput(&simulate(&saturated(flow, subframes), 1, ()).0);
            let expected = by_hand(frames, data_us);
            let off = (found / expected - 1.0).abs();
            assert!(off < 0.03, "{flow}, {subframes}: {found:.2}, by hand {expected:.2}");
        }
    }
}

#[test]
fn a_solo_run_has_the_same_aggregates() {
    let alone = |subframes: u32| {
        let report = report(&saturated(UP, subframes), &Options::default());
        report.runs[0].stations[0].max_mbps.unwrap()
    };
    for (subframes, expected) in [(1, by_hand(1.0, 228.0)), (16, by_hand(16.0, 3_080.0))] {
        let found = alone(subframes);
        assert!((found / expected - 1.0).abs() < 0.03, "{subframes}: {found:.2}, {expected:.2}");
    }
}

#[test]
fn fewer_subframes_carry_less_of_tcp_too() {
    let carried = |subframes: u32| {
        let scenario = scenario("802.11n", 3, UP, "");
        let key = ("access_point.ampdu_subframes".to_owned(), subframes.to_string());
        goodput(&simulate(&scenario.with_overrides(&[key]).unwrap(), 1, ()).0)
    };
    let found = [1, 4, 16].map(carried);
    assert!(found.is_sorted_by(|few, many| few * 1.1 < *many), "{found:?}");
}

/// The aggregate goodput of a download in Mbit/s, with A-MPDUs of up to 1,048,575 bytes over that
/// with A-MPDUs of up to 65,535.
fn gain_of_long_ampdus(standard: &str, width: &str, streams: u32, rate: &str) -> f64 {
    let carried = |ampdu: u32| {
        let keys = [
            ("duration", "2s".to_owned()),
            ("warmup", "1s".to_owned()),
            ("access_point.width", width.to_owned()),
            ("access_point.streams", streams.to_string()),
            ("access_point.buffer", "2000".to_owned()),
            ("access_point.ampdu", ampdu.to_string()),
            ("wired.rate", "10Gbit/s".to_owned()),
            ("stations.tablet.rate", rate.to_owned()),
        ];
        let keys = keys.map(|(key, value)| (key.to_owned(), value));
        let scenario = scenario(standard, 1, DOWN, "").with_overrides(&keys).unwrap();
        goodput(&simulate(&scenario, 1, ()).0)
    };
    carried(1_048_575) / carried(65_535)
}

#[test]
fn long_ampdus_carry_more_the_faster_the_phy_is() {
    // The table in docs/reference/scenario.md has 1.06, 1.12, 1.25, 1.49 and 1.91.
    let found = [
        gain_of_long_ampdus("802.11ac", "80MHz", 1, "390Mbit/s"),
        gain_of_long_ampdus("802.11ac", "80MHz", 2, "780Mbit/s"),
        gain_of_long_ampdus("802.11ax", "80MHz", 1, "600.5Mbit/s"),
        gain_of_long_ampdus("802.11ax", "80MHz", 2, "1201Mbit/s"),
        gain_of_long_ampdus("802.11ax", "160MHz", 2, "2402Mbit/s"),
    ];
    assert!(found[0] > 1.02 && found[4] > 1.5, "{found:?}");
    assert!(found.is_sorted_by(|slow, fast| slow < fast), "{found:?}");
}
