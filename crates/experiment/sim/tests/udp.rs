//! Datagrams: at a rate, as many as fit, and a given amount.

mod common;

use common::{DOWN, UP, goodput, scenario, simulate};

fn received(flow: &str, more: &str, stations: u32) -> f64 {
    let flow = format!("{flow}\nkind = \"udp\"\n{more}");
    let (outcome, ()) = simulate(&scenario("802.11g", stations, &flow, ""), 1, ());
    goodput(&outcome)
}

#[test]
fn a_rate_is_kept_to_the_datagram_both_ways() {
    for flow in [UP, DOWN] {
        let mbps = received(flow, "rate = \"3Mbit/s\"", 2);
        // The last datagrams of the 10 s are still on their way. Two datagrams are 0.0024 Mbit/s.
        assert!((5.99..=6.0024).contains(&mbps), "{mbps}");
    }
}

#[test]
fn stations_without_a_rate_saturate_the_air_and_share_it() {
    // docs/decisions/002 has 29.9, 27.5 and 23.0 Mbit/s of payload.
    for (stations, expected) in [(1, 29.9), (10, 27.5), (40, 23.0)] {
        let mbps = received(UP, "", stations);
        assert!((mbps / expected - 1.0).abs() < 0.02, "{stations} stations: {mbps}");
    }
    assert!((received(DOWN, "", 1) / 29.9 - 1.0).abs() < 0.02);
}

#[test]
fn a_size_is_sent_once_and_completes_where_nothing_is_lost() {
    let flow = format!("{UP}\nkind = \"udp\"\nsize = \"1MB\"\nrate = \"8Mbit/s\"");
    let (outcome, ()) = simulate(&scenario("802.11g", 1, &flow, ""), 1, ());
    let flow = &outcome.outcome.flows[0];
    assert_eq!(flow.bytes.get(), 1_000_000);
    let took = flow.completion.unwrap();
    // The last of 680 datagrams leaves 679 intervals after the first.
    assert!((took.as_secs_f64() - 1.0).abs() < 0.005, "{took}");
    assert_eq!(outcome.outcome.end, took, "the run ends with its last flow");
}
