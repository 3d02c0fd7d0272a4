//! Scenarios at the limits of their keys: each runs to its end, and its figures are possible ones.

#![allow(clippy::unwrap_used, reason = "a test stops where something fails")]

mod common;

use common::report;
use wakeai_results::result::Report;
use wakeai_scenario::Scenario;
use wakeai_world::Options;

/// Two stations that send and one that receives, for 300 ms.
const PLAIN: &str = "name = \"extreme\"\nduration = \"300ms\"\n\
    [access_point]\nstandard = \"802.11n\"\n\
    [[stations]]\nname = \"tablet\"\ncount = 2\n[[stations]]\nname = \"phone\"\n\
    [[flows]]\nfrom = \"tablet\"\nto = \"server\"\n\
    [[flows]]\nfrom = \"server\"\nto = \"phone\"\n\
    [[flows]]\nfrom = \"tablet\"\nto = \"server\"\nkind = \"udp\"\nrate = \"1Mbit/s\"\n\
    [[conditions]]\nname = \"default\"\n[[conditions]]\nname = \"airtime\"\nlaw = \"airtime\"\n";

/// The keys that are changed, and their values.
const EXTREMES: [&[(&str, &str)]; 34] = [
    &[("duration", "1ms")],
    &[("warmup", "299ms")],
    &[("access_point.buffer", "1")],
    &[("access_point.buffer", "1000000")],
    &[("access_point.buffer", "2296B")],
    &[("access_point.retry_limit", "1")],
    &[("access_point.retry_limit", "255"), ("stations.tablet.frame_error_rate", "0.99")],
    &[("access_point.ampdu", "1")],
    &[("access_point.ampdu_subframes", "1")],
    &[("access_point.contention", "{ cw_min = 0, cw_max = 0 }")],
    &[("access_point.contention", "{ aifsn = 15, cw_min = 32767, cw_max = 32767 }")],
    &[("access_point.contention", "{ txop = \"8160us\" }")],
    &[("access_point.protection", "rts-cts"), ("access_point.rts_threshold", "0B")],
    &[("access_point.queue", "fq"), ("access_point.buffer", "1")],
    &[("access_point.standard", "802.11ax"), ("access_point.width", "160MHz")],
    &[("access_point.standard", "802.11a")],
    &[("access_point.standard", "802.11g"), ("stations.tablet.rate", "6Mbit/s")],
    &[("stations.tablet.frame_error_rate", "1.0")],
    &[("stations.phone.frame_error_rate", "1.0"), ("access_point.retry_limit", "1")],
    &[("stations.tablet.queue", "1")],
    &[("stations.tablet.host_queue", "tsq"), ("stations.tablet.queue", "1")],
    &[("stations.tablet.host_queue", "mac80211")],
    &[("stations.tablet.tcp", "classic"), ("stations.tablet.queue", "1")],
    &[("stations.tablet.wired_delay", "60s")],
    &[("stations.tablet.max", "1kbit/s")],
    &[("stations.tablet.max", "1000Gbit/s")],
    &[("wired.rate", "1kbit/s")],
    &[("wired.rate", "1000Gbit/s"), ("wired.delay", "0s")],
    &[("wired.queue", "1")],
    &[("wired.loss", "1.0")],
    &[("flows.1.size", "1B"), ("flows.1.chunks", "1")],
    &[("flows.1.limit", "1kbit/s")],
    &[("flows.1.limit", "1000Gbit/s")],
    &[("flows.3.rate", "1Gbit/s"), ("flows.1.jitter", "299ms")],
];

fn changed(keys: &[(&str, &str)]) -> Scenario {
    let keys = keys.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    let keys: Vec<_> = keys.collect();
    let plain = Scenario::parse(PLAIN).unwrap();
    plain.with_overrides(&keys).unwrap_or_else(|error| panic!("{keys:?}: {error}"))
}

/// No figure is negative, infinite or above what is possible.
fn check(report: &Report, about: &str) {
    for run in &report.runs {
        let about = format!("{about}, {}", run.condition);
        let possible = |share: f64| (0.0..=1.000_001).contains(&share);
        assert!((0.0..=10_000.0).contains(&run.total_goodput_mbps), "{about}: goodput");
        assert!(run.jain.is_none_or(possible), "{about}: Jain {:?}", run.jain);
        for flow in &run.flows {
            assert!((0.0..=10_000.0).contains(&flow.goodput_mbps), "{about}: {flow:?}");
            assert!(
                flow.completion_s.is_none_or(|at| (0.0..=0.3).contains(&at)),
                "{about}: {flow:?}"
            );
        }
    }
}

#[test]
fn every_extreme_runs_to_its_end_with_possible_figures() {
    let fails = |keys: &&&[(&str, &str)]| {
        let run = || check(&report(&changed(keys), &Options::default()), &format!("{keys:?}"));
        std::panic::catch_unwind(run).is_err()
    };
    let failed: Vec<_> = EXTREMES.iter().filter(fails).collect();
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn ten_thousand_stations_run() {
    let keys = [("stations.tablet.count", "9999"), ("duration", "20ms")];
    let more = Scenario::parse(
        &PLAIN.replace("[[conditions]]\nname = \"airtime\"\nlaw = \"airtime\"\n", ""),
    );
    let keys = keys.map(|(key, value)| (key.to_owned(), value.to_owned()));
    check(&report(&more.unwrap().with_overrides(&keys).unwrap(), &Options::default()), "10,000");
}
